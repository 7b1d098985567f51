"""The readers of a process: threads with a connection each, and one consistent view of the database for each read."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from botservice.core.errors import StorageUnavailable
from botservice.storage.failures import as_unavailable, is_lost_connection, is_outage

T = TypeVar("T")
Query = Callable[[Connection], Any]
Outcome = tuple[Any, BaseException | None]

_LOOK_SECONDS = 1.0  # how often a thread without work looks whether its connection is to be closed


@dataclass(frozen=True, slots=True)
class _Read:
    query: Query
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class Readers:
    """Threads that read side by side; they start, and connect, when there is something to read."""

    def __init__(
        self,
        engine: Engine,
        count: int,
        *,
        name: str,
        before_read: Callable[[], object] = lambda: None,
        is_resting: Callable[[], bool] | None = None,
    ) -> None:
        """Make readers.

        Args:
            name: The database's, for the error where it does not answer.
            before_read: Called in a reader's thread before each of its views of the database.
            is_resting: Returns whether connections are to be closed while nothing is read; None: they stay open.
        """
        self._is_resting = is_resting
        self._engine = engine
        self._before_read = before_read
        self._name = name
        self._queue: SimpleQueue[_Read | None] = SimpleQueue()
        self._closing = threading.Lock()
        self._is_closed = False
        self._count = count
        self._threads: list[threading.Thread] = []

    async def read(self, query: Callable[[Connection], T]) -> T:
        """Return what query returns.

        Raises:
            StorageUnavailable: the database does not answer.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        with self._closing:
            if self._is_closed:
                raise StorageUnavailable("the storage is closed")
            if len(self._threads) < self._count:
                self._start()
            self._queue.put(_Read(query, loop, future))
        return await future

    def close(self) -> None:
        """Finish the reads that wait and end the threads. Blocks until that is done."""
        with self._closing:
            is_first = not self._is_closed
            self._is_closed = True
        if is_first:
            for _ in self._threads:
                self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _start(self) -> None:
        try:
            for number in range(len(self._threads), self._count):
                thread = threading.Thread(target=self._run, name=f"botservice-reader-{number}", daemon=True)
                thread.start()
                self._threads.append(thread)
        except RuntimeError as error:  # the system has no more: those that have started read alone, until it has
            if not self._threads:
                raise StorageUnavailable(f"nothing can be read: {error}") from error

    def _run(self) -> None:
        reader = _ReaderThread(self._engine, self._name)
        wait_seconds = None if self._is_resting is None else _LOOK_SECONDS
        while True:
            try:
                read = self._queue.get(timeout=wait_seconds)
            except Empty:
                if self._is_resting is not None and self._is_resting():
                    reader.rest()
                continue
            if read is None:
                break
            self._before_read()
            if not read.future.cancelled():
                _resolve(read, reader.attempt(read.query))
            del read  # what it refers to is not kept until the next one comes
        reader.close()


class _ReaderThread:
    """One thread's connection."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._name = name
        self._connection: Connection | None = None

    def attempt(self, query: Query) -> Outcome:
        """Return what a query returns, or its error."""
        try:
            return self._read(query), None
        except StopIteration as error:  # a future refuses it
            return None, RuntimeError(f"a read raised {error!r}")
        except BaseException as error:  # noqa: BLE001 - queries are foreign code; the error goes to who asked
            return None, error

    def rest(self) -> None:
        """Close the connection itself, if there is one, until something is read."""
        if self._connection is not None:
            self._connection.invalidate()
            self.close()

    def close(self) -> None:
        """Give the connection back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(SQLAlchemyError):
                connection.close()

    def _read(self, query: Query) -> Any:
        try:
            try:
                return self._read_once(query)
            except DBAPIError as error:
                if not is_lost_connection(error):
                    raise
            # It had died unnoticed, most likely when the server restarted. Reading changes nothing: do it again.
            return self._read_once(query)
        except SQLAlchemyError as error:
            if is_outage(error):
                raise as_unavailable(error, f"the database {self._name} does not answer") from error
            raise

    def _read_once(self, query: Query) -> Any:
        if self._connection is None:
            self._connection = self._engine.connect()
        connection = self._connection
        try:
            with connection.begin() as transaction:
                result = query(connection)
                transaction.commit()  # not a rollback, at which psycopg forgets the statements that it has prepared
                return result
        except SQLAlchemyError:
            self.close()
            raise


def _resolve(read: _Read, outcome: Outcome) -> None:
    """Hand what was read to the event loop that waits for it."""
    with contextlib.suppress(RuntimeError):  # the loop that asked is closed: nobody waits
        read.loop.call_soon_threadsafe(_set_result, read.future, *outcome)


def _set_result(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
