"""Overwriting the bytes of deleted rows in an SQLite file: at once where that is quick, or in the background."""

import asyncio
import contextlib
import logging
import sqlite3
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final

from botservice.core.errors import StorageError
from botservice.storage.claims import SharedFile
from botservice.storage.sqlite_gaps import GapSweep

logger = logging.getLogger(__name__)

PATIENCE_SECONDS: Final = 3.0  # so long a caller waits who wants to know
_GATHERING_SECONDS: Final = 2.0  # what nobody waits for is done together
_PAUSES_SECONDS: Final = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0)  # while others read what is to be cleaned


class Scrubber:
    """Cleans one file, one pass after the other.

    Attributes:
        is_due: Whether something may be left. Nobody knows what an earlier process has left undone.
    """

    def __init__(self, path: Path) -> None:
        self.is_due = True
        self._path = path
        self._shared = SharedFile.at(path)
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
        """Clean the file a little later, together with what else is deleted until then."""
        self._want()
        return self._start()

    async def close(self) -> None:
        """Leave the rest for the next process."""
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
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_GATHERING_SECONDS):
                        await self._hurry.wait()
                self._hurry.clear()
                wanted = self._wanted
                await self._sweep()
                self._done, self.is_due = wanted, wanted < self._wanted
        except (OSError, sqlite3.Error, StorageError) as error:
            logger.warning("storage.not_scrubbed", extra={"reason": str(error)})

    async def _sweep(self) -> None:
        """Clean the whole file once, and try again where readers are in the way."""
        sweep = GapSweep(self._path, self._shared.descriptor())
        waited = 0
        while not sweep.is_done:
            if await _whole(asyncio.to_thread(sweep.step)):
                waited = 0
                continue
            await asyncio.sleep(_PAUSES_SECONDS[min(waited, len(_PAUSES_SECONDS) - 1)])
            waited += 1


async def _whole(work: Coroutine[Any, Any, bool]) -> bool:
    """Return the result of work; if this is cancelled, only after work has ended."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
