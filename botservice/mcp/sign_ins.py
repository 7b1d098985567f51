"""Storing sign-ins to servers, encrypted, and separately for each account of a person."""

import hashlib
import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from typing import Any, Final

from botservice.conversation.context import AgentContext
from botservice.core.errors import StorageError
from botservice.mcp.queries import (
    change_sign_in,
    delete_sign_in,
    find_sign_in,
    has_state,
    lock_sign_in,
    store_sign_in,
    store_state,
    take_state,
)
from botservice.people.fact_queries import is_private
from botservice.people.queries import find_identity
from botservice.storage.database import Connection, Storage
from botservice.storage.encryption import Cipher

_STATE_LASTS: Final = timedelta(minutes=15)
_MOST_TRIES: Final = 5


def make_code() -> str:
    """Return six digits for a person to read and say."""
    return f"{secrets.randbelow(10**6):06}"


@dataclass(frozen=True, slots=True)
class TokenGrant:
    """The parameters for requesting tokens from a server's authorization.

    Attributes:
        url: The address of the server that the tokens are for; they are sent nowhere else.
        metadata: What the authorization says of itself.
        verifier: The secret of a sign-in that has begun (PKCE).
        is_inside: Whether the server answered from a network of this machine's own, where its authorization may be.
    """

    url: str
    redirect_uri: str
    client: Mapping[str, Any] = field(repr=False)
    metadata: Mapping[str, Any] = field(repr=False)
    resource: str | None = None
    verifier: str = field(default="", repr=False)
    language: str | None = None
    is_inside: bool = False


@dataclass(frozen=True, slots=True)
class SignIn:
    """The sign-in of one account at a server.

    Attributes:
        expires_at: In seconds since 1970, or None if the server does not say.
        renewing_until: Until when a process that renews it is waited for, in seconds since 1970.
        code: What the person has yet to say in the chat where they were asked; None once they have.
        tries: How often something else was said.
        sealed: As it was read.
    """

    id: int
    server: str
    grant: TokenGrant
    access_token: str = field(repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    expires_at: float | None = None
    renewing_until: float | None = None
    code: str | None = field(default=None, repr=False)
    tries: int = 0
    sealed: bytes = field(default=b"", repr=False)


class SignIns:
    """The sign-ins in the database."""

    def __init__(self, cipher: Cipher) -> None:
        self._cipher = cipher

    async def find(self, storage: Storage, identity_id: int, server: str, url: str) -> SignIn | None:
        """Return the sign-in of an account, or None if there is none for this address and key."""
        row = await storage.read(lambda connection: find_sign_in(connection, identity_id, server))
        try:
            found = None if row is None else self._read(row.id, server, row.data)
        except StorageError:  # with another key: the person signs in again
            return None
        return found if found is not None and found.grant.url == url else None

    async def keep(self, storage: Storage, identity_id: int, made: SignIn) -> bool:
        """Store a new sign-in in the place of an earlier one; return whether its account still exists."""
        data, now = self._write(made), storage.now()
        return await storage.write(lambda connection: store_sign_in(connection, identity_id, made.server, data, now))

    async def reserve(self, storage: Storage, has: SignIn, until: float) -> bool:
        """Reserve the renewal of a sign-in for this process; return whether no other one was faster."""
        data = self._write(replace(has, renewing_until=until))
        return await storage.write(
            lambda connection: change_sign_in(connection, has.id, unless_changed_from=has.sealed, data=data)
        )

    async def confirm(self, storage: Storage, has: SignIn, code: str) -> bool:
        """Check the code that a person enters in the chat against the one that their page showed.

        A link can be passed on, so another person may have signed in. After a few wrong codes, or as long as a link
        lasts, the sign-in is void.
        Each try is counted in the transaction that compares it, so that many at once are no more than one by one.
        """

        def write(connection: Connection) -> bool:
            row = lock_sign_in(connection, has.id)
            if row is None:
                return False
            kept = self._read(row.id, has.server, row.data)
            if kept.code is None:
                return True
            tried = replace(kept, tries=kept.tries + 1)
            is_late = row.created_at < storage.now() - _STATE_LASTS
            is_right = not is_late and secrets.compare_digest(kept.code.encode(), code.strip().encode())
            if is_late or (tried.tries >= _MOST_TRIES and not is_right):
                delete_sign_in(connection, has.id)
            else:
                made = replace(tried, code=None) if is_right else tried
                change_sign_in(connection, has.id, data=self._write(made))
            return is_right

        return await storage.write(write)

    async def renew(self, storage: Storage, renewed: SignIn) -> None:
        """Store renewed tokens, if the sign-in still exists."""
        data, now = self._write(renewed), storage.now()
        await storage.write(lambda connection: change_sign_in(connection, renewed.id, data=data, updated_at=now))

    async def drop(self, storage: Storage, sign_in_id: int) -> None:
        """Delete a sign-in."""
        await storage.write(lambda connection: delete_sign_in(connection, sign_in_id))

    async def begin(self, storage: Storage, identity_id: int, server: str, grant: TokenGrant) -> str:
        """Store the state of a new sign-in and return it; it voids an earlier one of the same account."""
        state = secrets.token_urlsafe(32)
        now = storage.now()
        row = {"identity_id": identity_id, "server": server, "data": self._seal(asdict(grant))}
        row |= {"digest": _digest(state), "expires_at": now + _STATE_LASTS}
        await storage.write(lambda connection: store_state(connection, row, now))
        return state

    async def take(self, storage: Storage, server: str, state: str) -> tuple[int, TokenGrant] | None:
        """Use up a state; return whose sign-in it is and its parameters, unless it is used or expired."""
        digest = _digest(state)
        if not await storage.read(lambda connection: has_state(connection, digest)):
            return None  # anybody may come here, and writing holds others up
        row = await storage.write(lambda connection: take_state(connection, server, digest))
        if row is None or row.expires_at < storage.now():
            return None
        return row.identity_id, TokenGrant(**self._open(row.data))

    def _read(self, row_id: int, server: str, data: bytes) -> SignIn:
        values = self._open(data)
        return SignIn(row_id, server, TokenGrant(**values.pop("grant")), **values, sealed=data)

    def _write(self, sign_in: SignIn) -> bytes:
        kept = asdict(replace(sign_in, grant=replace(sign_in.grant, verifier="")))
        return self._seal({name: value for name, value in kept.items() if name not in ("id", "server", "sealed")})

    def _seal(self, values: Mapping[str, Any]) -> bytes:
        return self._cipher.encrypt(json.dumps(values).encode())

    def _open(self, data: bytes) -> dict[str, Any]:
        values: dict[str, Any] = json.loads(self._cipher.decrypt(data))
        return values


async def find_asker(context: AgentContext) -> int | None:
    """Return the account of the asker in a private chat, or None elsewhere."""
    author = context.last_author

    def read(connection: Connection) -> int | None:
        identity = find_identity(connection, author)
        return identity.id if identity is not None and is_private(connection, context.id, author) else None

    return None if author is None else await context.storage.read(read)


def _digest(state: str) -> str:
    return hashlib.sha256(state.encode("utf-8", "replace")).hexdigest()
