"""The readers of a process: threads with a connection each, and one consistent view of the database for each read."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from botservice.errors import StorageUnavailable
from botservice.storage.failures import as_unavailable, is_lost_connection, is_outage

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Read:
    query: Callable[[Connection], Any]
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]


class Readers:
    """Threads that read side by side."""

    def __init__(self, engine: Engine, count: int, *, name: str) -> None:
        """Make readers.

        Args:
            name: The database's, for the error where it does not answer.
        """
        self._engine = engine
        self._name = name
        self._queue: SimpleQueue[_Read | None] = SimpleQueue()
        self._closing = threading.Lock()
        self._is_closed = False
        self._threads = [
            threading.Thread(target=self._run, name=f"botservice-reader-{number}", daemon=True)
            for number in range(count)
        ]

    def start(self) -> None:
        """Start the threads; each opens its connection at its first read."""
        for thread in self._threads:
            thread.start()

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
            self._queue.put(_Read(query, loop, future))
        return await future

    def close(self) -> None:
        """Read what is waiting and end the threads. Blocks until that is done."""
        with self._closing:
            is_first = not self._is_closed
            self._is_closed = True
        if is_first:
            for _ in self._threads:
                self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        reader = _Reader(self._engine, self._name)
        while (read := self._queue.get()) is not None:
            if not read.future.cancelled():
                result, error = reader.attempt(read.query)
                with contextlib.suppress(RuntimeError):  # the loop that asked is closed: nobody waits
                    read.loop.call_soon_threadsafe(_set_result, read.future, result, error)
            del read  # what it refers to is not kept until the next one comes
        reader.close()


class _Reader:
    """One thread's connection."""

    def __init__(self, engine: Engine, name: str) -> None:
        self._engine = engine
        self._name = name
        self._connection: Connection | None = None

    def attempt(self, query: Callable[[Connection], Any]) -> tuple[Any, BaseException | None]:
        """Return what query returns, or its error."""
        try:
            return self._read(query), None
        except StopIteration as error:  # a future refuses it
            return None, RuntimeError(f"a read raised {error!r}")
        except BaseException as error:  # noqa: BLE001 - queries are foreign code; the error goes to who asked
            return None, error

    def close(self) -> None:
        """Give the connection back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with contextlib.suppress(SQLAlchemyError):
                connection.close()

    def _read(self, query: Callable[[Connection], Any]) -> Any:
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

    def _read_once(self, query: Callable[[Connection], Any]) -> Any:
        if self._connection is None:
            self._connection = self._engine.connect()
        connection = self._connection
        try:
            with connection.begin() as transaction:
                result = query(connection)
                transaction.rollback()  # there is nothing to commit
                return result
        except SQLAlchemyError:
            self.close()
            raise


def _set_result(future: asyncio.Future[Any], result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
