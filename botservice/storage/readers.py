"""The readers of a process: threads with a connection each, and one consistent view of the database for each read.

On SQLite, short reads are done where they are asked for: it answers in less time than handing a question to a thread
takes.
"""

import asyncio
import contextlib
import math
import sqlite3
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any, TypeVar, cast

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from botservice.core.errors import StorageUnavailable
from botservice.storage.failures import as_unavailable, is_lost_connection, is_outage

T = TypeVar("T")
Query = Callable[[Connection], Any]
Outcome = tuple[Any, BaseException | None]

_LOOK_SECONDS = 1.0  # how often a thread without work looks whether its connection is to be closed
_LONGEST_IN_PLACE_SECONDS = 0.01
_LARGEST_IN_PLACE_BYTES = 256 * 1024  # of one value, such as a file's bytes
_IN_PLACE = "botservice_in_place"  # of a connection
_STEPS_UNWATCHED = 1_000  # of SQLite's own machine: some tens of microseconds


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


class NotInPlace(Exception):
    """A read is not done where it was asked for: a thread does it."""


READ_ERRORS = (SQLAlchemyError, NotInPlace)
"""What a failed read raises inside a query. The caller sees other errors: `Storage.read` names them."""


def leave_to_thread(connection: Connection) -> None:
    """Return if a reader's thread calls this: long work besides SQL is not done on the event loop.

    Raises:
        NotInPlace: an event loop reads.
    """
    if connection.info.get(_IN_PLACE):
        raise NotInPlace


class ReaderInPlace:
    """Reads an SQLite file in the thread that asks, which runs an event loop that others wait for.

    With a write-ahead log, who reads waits for no writer. What takes long after all is ended by SQLite itself.
    """

    def __init__(self, engine: Engine) -> None:
        """Connect. Blocks."""
        self._connection = engine.connect()
        self._connection.detach()  # it never goes back among those that may wait
        self._connection.info[_IN_PLACE] = True
        self._is_free = threading.Lock()  # several event loops may have one storage
        self._ends_at = math.inf
        self._driver = cast("sqlite3.Connection", self._connection.connection.dbapi_connection)
        self._driver.execute("PRAGMA busy_timeout=0")
        self._driver.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LARGEST_IN_PLACE_BYTES)
        self._driver.set_progress_handler(self._is_over, _STEPS_UNWATCHED)
        # For SQLAlchemy one transaction lasts for good: it takes longer to begin and end one than SQLite to answer.
        self._connection.begin()
        self._driver.rollback()

    def read(self, query: Callable[[Connection], T]) -> T:
        """Return what query returns.

        Raises:
            NotInPlace: it takes long, says so, or the database does not answer at once.
        """
        if not self._is_free.acquire(blocking=False):
            raise NotInPlace
        try:
            self._ends_at = time.monotonic() + _LONGEST_IN_PLACE_SECONDS
            try:
                self._driver.execute("BEGIN")
                return query(self._connection)
            finally:
                self._driver.rollback()
        except (SQLAlchemyError, sqlite3.Error) as error:
            raise NotInPlace from error
        finally:
            self._is_free.release()

    def close(self) -> None:
        """Disconnect, when the read that is being done has ended."""
        with self._is_free:
            self._connection.close()

    def _is_over(self) -> bool:
        return time.monotonic() > self._ends_at


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
