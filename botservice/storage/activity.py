"""Whether a database is in use: what looks at it again and again by itself leaves it alone where nothing happens.

A serverless Postgres sleeps while nobody asks it anything, and costs little then.
"""

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

in_background: Final[ContextVar[bool]] = ContextVar("in_background", default=False)
"""Whether this task looks at the database by itself, so that what it asks is no use of it."""


class Activity:
    """Knows since when a database has not been used, and lets loops pause meanwhile."""

    def __init__(self, rest_seconds: float | None, awake_seconds: float, is_busy: Callable[[], bool]) -> None:
        """Begin with a database in use.

        Args:
            rest_seconds: How long a loop pauses at most while nothing happens; None: the database is never left alone.
            awake_seconds: How long after its last use it counts as in use.
            is_busy: Returns whether work is under way that must not lose its connection.
        """
        self._rest_seconds = rest_seconds
        self._awake_seconds = awake_seconds
        self._is_busy = is_busy
        self._used_at = time.monotonic()
        self._guard = threading.Lock()
        self._pausing: set[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = set()

    @property
    def is_resting(self) -> bool:
        """Whether the database is to be left alone."""
        return self._rest_seconds is not None and self._unused_seconds() > self._awake_seconds and not self._is_busy()

    def note(self) -> None:
        """Note that the database is used, unless a loop looks at it by itself. From any thread."""
        if self._rest_seconds is None or in_background.get():
            return
        self._used_at = time.monotonic()
        with self._guard:
            pausing, self._pausing = self._pausing, set()
        for loop, event in pausing:
            with contextlib.suppress(RuntimeError):  # its loop is closed
                loop.call_soon_threadsafe(event.set)

    def keep_awake(self) -> None:
        """Never leave the database alone from now on."""
        self.note()
        self._rest_seconds = None

    async def pause(self, seconds: float) -> None:
        """Return after some seconds; while the database is left alone, as soon as it is used, or after its rest."""
        if not self.is_resting:
            await asyncio.sleep(seconds)
            return
        place = (asyncio.get_running_loop(), asyncio.Event())
        with self._guard:
            self._pausing.add(place)
        try:
            async with asyncio.timeout(max(seconds, self._rest_seconds or 0.0)):
                await place[1].wait()
        except TimeoutError:
            pass
        finally:
            with self._guard:
                self._pausing.discard(place)

    async def until_resting(self) -> None:
        """Return when the database is to be left alone."""
        while not self.is_resting:  # noqa: ASYNC110 - time passes
            await asyncio.sleep(max(1.0, self._awake_seconds - self._unused_seconds()))

    def _unused_seconds(self) -> float:
        return time.monotonic() - self._used_at
