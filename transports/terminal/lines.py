"""Reading typed lines as they come."""

import asyncio
import contextlib
import threading
from typing import Protocol, TextIO


class Lines(Protocol):
    """Where lines come from."""

    async def next(self) -> str | None:
        """Return the next line, or None at the end and if nothing can be read."""


class PlainLines:
    """The lines of a file, read in a thread of their own that dies with the process."""

    def __init__(self, source: TextIO) -> None:
        self._source = source
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._wanted = threading.Semaphore(0)
        self._loop: asyncio.AbstractEventLoop | None = None

    async def next(self) -> str | None:
        """Return the next line."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            threading.Thread(target=self._read, args=(self._loop,), daemon=True).start()
        self._wanted.release()
        return await self._queue.get()

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        line: str | None = ""
        while line is not None:
            self._wanted.acquire()
            try:
                line = self._source.readline() or None
            except (OSError, ValueError):
                line = None
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._queue.put_nowait, line)
