"""The one writer of a process: it takes what is waiting and commits it together.

A batch that fails is done again item by item, so that one bad row never takes its neighbours along. For that reason an
operation changes nothing but the database: it may run twice.
"""

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import filterfalse
from operator import attrgetter
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, Engine

from botservice.core.errors import ClaimLost, StorageUnavailable
from botservice.storage.failures import Failure, is_conflict
from botservice.storage.limits import StorageLimits
from botservice.storage.statements import run_text
from botservice.storage.writing_connection import WritingConnection

logger = logging.getLogger(__name__)

SortKey = tuple[str | int, ...]

S = TypeVar("S")
T = TypeVar("T")

MAX_BATCH = 256
_MAX_CONFLICTS = 3
_MAX_BLOCKED = 2
_is_told, _is_last, _run_of = attrgetter("is_told"), attrgetter("is_last"), attrgetter("run")


class Fence(Protocol):
    """The condition of a write, such as a claim."""

    def check(self) -> None:
        """Return if it holds.

        Raises:
            ClaimLost: it does not.
        """


@dataclass(slots=True)
class Operation:
    """A write that waits for its transaction, and its result.

    Attributes:
        run: What it does; None only waits for what was issued before.
        subject: What run is given, in a list with those of all operations of the batch that run the same.
        is_told: Whether a person is told that it is done: then a power cut does not undo it.
    """

    run: Callable[..., Any] | None
    fence: Fence | None = None
    sort_key: SortKey = ()
    is_last: bool = False
    is_told: bool = True
    loop: asyncio.AbstractEventLoop | None = None
    future: asyncio.Future[Any] | None = None
    subject: Any = None
    result: Any = None
    error: BaseException | None = None

    def may_run(self) -> bool:
        """Return whether its fence holds; otherwise note ClaimLost, so that the transaction goes on for the others."""
        self.error = None
        try:
            if self.fence is not None:
                self.fence.check()
        except ClaimLost as error:
            self.error = error
        return self.error is None


class _Lasting(asyncio.Future[T]):
    """A future that lasts until there is a result; `asyncio.shield` makes another one, and a round of the loop."""

    def cancel(self, msg: Any | None = None) -> bool:  # noqa: ARG002 - as asyncio calls it
        """Return that it is not cancelled."""
        return False


class Writer:
    """A thread with the only connection that writes.

    Attributes:
        connection: What it writes by.
        refusal: Why the database has refused a write that was nothing special; None where it has not. Who has tried it
            again resets it.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        prepare: Callable[[Connection], int] | None = None,
        limits: StorageLimits = StorageLimits(),  # noqa: B008 - frozen
        is_resting: Callable[[], bool] = lambda: False,
    ) -> None:
        """Make a writer.

        Args:
            prepare: Runs once on each new connection.
            is_resting: Returns whether the database is to be left alone while nothing is written.
        """
        self._is_resting = is_resting
        self.connection = WritingConnection(engine, prepare=prepare, limits=limits)
        self.refusal: str | None = None
        self._is_sqlite = engine.dialect.name == "sqlite"
        self._heartbeat_seconds = self.connection.heartbeat_seconds
        self._queue: SimpleQueue[Operation | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="botservice-writer", daemon=True)
        self._closing = threading.Lock()
        self._is_closed = False
        self._issued = 0  # counted where writes are issued
        self._ended = 0  # counted in the thread

    def start(self) -> None:
        """Start the thread; the connection is opened at the first write."""
        self._thread.start()

    def issue(
        self,
        operation: Callable[..., Any] | None,
        *,
        subject: Any = None,
        fence: Fence | None = None,
        sort_key: SortKey = (),
        is_last: bool = False,
        is_told: bool = True,
        is_waited_for: bool = False,
    ) -> "asyncio.Future[Any]":
        """Issue a write; await what is returned for its result, once its transaction is committed.

        A write that was issued happens, even where the task that awaits it is cancelled.

        Args:
            operation: Reads and writes through the connection it is given, and nothing else; None only waits.
            subject: What the write is done for, where operation is done once for all subjects of a commit: it takes
                them as a list, and returns a result for each. A statement with many rows takes a quarter of the time of
                many statements. Where the write fails, it is done again for each subject alone.
            sort_key: Orders the operations of a commit, so that two replicas lock rows in nearly the same order.
            is_last: Whether everything that was issued before is to be committed first.
            is_told: Whether a person is told that it is done. Otherwise SQLite does not wait for the disk: a power cut
                may undo it, until something else is committed that a person is told of.
            is_waited_for: Whether a task that awaits it and is cancelled hears of that only when it has ended.

        Raises:
            ClaimLost: fence no longer holds (when it is awaited).
            StorageUnavailable: the storage is closed, or the database did not take it (when it is awaited).
        """
        loop = asyncio.get_running_loop()
        future = _Lasting[Any](loop=loop) if is_waited_for else loop.create_future()
        write = Operation(operation, fence, sort_key, is_last, is_told, loop, future, subject)
        with self._closing:
            if self._is_closed:
                raise StorageUnavailable("the storage is closed")
            self._issued += 1
            self._queue.put(write)
        return future

    @property
    def is_settled(self) -> bool:
        """Whether nothing that was issued waits for its commit."""
        return self._issued == self._ended

    async def settle(self) -> None:
        """Return once everything that was issued before is committed, or has failed."""
        await self.issue(None, is_last=True)

    def submit(self, operation: Callable[[Connection], object]) -> None:
        """Have operation done after everything that was issued before, without waiting for it.

        It may be called from any thread, also by the garbage collector in the middle of `issue`: it takes no lock.
        """
        self._queue.put(Operation(operation, is_last=True))

    def close(self) -> None:
        """Commit the writes that wait and end the thread. Blocks until that is done."""
        with self._closing:
            is_first = not self._is_closed
            self._is_closed = True
        if is_first:
            self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        is_open = True
        while is_open:
            batch, is_open = self._take()
            if is_open and (not batch or (self._heartbeat_seconds is not None and self.connection.is_clock_old)):
                if not batch and self._is_resting():
                    self.connection.rest()
                else:
                    self.connection.beat()
            later = list(filter(_is_last, batch))
            for part in (list(filterfalse(_is_last, batch)) if later else batch, later):
                if part:
                    self._do(part)
        self.connection.unlock_all()
        self.connection.close()

    def _do(self, part: Sequence[Operation]) -> None:
        """Commit operations together, and hand out their results."""
        work = list(filter(_run_of, part))
        if len(work) > 1:
            work.sort(key=_rank)
        if work:
            self._commit(work)
        by_loop: dict[asyncio.AbstractEventLoop, list[Operation]] = {}
        for operation in part:
            self._ended += operation.future is not None
            if operation.loop is not None:
                by_loop.setdefault(operation.loop, []).append(operation)
            elif operation.error is not None:
                logger.error("storage.unawaited_write_failed", exc_info=operation.error)
        for loop, operations in by_loop.items():  # one call for each event loop that waits
            with contextlib.suppress(RuntimeError):  # the loop that asked is closed: nobody waits
                loop.call_soon_threadsafe(_set_results, operations)

    def _take(self) -> tuple[list[Operation], bool]:
        batch: list[Operation] = []
        try:
            first = self._queue.get(timeout=self._heartbeat_seconds)
        except Empty:
            return batch, True
        while first is not None:
            batch.append(first)
            if len(batch) == MAX_BATCH or self._queue.empty():
                return batch, True
            first = self._queue.get_nowait()
        return batch, False

    def _commit(self, batch: Sequence[Operation]) -> None:
        """Give every operation its result, committed, or its error."""
        failure = self._attempt(batch)
        if failure is None:
            return
        if failure.is_general or len(batch) == 1:
            _fail(batch, failure)
            return
        blocked = 0
        for place, operation in enumerate(batch):
            failure = self._attempt([operation])
            if failure is None:
                continue
            blocked += failure.is_blocked
            if failure.is_general or blocked == _MAX_BLOCKED:
                _fail(batch[place:], failure)
                return
            _fail([operation], failure)

    def _attempt(self, batch: Sequence[Operation]) -> Failure | None:
        """Return why a transaction of all these operations failed; None if it is committed."""
        for _ in range(_MAX_CONFLICTS):
            has_begun = False
            try:
                connection = self.connection.held or self.connection.open()
                if self._is_sqlite:
                    _set_patience(connection, is_told=any(map(_is_told, batch)))
                with connection.begin():
                    has_begun = True
                    _apply_all(batch, connection)
                    asked_at = time.monotonic()
            except BaseException as error:  # noqa: BLE001 - operations are foreign code; the error goes to who asked
                failure = self.connection.understand(error, has_begun=has_begun)
                self.refusal = failure.refusal or self.refusal
                if not is_conflict(error):
                    return failure
            else:
                # The answer may have lain here for long: the session lived when it was asked.
                self.connection.heard_at = asked_at
                return None
        return failure


def _set_patience(connection: Connection, *, is_told: bool) -> None:
    """Have SQLite wait for the disk at a commit that a person is told of."""
    run_text(connection, f"PRAGMA synchronous={'FULL' if is_told else 'NORMAL'};")


def _rank(operation: Operation) -> tuple[tuple[str, str | int], ...]:
    """Return what two replicas sort equally, whatever types their keys have."""
    return tuple((type(part).__name__, part) for part in operation.sort_key)


def _fail(batch: Sequence[Operation], failure: Failure) -> None:
    """Give every operation the error of a transaction that did not happen."""
    for operation in batch:
        operation.error = failure.error


def _apply_all(batch: Sequence[Operation], connection: Connection) -> None:
    """Do the operations of a batch in its order, and after them those that are done together."""
    together: dict[Any, list[Operation]] = {}
    for operation in filter(Operation.may_run, batch):
        if operation.subject is not None:
            together.setdefault(operation.run, []).append(operation)
        elif operation.run is not None:
            operation.result = operation.run(connection)
    for run, operations in together.items():
        results = run(connection, [operation.subject for operation in operations])
        for operation, result in zip(operations, results, strict=True):
            operation.result = result


def _set_results(operations: Sequence[Operation]) -> None:
    for operation in operations:
        if operation.future is None or operation.future.done():
            if operation.error is not None and not isinstance(operation.error, ClaimLost):
                logger.error("storage.unawaited_write_failed", exc_info=operation.error)
        elif operation.error is None:
            operation.future.set_result(operation.result)
        else:
            operation.future.set_exception(operation.error)
