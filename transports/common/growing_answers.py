"""Answers that grow on a platform: shown after a moment, and as often as its tempo allows."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol


class Surface(Protocol):
    """What an answer is shown on while it grows.

    Attributes:
        patience_seconds: How long the answer waits for a call that is on its way.
        refresh_seconds: When what is shown has to be shown again, though nothing is new; None for never.
    """

    patience_seconds: float
    refresh_seconds: float | None

    def rest(self) -> float:
        """Return the seconds for which nothing will be shown, whatever comes."""

    def fade(self) -> None:
        """Take note that what is shown has become old."""


class Growing:
    """Shows an answer while it is made. One that is there at once needs none of this."""

    def __init__(self, changed: asyncio.Event) -> None:
        self._changed = changed
        self._surface: Surface | None = None
        self._in_flight: asyncio.Task[Any] | None = None
        self._running: list[asyncio.Task[None]] = []

    def begin(self, *works: Coroutine[Any, Any, None]) -> None:
        """Do what shows the answer until it is there, side by side."""
        self._running = [asyncio.create_task(work, name="answer-grows") for work in works]

    async def close(self) -> None:
        """End it. What is on its way is waited for, briefly: it must not come after the answer."""
        for task in self._running:
            task.cancel()
        await asyncio.wait(self._running)
        if self._surface is not None and self._in_flight is not None and not self._in_flight.done():
            await asyncio.wait([self._in_flight], timeout=self._surface.patience_seconds)
            self._in_flight.cancel()
            await asyncio.wait([self._in_flight])

    async def grow(
        self, surface: Surface, due: Callable[[], float | None], paint: Callable[[], Awaitable[None]]
    ) -> None:
        """Bring a surface up to date whenever there is something new, at its own pace; not every piece is looked at.

        Args:
            due: Returns the seconds until something should be shown; None if nothing need be.
            paint: Shows what there is.
        """
        self._surface = surface
        while True:
            wait = due()
            if wait is None:
                self._changed.clear()
                await asyncio.sleep(surface.rest())
                await self._wait_for_change(surface)
            elif wait > 0:
                await asyncio.sleep(wait)
            else:
                await paint()

    async def finish(self, call: Coroutine[Any, Any, Any]) -> Any:
        """Return what comes of a call; it comes to its end also where the answer cuts short what shows it."""
        self._in_flight = asyncio.create_task(call)
        self._in_flight.add_done_callback(lambda task: task.cancelled() or task.exception())  # also where nobody waits
        return await asyncio.shield(self._in_flight)

    async def _wait_for_change(self, surface: Surface) -> None:
        try:
            async with asyncio.timeout(surface.refresh_seconds):
                await self._changed.wait()
        except TimeoutError:
            surface.fade()


def joined(pieces: list[str]) -> str:
    """Return what there is of a text; its pieces are put together once."""
    pieces[:] = ["".join(pieces)]
    return pieces[0]
