"""The one writer of a process: it takes what is waiting and commits it together.

A batch that fails is done again item by item, so that one bad row never takes its neighbours along. For that reason an
operation changes nothing but the database: it may run twice.
"""

import asyncio
import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import SQLAlchemyError

from botservice.errors import StorageUnavailable
from botservice.storage.failures import Failure, check_writable, is_conflict, is_lost_connection, is_read_only
from botservice.storage.limits import StorageLimits
from botservice.storage.operations import Fence, Operation, SortKey, apply_all, resolve
from botservice.storage.postgres.clock import DatabaseClock
from botservice.storage.statements import BEGIN_WRITING, run_text

logger = logging.getLogger(__name__)

S = TypeVar("S")
T = TypeVar("T")

MAX_BATCH = 256
_CLOCK = "SELECT extract(epoch FROM clock_timestamp())"
_MAX_CONFLICTS = 3
_MAX_BLOCKED = 2
_LONGEST_WITHOUT_HEARTBEAT = 30.0  # seconds; a writer that always has something to do looks at the clock as well


class _Transaction:
    """A transaction of SQLite. For SQLAlchemy one lasts for good: its own take as long as a few statements.

    Where it fails, the writer rolls it back, as it does where a COMMIT has failed.
    """

    def __init__(self, connection: Connection) -> None:
        run_text(connection, BEGIN_WRITING)
        self._connection = connection

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            run_text(self._connection, "COMMIT")


class _Lasting(asyncio.Future[T]):
    """A future that lasts until there is a result; `asyncio.shield` makes another one, and a round of the loop."""

    def cancel(self, msg: Any | None = None) -> bool:  # noqa: ARG002 - as asyncio calls it
        """Return that it is not cancelled."""
        return False


class Writer:
    """A thread with the only connection that writes.

    Attributes:
        generation: Grows with every new connection; what an older one held is lost.
        session_id: What prepare returned for the newest connection: the database's own id of it.
        clock: What time it is for everybody who writes there; SQLite has none of its own.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        prepare: Callable[[Connection], int] | None = None,
        limits: StorageLimits = StorageLimits(),  # noqa: B008 - frozen
    ) -> None:
        """Make a writer; prepare runs once on each new connection."""
        self._engine = engine
        self._prepare = prepare
        self._is_sqlite = engine.dialect.name == "sqlite"
        self._heartbeat_seconds = None if self._is_sqlite else limits.heartbeat
        self._queue: SimpleQueue[Operation | None] = SimpleQueue()
        self._connection: Connection | None = None
        self._thread = threading.Thread(target=self._run, name="botservice-writer", daemon=True)
        self._closing = threading.Lock()
        self._is_closed = False
        self._issued = 0  # counted where writes are issued
        self._ended = 0  # counted in the thread
        self._on_lost: list[Callable[[], None]] = []
        self._looked_at = 0.0
        self._heard_at = -math.inf
        self._sure_seconds = math.inf if self._is_sqlite else limits.silence / 2
        self.clock = DatabaseClock()
        self.generation = 0
        self.session_id: int | None = None

    def start(self) -> None:
        """Start the thread; the connection is opened at the first write."""
        self._thread.start()

    def on_connection_lost(self, callback: Callable[[], None]) -> None:
        """Have callback called, in the writer's thread, when its connection is lost."""
        self._on_lost.append(callback)

    def issue(
        self,
        operation: Callable[[Connection], T] | None,
        *,
        fence: Fence | None = None,
        sort_key: SortKey = (),
        is_last: bool = False,
        is_confined: bool = False,
        is_waited_for: bool = False,
    ) -> "asyncio.Future[T]":
        """Issue a write; await what is returned for its result, once its transaction is committed.

        A write that was issued happens, even where the task that awaits it is cancelled.

        Args:
            operation: Reads and writes through the connection it is given, and nothing else; None only waits.
            sort_key: Orders the operations of a commit, so that two replicas lock rows in nearly the same order.
            is_last: Whether everything that was issued before is to be committed first.
            is_confined: Whether it goes by nothing that operations with another first part in their sort key write:
                then it may be interleaved with them.
            is_waited_for: Whether a task that awaits it and is cancelled hears of that only when it has ended.

        Raises:
            ClaimLost: fence no longer holds (when it is awaited).
            StorageUnavailable: the storage is closed, or the database did not take it (when it is awaited).
        """
        return self._put(Operation(operation, fence, sort_key, is_last, is_confined), is_waited_for=is_waited_for)

    def issue_for(
        self, subject: S, operation: Callable[[Connection, Sequence[S]], Sequence[T]], *, is_last: bool = False
    ) -> "asyncio.Future[T]":
        """Issue a write that is done once for all subjects of a commit, and returns a result for each."""
        return self._put(Operation(operation, is_last=is_last, subject=subject))

    def _put(self, operation: Operation, *, is_waited_for: bool = False) -> "asyncio.Future[Any]":
        loop = operation.loop = asyncio.get_running_loop()
        operation.future = _Lasting(loop=loop) if is_waited_for else loop.create_future()
        with self._closing:
            if self._is_closed:
                raise StorageUnavailable("the storage is closed")
            self._issued += 1
            self._queue.put(operation)
        return operation.future

    @property
    def is_fresh(self) -> bool:
        """Whether the database answered recently enough for the session's locks to be held for sure."""
        return time.monotonic() - self._heard_at < self._sure_seconds

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
            if is_open and (not batch or self._is_clock_old()):
                self._heartbeat()
            for is_last in (False, True):
                part = [operation for operation in batch if operation.is_last is is_last]
                work = [operation for operation in part if operation.run is not None]
                if work:
                    self._commit(sorted(work, key=_rank))
                self._ended += sum(operation.future is not None for operation in part)
                if part:
                    resolve(part)
        self._unlock_all()
        self._disconnect()

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
                connection = self._connect()
                with _Transaction(connection) if self._is_sqlite else connection.begin():
                    has_begun = True
                    apply_all(batch, connection)
                    asked_at = time.monotonic()
            except BaseException as error:  # noqa: BLE001 - operations are foreign code; the error goes to who asked
                failure = self._understand(error, has_begun=has_begun)
                if not is_conflict(error):
                    return failure
            else:
                self._heard_at = asked_at  # the answer may have lain here for long: the session lived when it was asked
                return None
        return failure

    def _connect(self) -> Connection:
        if self._connection is None:
            connection = self._engine.connect()
            try:
                if self._is_sqlite:  # one that lasts: see _Transaction
                    connection.begin()
                    connection.connection.rollback()
                if self._prepare is not None:
                    self.session_id = self._prepare(connection)
                    with connection.begin():
                        self._look_at_clock(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
            self.generation += 1
        return self._connection

    def _understand(self, error: BaseException, *, has_begun: bool) -> Failure:
        """Return what an error means, and leave the connection fit for the next transaction."""
        is_gone = is_lost_connection(error) or is_read_only(error)  # where nothing can be written, nobody stays
        is_lost = self._connection is None or is_gone or not self._is_clean()
        if is_lost:
            if self._connection is not None:
                logger.warning("storage.connection_lost", extra={"reason": type(error).__name__})
            self._disconnect()
        return Failure.of(error, is_lost=is_lost, has_begun=has_begun)

    def _is_clean(self) -> bool:
        """Return whether no transaction is left open; SQLAlchemy rolls nothing back where a COMMIT has failed."""
        if self._connection is None or self._connection.invalidated:
            return False
        if self._is_sqlite and not self._connection.in_transaction():  # an operation has ended the one that lasts
            return False
        try:
            while (savepoint := self._connection.get_nested_transaction()) is not None:
                savepoint.close()
            self._connection.connection.rollback()
        except Exception:  # noqa: BLE001 - the driver's own errors, which SQLAlchemy does not wrap here
            return False
        return True

    def _heartbeat(self) -> None:
        """Ask the server something, so that it does not end the session, and read its clock."""
        if self.generation == 0:
            return  # nobody has written anything yet
        was_connected = self._connection is not None
        try:
            connection = self._connect()  # where it was lost: the clock has to be looked at all the same
            with connection.begin():
                check_writable(connection)
                self._look_at_clock(connection)
        except Exception as error:  # noqa: BLE001 - whatever it was: the thread has to live on
            if was_connected:
                logger.warning("storage.connection_lost", extra={"reason": type(error).__name__})
            self._disconnect()

    def _is_clock_old(self) -> bool:
        return self._heartbeat_seconds is not None and time.monotonic() - self._looked_at > _LONGEST_WITHOUT_HEARTBEAT

    def _look_at_clock(self, connection: Connection) -> None:
        asked_at = self._looked_at = time.monotonic()
        self.clock.look(lambda: float(connection.exec_driver_sql(_CLOCK).scalar_one()))
        self._heard_at = asked_at

    def _unlock_all(self) -> None:
        """Let go of the advisory locks at once: a session that ends keeps them until its server has noticed."""
        if self._connection is None or self._is_sqlite:
            return
        with contextlib.suppress(SQLAlchemyError), self._connection.begin():
            self._connection.exec_driver_sql("SELECT pg_advisory_unlock_all()")

    def _disconnect(self) -> None:
        """Close the connection, if there is one, and tell those who registered that all it held is lost."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(SQLAlchemyError):
                connection.close()
        for callback in self._on_lost:
            callback()


def _rank(operation: Operation) -> tuple[tuple[str, str | int], ...]:
    """Return what two replicas sort equally, whatever types their keys have."""
    return tuple((type(part).__name__, part) for part in operation.sort_key)


def _fail(batch: Sequence[Operation], failure: Failure) -> None:
    """Give every operation the error of a transaction that did not happen."""
    for operation in batch:
        operation.error = failure.error
