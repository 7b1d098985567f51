"""What processes on one Postgres know of each other: their claims on conversations, and their notifications.

Nothing relies on notifications: a process that hears nothing finds out by looking, a little later.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Connection,
    Engine,
    Integer,
    Text,
    bindparam,
    func,
    literal_column,
    select,
    text,
)
from sqlalchemy.exc import SQLAlchemyError

from botservice.core.errors import StorageUnavailable
from botservice.storage.claims import Claim
from botservice.storage.writer import Writer

# Claims: session advisory locks on the writer's own connection, which end with it

# The first half of a two-part advisory lock key, so that other users of the same database are not met: "bots".
LOCK_SPACE = 0x626F7473


def lock_space(purpose: str = "", *, offset: int = 0) -> str:
    """Return SQL for the first half of a lock's key: every schema of a database has its own.

    That of the schema "public" is what it has always been, so that an earlier release alongside this one is met.
    """
    own = f"('x' || left(md5('botservice {purpose} ' || current_schema()), 8))::bit(32)::int"
    return f"CASE current_schema() WHEN 'public' THEN {LOCK_SPACE + offset} ELSE {own} END"


_SPACE: Any = literal_column(lock_space(), Integer)
_KEY: Any = func.unnest(bindparam("keys", type_=ARRAY(Integer))).column_valued("key")
_LOCK = select(_KEY, func.pg_try_advisory_lock(_SPACE, _KEY).label("is_taken"))
_UNLOCK = select(func.pg_advisory_unlock(_SPACE, _KEY))
# Of a two-part key, pg_locks shows both parts as unsigned numbers.
_TAKEN = text(
    "SELECT objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 "
    "AND classid::bigint = (the_space)::bigint & 4294967295 "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())".replace("the_space", lock_space())
).columns(objid=BigInteger)


class AdvisoryClaims:
    """Claims on Postgres."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._held: dict[int, Claim] = {}
        self._locked: set[int] = set()  # touched in the writer's thread alone
        writer.connection.on_lost(self._forget)

    async def try_claim(self, context_id: int) -> Claim | None:
        """Return a claim, or None if another replica holds it."""
        if context_id in self._held:
            return None
        claim = Claim(context_id, self._held)
        self._held[context_id] = claim
        try:
            is_locked = await self._writer.issue(self._lock, subject=claim)
        except BaseException:  # cancelled, most likely: the lock may be taken all the same
            self.abandon(claim)
            raise
        if not is_locked:
            self._drop(claim)
        return claim if claim.is_held else None

    def release(self, claim: Claim) -> "asyncio.Future[None]":
        """Give the claim back."""
        return asyncio.ensure_future(self._release(claim))

    async def _release(self, claim: Claim) -> None:
        if claim.is_held:
            with contextlib.suppress(StorageUnavailable):  # the lock has ended with its connection
                await self._writer.issue(self._unlock, subject=claim, is_last=True)

    def holder(self, context_id: int) -> Claim | None:
        """Return the claim on a context, where this replica has it."""
        return self._held.get(context_id)

    def find_free(self, connection: Connection, context_ids: Sequence[int]) -> list[int]:
        """Return those of the contexts that no replica has locked: one query, where trying takes a write each."""
        taken = {row.objid for row in connection.execute(_TAKEN).all()}
        return [context_id for context_id in context_ids if _as_object_id(context_id) not in taken]

    def abandon(self, claim: Claim) -> None:
        """Give a claim back from any thread, without waiting."""
        self._writer.submit(lambda connection: self._unlock(connection, [claim]))

    def take_over(self, claim: Claim) -> Claim:
        """Return a new claim in the place of claim, on the same lock."""
        claim.check()
        successor = self._held[claim.context_id] = Claim(claim.context_id, self._held)
        return successor

    @property
    def is_working(self) -> bool:
        """Whether this process holds a claim on a conversation."""
        return any(context_id > 0 for context_id in list(self._held))

    def working(self) -> contextlib.AbstractContextManager[None]:
        """Return a block in which nothing is held: on Postgres every replica is a worker."""
        return contextlib.nullcontext()

    def close(self) -> None:
        """Forget everything: the locks end with the writer's connection."""
        self._forget()

    def _forget(self) -> None:
        self._held.clear()
        self._locked.clear()

    def _drop(self, claim: Claim) -> None:
        if claim.is_held:
            del self._held[claim.context_id]

    def _lock(self, connection: Connection, claims: Sequence[Claim]) -> list[bool]:
        """Return which locks are taken; none is where the claim has ended since it was asked for."""
        # Advisory locks count, and a batch that is done again keeps what it took: never take one twice. For the same
        # reason nothing may come between the locks and this note of them, such as the error of another operation.
        keys = {_key(claim): claim.context_id for claim in claims if claim.is_held}
        wanted = [key for key, context_id in keys.items() if context_id not in self._locked]
        if wanted:
            rows = connection.execute(_LOCK, {"keys": wanted}).all()
            self._locked.update(keys[row.key] for row in rows if row.is_taken)
        return [claim.is_held and claim.context_id in self._locked for claim in claims]

    def _unlock(self, connection: Connection, claims: Sequence[Claim]) -> list[None]:
        ending = {_key(claim): claim for claim in claims if claim.is_held}
        locked = [key for key, claim in ending.items() if claim.context_id in self._locked]
        if locked:
            connection.execute(_UNLOCK, {"keys": locked}).all()  # they are given back: nothing failed before it
        for claim in ending.values():
            self._locked.discard(claim.context_id)
            self._drop(claim)
        return [None] * len(claims)


def _key(claim: Claim) -> int:
    """Return the second half of the key, a signed 32-bit number."""
    return (claim.context_id & 0xFFFFFFFF) - (1 << 31)


def _as_object_id(context_id: int) -> int:
    return ((context_id & 0xFFFFFFFF) - (1 << 31)) & 0xFFFFFFFF


# Notifications: LISTEN, on a connection of its own

logger = logging.getLogger(__name__)

# Every schema of a database has its own channel. That of "public" is what it has always been, so that what an earlier
# release alongside this one sends arrives.
CHANNEL = (
    "CASE current_schema() WHEN 'public' THEN 'botservice' ELSE 'botservice_' || left(md5(current_schema()), 12) END"
)
_PAYLOAD = func.unnest(bindparam("payloads", type_=ARRAY(Text))).column_valued("payload")
_NOTIFY = select(func.pg_notify(literal_column(CHANNEL), _PAYLOAD))
_PAUSE_SECONDS = 1.0

Hear = Callable[[str], None]
"""Given what was said."""


def notify(connection: Connection, payloads: Sequence[str]) -> None:
    """Tell every listener something, when this transaction commits."""
    if payloads:
        connection.execute(_NOTIFY, {"payloads": payloads})


class Listener:
    """Hears every NOTIFY of other sessions than its own process's."""

    def __init__(self, engine: Engine, is_own: Callable[[int], bool]) -> None:
        """Make a listener.

        Args:
            engine: One without a pool: the connection must not be given to anybody else.
            is_own: Tells from the id of a session whether this process has said it itself.
        """
        self._engine = engine
        self._is_own = is_own
        self._driver_error: type[Exception] = engine.dialect.loaded_dbapi.Error

    async def run(self, hear: Hear) -> NoReturn:
        """Give everything that is said to hear, until cancelled; a connection that is lost is made again."""
        while True:
            try:
                connecting = asyncio.ensure_future(asyncio.to_thread(self._connect))
                try:
                    connection = await asyncio.shield(connecting)
                except asyncio.CancelledError:
                    with contextlib.suppress(Exception):  # whatever it was, nobody waits for it any more
                        (await connecting).close()
                    raise
                try:
                    await self._receive_all(connection, hear)
                finally:
                    connection.close()
            except (SQLAlchemyError, StorageUnavailable, self._driver_error, OSError) as error:
                logger.warning("storage.not_listening", extra={"reason": type(error).__name__})
            await asyncio.sleep(_PAUSE_SECONDS)

    def _connect(self) -> Any:
        """Return the driver's own connection, which listens."""
        pooled = self._engine.raw_connection()
        connection: Any = pooled.driver_connection
        pooled.detach()
        connection.autocommit = True
        [channel] = connection.execute(f"SELECT {CHANNEL}").fetchone()
        connection.execute(f"LISTEN {channel}")
        return connection

    async def _receive_all(self, connection: Any, hear: Hear) -> None:
        loop, said = asyncio.get_running_loop(), asyncio.Event()
        number = connection.fileno()
        loop.add_reader(number, said.set)
        try:
            while True:
                for note in connection.notifies(timeout=0):
                    if not self._is_own(note.pid):
                        hear(note.payload)
                said.clear()
                await said.wait()
        finally:
            loop.remove_reader(number)
