"""What a model says, piece by piece, for a program that listens."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Self, TypeVar

from botservice.messages import ToolCall

T = TypeVar("T")
_PARAGRAPH = "\n\n"


class Pieces:
    """Shows a turn's progress to a program: an asynchronous iterator of texts that ends with the work on the turn."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._current = ""  # what the model has said in this call
        self._is_begun = False

    def on_text(self, piece: str) -> None:
        """Take the next piece of the answer."""
        if not piece:
            return
        self._queue.put_nowait(piece if self._current or not self._is_begun else _PARAGRAPH + piece)
        self._current += piece
        self._is_begun = True

    def on_activity(self, activity: str) -> None:  # noqa: ARG002 - only texts are shown
        """Take note that the model has said what it had to say before this."""
        self._current = ""

    def on_progress(self, call: ToolCall, text: str) -> None:
        """Do nothing: only texts are shown."""

    def on_restart(self) -> None:
        """Take note that the answer begins anew."""
        self._current = ""

    async def close(self) -> None:
        """Do nothing: the end comes with the end of the work."""

    async def feed(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what work returns, and end what is shown then."""
        try:
            return await work
        finally:
            self._queue.put_nowait(None)

    def rest_of(self, answer: str) -> str:
        """Return what of an answer was not shown yet."""
        said = self._current.strip()
        if said and answer.strip().startswith(said):
            return answer.strip()[len(said) :]
        return _PARAGRAPH + answer if self._is_begun else answer

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        piece = await self._queue.get()
        if piece is None:
            raise StopAsyncIteration
        return piece
