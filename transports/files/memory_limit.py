"""How much of the files that people send is held at once: many large ones wait for each other."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator

_MAX_BYTES = 64 * 1024 * 1024


class MemoryLimit:
    """A limit of so many bytes; those who need more than is free wait, in the order of coming."""

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._free = max_bytes
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    @contextlib.asynccontextmanager
    async def taking(self, size_bytes: int) -> AsyncIterator[None]:
        """Hold so many bytes while a block runs; more than there is counts as all."""
        size = min(size_bytes, self._max_bytes)
        if self._waiting or size > self._free:
            await self._wait(size)
        else:
            self._free -= size
        try:
            yield
        finally:
            self._give_back(size)

    async def _wait(self, size: int) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((size, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():  # it was given, and nobody takes it
                self._give_back(size)
            raise

    def _give_back(self, size: int) -> None:
        self._free += size
        while self._waiting and (self._waiting[0][1].done() or self._waiting[0][0] <= self._free):
            wanted, turn = self._waiting.popleft()
            if not turn.done():
                self._free -= wanted
                turn.set_result(None)
