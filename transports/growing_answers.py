"""Answers that grow on a platform: shown to whoever has waited for a moment, and as often as its tempo allows."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterable
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


class Growing(ABC):
    """What is seen of an answer while it is made. One that is there at once is not seen growing, and costs nothing."""

    def __init__(self, first_sign_seconds: float) -> None:
        self._text: list[str] = []
        self._changed = asyncio.Event()
        self._surface: Surface | None = None
        self._in_flight: asyncio.Task[Any] | None = None
        self._running = [asyncio.create_task(self._begin_after(first_sign_seconds), name="answer-begins")]

    async def close(self) -> None:
        """End it. What is on its way is waited for, briefly: it must not come after the answer."""
        for task in self._running:
            task.cancel()
        await asyncio.wait(self._running)
        if self._surface is not None and self._in_flight is not None and not self._in_flight.done():
            await asyncio.wait([self._in_flight], timeout=self._surface.patience_seconds)
            self._in_flight.cancel()
            await asyncio.wait([self._in_flight])

    @abstractmethod
    def _begin(self) -> Iterable[Coroutine[Any, Any, None]]:
        """Return what shows the answer from now on until it is there."""

    @abstractmethod
    def _due(self) -> float | None:
        """Return the seconds until something should be shown; None if nothing need be."""

    @abstractmethod
    async def _paint(self) -> None:
        """Show what there is."""

    def _said(self) -> str:
        """Return what there is of the answer; its pieces are put together once."""
        self._text[:] = ["".join(self._text)]
        return self._text[0]

    async def _begin_after(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._running += [asyncio.create_task(work, name="answer-grows") for work in self._begin()]

    async def _grow(self, surface: Surface) -> None:
        """Bring a surface up to date whenever there is something new, at its own pace; not every piece is looked at."""
        self._surface = surface
        while True:
            wait = self._due()
            if wait is None:
                self._changed.clear()
                await asyncio.sleep(surface.rest())
                await self._wait_for_change(surface)
            elif wait > 0:
                await asyncio.sleep(wait)
            else:
                await self._paint()

    async def _wait_for_change(self, surface: Surface) -> None:
        try:
            async with asyncio.timeout(surface.refresh_seconds):
                await self._changed.wait()
        except TimeoutError:
            surface.fade()

    async def _finish(self, call: Coroutine[Any, Any, Any]) -> Any:
        """Return what comes of a call; it comes to its end also where the answer cuts short what shows it."""
        self._in_flight = asyncio.create_task(call)
        return await asyncio.shield(self._in_flight)
