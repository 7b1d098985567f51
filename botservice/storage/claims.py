"""The right to work on a context: one holder at a time, in all processes together.

On SQLite one process works at a time (a file lock), so the claim itself is in memory, shared by every Storage of the
process on that file. On Postgres a claim is a session advisory lock on the writer's own connection: it ends with it.
"""

import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from sqlalchemy import BigInteger, Connection, Integer, bindparam, func, literal_column, select, text

from botservice.errors import StorageUnavailable
from botservice.storage.claim import Claim
from botservice.storage.sqlite.file_lock import SharedFile
from botservice.storage.statements import execute
from botservice.storage.writer import Writer

logger = logging.getLogger(__name__)

# The first half of a two-part advisory lock key, so that other users of the same database are not met: "bots".
LOCK_SPACE = 0x626F7473


def lock_space(purpose: str = "", *, offset: int = 0) -> str:
    """Return SQL for the first half of a lock's key: every schema of a database has its own.

    That of the schema "public" is what it has always been, so that an earlier release beside this one is met.
    """
    own = f"('x' || left(md5('botservice {purpose} ' || current_schema()), 8))::bit(32)::int"
    return f"CASE current_schema() WHEN 'public' THEN {LOCK_SPACE + offset} ELSE {own} END"


_SPACE: Any = literal_column(lock_space(), Integer)
_LOCK = select(func.pg_try_advisory_lock(_SPACE, bindparam("id", type_=Integer)))
_UNLOCK = select(func.pg_advisory_unlock(_SPACE, bindparam("id", type_=Integer)))
# Of a two-part key, pg_locks shows both parts as unsigned numbers.
_TAKEN = text(
    "SELECT objid::bigint FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 2 "
    "AND classid::bigint = (the_space)::bigint & 4294967295 "
    "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())".replace("the_space", lock_space())
).columns(objid=BigInteger)


class Claims(Protocol):
    """Who works on which context."""

    async def try_claim(self, context_id: int) -> Claim | None:
        """Return a claim, or None where somebody else holds it.

        Raises:
            DatabaseInUse: another process works on this SQLite file.
        """

    async def release(self, claim: Claim) -> None:
        """Give the claim back once every write under it has ended; does nothing where it is lost already."""

    def holder(self, context_id: int) -> Claim | None:
        """Return the claim on a context, where this process has it."""

    def find_free(self, connection: Connection, context_ids: Sequence[int]) -> list[int]:
        """Return those of the contexts that nobody seems to work on, without trying to claim them."""

    def abandon(self, claim: Claim) -> None:
        """Give a claim back from any thread, without waiting."""

    def take_over(self, claim: Claim) -> Claim:
        """Return a new claim in the place of one whose holder is idle; the old holder writes nothing more."""

    def working(self) -> contextlib.AbstractContextManager[None]:
        """Return a block in which this process is the worker of its database, also while it has no claim.

        Raises:
            DatabaseInUse: another process works on this SQLite file (when it is entered).
        """

    def close(self) -> None:
        """Give everything back that was taken through this object."""


class LocalClaims:
    """Claims on an SQLite file."""

    def __init__(self, shared: SharedFile, writer: Writer) -> None:
        self._shared = shared
        self._writer = writer
        self._mine: set[Claim] = set()

    async def try_claim(self, context_id: int) -> Claim | None:
        """Return a claim, or None where somebody else in this process holds it."""
        with self._shared.guard:
            if context_id in self._shared.claims:
                return None
            self._shared.lock.acquire()
            claim = Claim(context_id, self._holds)
            self._shared.claims[context_id] = claim
            self._mine.add(claim)
            return claim

    async def release(self, claim: Claim) -> None:
        """Give the claim back; where storage fails, at once."""
        try:
            if claim.is_held:
                await self._writer.settle()
        except StorageUnavailable:
            logger.warning("claims.released_without_storage", extra={"context": claim.context_id})
        finally:
            self.abandon(claim)

    def holder(self, context_id: int) -> Claim | None:
        """Return the claim on a context, whichever Storage of this process took it."""
        return self._shared.claims.get(context_id)

    def find_free(self, connection: Connection, context_ids: Sequence[int]) -> list[int]:  # noqa: ARG002 - in memory
        """Return those of the contexts that nobody in this process works on."""
        return [context_id for context_id in context_ids if context_id not in self._shared.claims]

    def abandon(self, claim: Claim) -> None:
        """Give a claim back from any thread."""
        with self._shared.guard:
            self._mine.discard(claim)
            if self._holds(claim):
                del self._shared.claims[claim.context_id]
                self._shared.lock.release()

    def take_over(self, claim: Claim) -> Claim:
        """Return a new claim in the place of claim, which may be another Storage's of this process."""
        with self._shared.guard:
            claim.check()
            successor = Claim(claim.context_id, self._holds)
            self._shared.claims[claim.context_id] = successor
            self._mine.discard(claim)
            self._mine.add(successor)
            return successor

    @contextlib.contextmanager
    def working(self) -> Iterator[None]:
        """Hold the lock of the file."""
        self._shared.lock.acquire()
        try:
            yield
        finally:
            self._shared.lock.release()

    def close(self) -> None:
        """Give everything back that was taken through this object."""
        with self._shared.guard:
            for claim in list(self._mine):
                self.abandon(claim)

    def _holds(self, claim: Claim) -> bool:
        return self._shared.claims.get(claim.context_id) is claim


class AdvisoryClaims:
    """Claims on Postgres."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._held: dict[int, Claim] = {}
        self._locked: set[int] = set()  # touched in the writer's thread alone
        writer.on_connection_lost(self._forget)

    async def try_claim(self, context_id: int) -> Claim | None:
        """Return a claim, or None where another replica holds it."""
        if context_id in self._held:
            return None
        claim = Claim(context_id, self._holds)
        self._held[context_id] = claim
        try:
            is_locked = await self._writer.write(lambda connection: self._lock(connection, claim))
        except BaseException:  # cancelled, most likely: the lock may be taken all the same
            self.abandon(claim)
            raise
        if not is_locked:
            self._drop(claim)
        return claim if claim.is_held else None

    async def release(self, claim: Claim) -> None:
        """Give the claim back."""
        if self._holds(claim):
            with contextlib.suppress(StorageUnavailable):  # the lock has ended with its connection
                await self._writer.write(lambda connection: self._unlock(connection, claim), is_last=True)

    def holder(self, context_id: int) -> Claim | None:
        """Return the claim on a context, where this replica has it."""
        return self._held.get(context_id)

    def find_free(self, connection: Connection, context_ids: Sequence[int]) -> list[int]:
        """Return those of the contexts that no replica has locked: one query, where trying takes a write each."""
        taken = {row.objid for row in execute(connection, _TAKEN, {}).all()}
        return [context_id for context_id in context_ids if _as_object_id(context_id) not in taken]

    def abandon(self, claim: Claim) -> None:
        """Give a claim back from any thread, without waiting."""
        self._writer.submit(lambda connection: self._unlock(connection, claim))

    def take_over(self, claim: Claim) -> Claim:
        """Return a new claim in the place of claim, on the same lock."""
        claim.check()
        successor = self._held[claim.context_id] = Claim(claim.context_id, self._holds)
        return successor

    def working(self) -> contextlib.AbstractContextManager[None]:
        """Return a block in which nothing is held: on Postgres every replica is a worker."""
        return contextlib.nullcontext()

    def close(self) -> None:
        """Forget everything: the locks end with the writer's connection."""
        self._forget()

    def _holds(self, claim: Claim) -> bool:
        return self._held.get(claim.context_id) is claim

    def _forget(self) -> None:
        self._held.clear()
        self._locked.clear()

    def _drop(self, claim: Claim) -> None:
        if self._holds(claim):
            del self._held[claim.context_id]

    def _lock(self, connection: Connection, claim: Claim) -> bool:
        """Return whether the lock is taken; nothing is where the claim has ended since it was asked for."""
        if not self._holds(claim):
            return False
        # Advisory locks count, and a batch that is done again keeps what it took: never take one twice. For the same
        # reason nothing may come between the lock and this note of it, such as the error of another operation.
        if claim.context_id in self._locked:
            return True
        taken = bool(execute(connection, _LOCK, _lock_key(claim)).scalar_one())
        if taken:
            self._locked.add(claim.context_id)
        return taken

    def _unlock(self, connection: Connection, claim: Claim) -> None:
        if not self._holds(claim):
            return
        if claim.context_id in self._locked:
            execute(connection, _UNLOCK, _lock_key(claim)).scalar_one()  # it is given back: nothing failed before it
            self._locked.discard(claim.context_id)
        self._drop(claim)


def _lock_key(claim: Claim) -> dict[str, int]:
    """Return the second half of the key, a signed 32-bit number."""
    return {"id": (claim.context_id & 0xFFFFFFFF) - (1 << 31)}


def _as_object_id(context_id: int) -> int:
    return ((context_id & 0xFFFFFFFF) - (1 << 31)) & 0xFFFFFFFF
