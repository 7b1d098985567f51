"""Cutting work off because somebody wants it to stop."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class WorkCut(Exception):
    """Work was cut off, or not begun, because somebody interrupted it."""


class Interruption:
    """Whether somebody wants a run to stop; cancels what it waits for at that moment.

    Attributes:
        is_asked: Whether somebody does.
    """

    def __init__(self) -> None:
        self.is_asked = False
        self._busy: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    def ask(self) -> None:
        """Cut off what is under way, and let nothing more begin. May be called from any thread."""
        self.is_asked = True
        if self._loop is None or self._loop.is_closed():
            return
        if _running_loop() is self._loop:
            self._cancel()
        else:
            self._loop.call_soon_threadsafe(self._cancel)

    async def guard(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what work returns. Everything outside of this, storing above all, is never cut off.

        Raises:
            WorkCut: somebody interrupted it.
        """
        if self.is_asked:
            work.close()
            raise WorkCut
        self._loop = asyncio.get_running_loop()
        busy: asyncio.Task[T] = asyncio.ensure_future(work)
        self._busy = busy
        try:
            await busy
        except asyncio.CancelledError:
            if not busy.done():
                busy.cancel()
                await asyncio.wait([busy])
            if self.is_asked and not _is_cancelled_from_outside():
                raise WorkCut from None
            raise
        else:
            return busy.result()
        finally:
            self._busy = None

    def _cancel(self) -> None:
        # A tool that interrupts its own run is let through to its end.
        if self._busy is not None and self._busy is not asyncio.current_task():
            self._busy.cancel()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:  # a thread without a loop
        return None


def _is_cancelled_from_outside() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
