"""The one writer of a process: it takes what is waiting and commits it together.

A batch that fails is done again item by item, so that one bad row never takes its neighbours along. For that reason an
operation changes nothing but the database: it may run twice.
"""

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, OperationalError

from botservice.errors import BotServiceError, ClaimLost, StorageUnavailable

logger = logging.getLogger(__name__)

T = TypeVar("T")
SortKey = tuple[str | int, ...]

MAX_BATCH = 256
HEARTBEAT_SECONDS = 1.0


class Fence(Protocol):
    """What decides whether a write still has the right to happen."""

    def check(self) -> None:
        """Return if it has.

        Raises:
            ClaimLost: it has not.
        """


@dataclass(slots=True)
class _Operation:
    run: Callable[[Connection], Any]
    fence: Fence | None
    sort_key: SortKey
    loop: asyncio.AbstractEventLoop | None = None
    future: asyncio.Future[Any] | None = None
    result: Any = None
    error: BaseException | None = None


class Writer:
    """A thread with the only connection that writes.

    Attributes:
        generation: Grows with every new connection; what an older one held is lost.
    """

    def __init__(self, engine: Engine, *, prepare: Callable[[Connection], None] | None = None) -> None:
        """Make a writer; prepare runs once on each new connection."""
        self._engine = engine
        self._prepare = prepare
        self._needs_heartbeat = engine.dialect.name != "sqlite"
        self._queue: SimpleQueue[_Operation | None] = SimpleQueue()
        self._connection: Connection | None = None
        self._thread = threading.Thread(target=self._run, name="botservice-writer", daemon=True)
        self._is_closed = False
        self._on_lost: list[Callable[[], None]] = []
        self.generation = 0
        self.is_connected = False

    def start(self) -> None:
        """Start the thread; the connection is opened at the first write."""
        self._thread.start()

    def on_connection_lost(self, callback: Callable[[], None]) -> None:
        """Have callback called, in the writer's thread, when its connection is lost."""
        self._on_lost.append(callback)

    async def write(
        self, operation: Callable[[Connection], T], *, fence: Fence | None = None, sort_key: SortKey = ()
    ) -> T:
        """Return what operation returns, once its transaction is committed.

        A write that was issued happens, even where the task that awaits it is cancelled.

        Args:
            operation: Reads and writes through the connection it is given, and nothing else.
            sort_key: Orders the operations of one commit, so that two replicas lock rows in the same order.

        Raises:
            ClaimLost: fence no longer holds.
            StorageUnavailable: the database did not take it.
        """
        if self._is_closed:
            raise StorageUnavailable("the storage is closed")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._queue.put(_Operation(operation, fence, sort_key, loop, future))
        return await future

    def submit(self, operation: Callable[[Connection], object]) -> None:
        """Have operation done without waiting for it, from any thread."""
        if not self._is_closed:
            self._queue.put(_Operation(operation, None, ()))

    def close(self) -> None:
        """Commit what is waiting and end the thread. Blocks until that is done."""
        if not self._is_closed:
            self._is_closed = True
            self._queue.put(None)
            self._thread.join()

    def _run(self) -> None:
        is_open = True
        while is_open:
            batch, is_open = self._take()
            if batch:
                self._commit(batch)
                _resolve(batch)
            elif is_open:
                self._heartbeat()
        self._disconnect()

    def _take(self) -> tuple[list[_Operation], bool]:
        batch: list[_Operation] = []
        try:
            first = self._queue.get(timeout=HEARTBEAT_SECONDS if self._needs_heartbeat else None)
        except Empty:
            return batch, True
        while first is not None:
            batch.append(first)
            if len(batch) == MAX_BATCH or self._queue.empty():
                return batch, True
            first = self._queue.get_nowait()
        return batch, False

    def _commit(self, batch: Sequence[_Operation]) -> None:
        ordered = sorted(batch, key=lambda operation: tuple(map(str, operation.sort_key)))
        if len(ordered) > 1 and self._commit_together(ordered):
            return
        for operation in ordered:
            self._commit_together([operation], is_last_try=True)

    def _commit_together(self, batch: Sequence[_Operation], *, is_last_try: bool = False) -> bool:
        """Return whether every operation has its result or its final error."""
        try:
            connection = self._connect()
            with connection.begin():
                for operation in batch:
                    if operation.fence is not None:
                        operation.fence.check()
                    operation.result = operation.run(connection)
        except Exception as error:  # noqa: BLE001 - operations are foreign code here; the error goes to who asked
            if not is_last_try and not self._has_lost_connection(error):
                return False
            failure = self._translate(error)
            for operation in batch:
                operation.error = failure
        else:
            for operation in batch:
                operation.error = None
        return True

    def _connect(self) -> Connection:
        if self._connection is None:
            connection = self._engine.connect()
            if self._prepare is not None:
                self._prepare(connection)
            self._connection = connection
            self.generation += 1
            self.is_connected = True
        return self._connection

    def _has_lost_connection(self, error: Exception) -> bool:
        if self._connection is None:
            return True  # there was none to be had
        return isinstance(error, DBAPIError) and error.connection_invalidated

    def _translate(self, error: Exception) -> Exception:
        if isinstance(error, BotServiceError):
            return error
        lost = self._has_lost_connection(error)
        if lost:
            self._disconnect()
        if lost or isinstance(error, OperationalError):
            reason = str(getattr(error, "orig", error)).strip().partition("\n")[0]
            translated = StorageUnavailable(f"the database did not take a write: {reason}")
            translated.__cause__ = error
            return translated
        return error

    def _heartbeat(self) -> None:
        if self._connection is None:
            return
        try:
            with self._connection.begin():
                self._connection.exec_driver_sql("SELECT 1")
        except DBAPIError as error:
            logger.warning("storage.connection_lost", extra={"reason": type(error.orig).__name__})
            self._disconnect()

    def _disconnect(self) -> None:
        connection, self._connection = self._connection, None
        self.is_connected = False
        if connection is None:
            return
        with contextlib.suppress(DBAPIError):
            connection.close()
        for callback in self._on_lost:
            callback()


def _resolve(batch: Sequence[_Operation]) -> None:
    """Hand the results to the event loops that wait for them, with one call per loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Operation]] = {}
    for operation in batch:
        if operation.loop is not None:
            by_loop.setdefault(operation.loop, []).append(operation)
        elif operation.error is not None:
            logger.error("storage.unawaited_write_failed", exc_info=operation.error)
    for loop, operations in by_loop.items():
        with contextlib.suppress(RuntimeError):  # the loop that asked is closed: nobody waits
            loop.call_soon_threadsafe(_set_results, operations)


def _set_results(operations: Sequence[_Operation]) -> None:
    for operation in operations:
        if operation.future is None or operation.future.done():
            if operation.error is not None and not isinstance(operation.error, ClaimLost):
                logger.error("storage.unawaited_write_failed", exc_info=operation.error)
        elif operation.error is None:
            operation.future.set_result(operation.result)
        else:
            operation.future.set_exception(operation.error)
