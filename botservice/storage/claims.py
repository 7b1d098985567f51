"""The right to work on a context: one holder at a time, in all processes together.

On an SQLite file one process works at a time; which of its contexts are worked on stands in its memory, which all
Storages of the process on that file share. What holds on Postgres stands in `postgres_replicas.py`.
"""

import asyncio
import contextlib
import fcntl
import logging
import os
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from botservice.core.errors import ClaimLost, DatabaseInUse, StorageUnavailable
from botservice.storage.writer import Writer

if TYPE_CHECKING:
    from botservice.storage.database import Connection

logger = logging.getLogger(__name__)

_ID_DIGITS = 20  # of the id of a process, in the file of its lock
_MOST_TRIES = 3  # there are file systems that number one file differently each time


class Claim:
    """The right to work on one context, until it is given back or taken over.

    Attributes:
        is_idle: Whether its holder does nothing at the moment: a run between two steps may be taken over.
        worked_on_by: The task that is in the middle of a step under it: what waits there for the claim waits for ever.
    """

    def __init__(self, context_id: int, held: Mapping[int, "Claim"]) -> None:
        """Make a claim, which holds as long as it stands in held."""
        self.context_id = context_id
        self.is_idle = False
        self.worked_on_by: asyncio.Task[Any] | None = None
        self._held = held

    @property
    def is_held(self) -> bool:
        """Whether the right still exists."""
        return self._held.get(self.context_id) is self

    def check(self) -> None:
        """Return if the claim is held.

        Raises:
            ClaimLost: it is not.
        """
        if not self.is_held:
            raise ClaimLost(f"context {self.context_id} is worked on by somebody else now")


class Claims(Protocol):
    """The claims that this process takes on contexts."""

    async def try_claim(self, context_id: int) -> Claim | None:
        """Return a claim, or None if it is held already.

        Raises:
            DatabaseInUse: another process works on this SQLite file.
        """

    def release(self, claim: Claim) -> "asyncio.Future[None]":
        """Give the claim back once every write under it has ended; does nothing where it is lost already."""

    def holder(self, context_id: int) -> Claim | None:
        """Return the claim on a context, where this process has it."""

    def find_free(self, connection: "Connection", context_ids: Sequence[int]) -> list[int]:
        """Return those of the contexts that seem to be unclaimed, without trying to claim them."""

    def abandon(self, claim: Claim) -> None:
        """Give a claim back from any thread, without waiting."""

    def take_over(self, claim: Claim) -> Claim:
        """Return a new claim in the place of one whose holder is idle; the old holder writes nothing more."""

    @property
    def is_working(self) -> bool:
        """Whether this process holds a claim on a conversation: those with numbers below zero are other rights."""

    def working(self) -> contextlib.AbstractContextManager[None]:
        """Return a block in which this process is the worker of its database, also while it has no claim.

        Raises:
            DatabaseInUse: another process works on this SQLite file (when it is entered).
        """

    def close(self) -> None:
        """Give everything back that was taken through this object."""


class WorkerLock:
    """The lock of an SQLite file: its holder may work on contexts and migrate.

    The file of the lock stays open between two holders: taking it is then one call of the system.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._guard = threading.RLock()  # see SharedFile.guard
        self._holders = 0
        self._descriptor: int | None = None
        self._opened_by: int | None = None
        self._close: Callable[[], object] = lambda: None

    @property
    def is_held(self) -> bool:
        """Whether this process has it."""
        return self._holders > 0

    def acquire(self) -> None:
        """Take the lock, once more if this process has it.

        Raises:
            DatabaseInUse: another process has it.
            StorageUnavailable: the file of the lock cannot be written.
        """
        with self._guard:
            if self._holders == 0:
                try:
                    is_taken = self._try()
                except OSError as error:
                    raise StorageUnavailable(f"cannot lock {self._path}: {error.strerror or error}") from error
                if not is_taken:
                    raise DatabaseInUse(
                        f"another process works on {self._path}{self._describe_holder()}: stop it and try again, talk "
                        "to it instead, or use Postgres, which takes many (DATABASE_URL=postgresql://...)"
                    )
                self._name_holder()
            self._holders += 1

    def release(self) -> None:
        """Give it back; the last one unlocks the file."""
        with self._guard:
            self._holders -= 1
            if self._holders == 0 and self._descriptor is not None and self._opened_by == os.getpid():
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)

    def _try(self) -> bool:
        """Return whether the lock is taken."""
        for tries_left in reversed(range(_MOST_TRIES)):
            descriptor = self._opened()
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError):  # the latter on network file systems of Windows
                return False
            if self._is_there(descriptor) or not tries_left:
                return True
            self._opened_by = None  # the file was deleted or moved: others would lock a new one
        return False

    def _name_holder(self) -> None:
        """Write into the file of the lock which process has it."""
        with contextlib.suppress(OSError):  # such as a full disk
            os.pwrite(self._opened(), f"{os.getpid():<{_ID_DIGITS}}".encode(), 0)

    def _describe_holder(self) -> str:
        """Say which process has the lock; nothing where it is one of an earlier release."""
        found = os.pread(self._opened(), _ID_DIGITS, 0).strip()
        return f" (its id is {int(found)})" if found.isdigit() else ""

    def _is_there(self, descriptor: int) -> bool:
        """Return whether an open file is the one that others would lock."""
        try:
            return os.path.samestat(os.fstat(descriptor), os.stat(f"{self._path}.lock"))  # noqa: PTH116 - at once
        except FileNotFoundError:
            return False

    def _opened(self) -> int:
        """Return the file of the lock, opened by this process: one that it was forked with is its parent's lock."""
        if self._descriptor is None or self._opened_by != os.getpid():
            self._close()
            self._descriptor = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
            self._opened_by = os.getpid()
            self._close = weakref.finalize(self, os.close, self._descriptor)
        return self._descriptor


class SharedFile:
    """What all Storages of this process share about one SQLite file.

    Attributes:
        guard: Re-entrant, because the garbage collector may abandon a claim in the middle of any line that holds it.
    """

    _known: ClassVar[weakref.WeakValueDictionary[Path, "SharedFile"]] = weakref.WeakValueDictionary()
    _guard = threading.Lock()

    def __init__(self, path: Path) -> None:
        self.lock = WorkerLock(path)
        self.claims: dict[int, Claim] = {}
        self.guard = threading.RLock()
        self._path = path
        self._descriptor: int | None = None

    def descriptor(self) -> int:
        """Return the file itself, open for reading and writing until no Storage of this process uses it.

        Closed earlier, it would give up the locks that SQLite has on it (SQLite, "How To Corrupt", 2.2).
        """
        with self.guard:
            if self._descriptor is None:
                self._descriptor = os.open(self._path, os.O_RDWR)
                weakref.finalize(self, os.close, self._descriptor)
            return self._descriptor

    @classmethod
    def at(cls, path: Path) -> "SharedFile":
        """Return the one object for the file at path."""
        with cls._guard:
            real = path.resolve()
            shared = cls._known.get(real)
            if shared is None:
                shared = cls._known[real] = cls(real)
            return shared


class LocalClaims:
    """Claims on an SQLite file."""

    def __init__(self, shared: SharedFile, writer: Writer) -> None:
        self._shared = shared
        self._writer = writer
        self._mine: set[Claim] = set()

    async def try_claim(self, context_id: int) -> Claim | None:
        """Return a claim, or None if it is held already in this process."""
        with self._shared.guard:
            if context_id in self._shared.claims:
                return None
            self._shared.lock.acquire()
            claim = Claim(context_id, self._shared.claims)
            self._shared.claims[context_id] = claim
            self._mine.add(claim)
            return claim

    def release(self, claim: Claim) -> "asyncio.Future[None]":
        """Give the claim back: at once where nothing waits for its commit, or where storage fails."""
        if not self._writer.is_settled:
            return asyncio.ensure_future(self._settle(claim))
        self.abandon(claim)
        released = asyncio.get_running_loop().create_future()
        released.set_result(None)
        return released

    async def _settle(self, claim: Claim) -> None:
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

    def find_free(self, connection: "Connection", context_ids: Sequence[int]) -> list[int]:  # noqa: ARG002 - in memory
        """Return those of the contexts that are unclaimed in this process."""
        return [context_id for context_id in context_ids if context_id not in self._shared.claims]

    def abandon(self, claim: Claim) -> None:
        """Give a claim back from any thread."""
        with self._shared.guard:
            self._mine.discard(claim)
            if claim.is_held:
                del self._shared.claims[claim.context_id]
                self._shared.lock.release()

    def take_over(self, claim: Claim) -> Claim:
        """Return a new claim in the place of claim, which may be another Storage's of this process."""
        with self._shared.guard:
            claim.check()
            successor = Claim(claim.context_id, self._shared.claims)
            self._shared.claims[claim.context_id] = successor
            self._mine.discard(claim)
            self._mine.add(successor)
            return successor

    @property
    def is_working(self) -> bool:
        """Whether this process holds a claim on a conversation."""
        return any(context_id > 0 for context_id in list(self._shared.claims))

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
