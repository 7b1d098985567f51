"""Removing the bytes of deleted rows from an SQLite file with VACUUM: on request, or at a quiet moment.

`secure_delete` overwrites a row where it is deleted. Where SQLite has rebuilt a page before that, a copy of the row may
stay between the page's rows; VACUUM writes every page again. While it runs, writes wait: a second for each 150 MB or
so. The write-ahead log is emptied after it.
"""

import asyncio
import contextlib
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from botservice.core.errors import StorageError
from botservice.storage.sqlite_files import STEPS_AT_ONCE
from botservice.storage.statements import BEGIN_WRITING, run_text

logger = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 3.0  # so long a caller waits who wants to know
_GATHERING_SECONDS: Final = 2.0  # what nobody waits for is done together
_LONGEST_WAIT_SECONDS: Final = 0.25  # for readers of the log: writers have to wait as well
_QUIET_WITHIN_SECONDS: Final = 60.0  # after that, turns have to wait
_LOOK_SECONDS: Final = 0.2
_UNNOTICED_BYTES: Final = 128 * 1024 * 1024  # written again in a second or so
_REST_SECONDS_PER_BYTE: Final = 1200 / 2**30  # writes wait for half a percent of the time at most
_PAUSES_SECONDS: Final = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # while others read the log

Vacuum = Callable[[Callable[[], bool]], Awaitable[None]]


class Scrubber:
    """Cleans one file, again and again.

    Attributes:
        is_due: Whether something may be left. Nobody knows what an earlier process has left undone.
    """

    def __init__(self, path: Path, vacuum: Vacuum, *, is_quiet: Callable[[], bool] = lambda: True) -> None:
        """Make a scrubber.

        Args:
            vacuum: Runs `vacuum_file` where nobody writes meanwhile.
            is_quiet: Returns whether nobody would wait for it.
        """
        self.is_due = True
        self._path = path
        self._vacuum = vacuum
        self._is_quiet = is_quiet
        self._is_closing = False
        self._rests_until = 0.0
        self._wanted = 0
        self._done = 0
        self._hurry = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def scrub(self, *, patience_seconds: float = PATIENCE_SECONDS) -> bool:
        """Clean the file of all that is deleted by now; return whether that is done, or goes on in the background."""
        wanted = self._want()
        self._hurry.set()
        task = self._start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(patience_seconds):
                await asyncio.shield(task)
        return self._done >= wanted

    def soon(self) -> asyncio.Task[None]:
        """Clean the file at the next quiet moment, together with what else is deleted until then."""
        self._want()
        return self._start()

    async def close(self) -> None:
        """Leave the rest for the next process."""
        self._is_closing = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def _want(self) -> int:
        self._wanted += 1
        self.is_due = True
        return self._wanted

    def _start(self) -> asyncio.Task[None]:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="botservice-scrubber")
        return self._task

    async def _run(self) -> None:
        try:
            while self._done < self._wanted:
                await self._wait_for_quiet()
                self._hurry.clear()
                wanted = self._wanted
                await self._clean()
                self._done, self.is_due = wanted, wanted < self._wanted
        except (OSError, sqlite3.Error, StorageError) as error:
            logger.warning("storage.not_scrubbed", extra={"reason": str(error)})

    async def _wait_for_quiet(self) -> None:
        """Return when nobody would wait, or it is urgent; not too soon after the last time, for a large file."""
        await asyncio.sleep(max(0.0, self._rests_until - time.monotonic()))
        wait, last = _GATHERING_SECONDS, time.monotonic() + _QUIET_WITHIN_SECONDS
        while not self._hurry.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._hurry.wait()
            if self._is_quiet() or time.monotonic() > last:
                return
            wait = _LOOK_SECONDS

    async def _clean(self) -> None:
        """Write the file again, and empty the log as soon as nobody reads it."""
        await self._vacuum(lambda: self._is_closing)
        noticed = max(0, self._path.stat().st_size - _UNNOTICED_BYTES)
        self._rests_until = time.monotonic() + noticed * _REST_SECONDS_PER_BYTE
        waited = 0
        while not await asyncio.to_thread(self._empty_log):
            await asyncio.sleep(_PAUSES_SECONDS[min(waited, len(_PAUSES_SECONDS) - 1)])
            waited += 1

    def _empty_log(self) -> bool:
        """Return whether the log could be emptied."""
        with contextlib.closing(sqlite3.connect(self._path, timeout=_LONGEST_WAIT_SECONDS)) as connection:
            try:
                return not connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0]
            except sqlite3.OperationalError:
                return False


def vacuum_file(connection: Connection, *, is_unwanted: Callable[[], bool]) -> Exception | None:
    """Write an SQLite file again, outside the transaction that is open, and return why that was not possible.

    Args:
        is_unwanted: Returns whether to stop, which changes nothing.
    """
    driver: sqlite3.Connection = connection.connection.dbapi_connection  # type: ignore[assignment]  # it is SQLite's
    run_text(connection, "COMMIT")
    driver.set_progress_handler(is_unwanted, STEPS_AT_ONCE)
    try:
        driver.execute("VACUUM")
    except sqlite3.Error as error:
        return error
    finally:
        driver.set_progress_handler(None, 0)
        run_text(connection, BEGIN_WRITING)
    return None
