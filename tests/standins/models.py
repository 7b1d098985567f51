"""Models that tests lead by the hand."""

import asyncio
from typing import Any

from botservice import ChatLLM, ChatResponse, ToolCall


def echo(prompt: list[Any]) -> str:
    """Answer with what was said last."""
    content = prompt[-1]["content"]
    if isinstance(content, list):
        content = next((part["text"] for part in content if part["type"] == "text"), "a picture")
    return f"You said: {content}"


class Typist(ChatLLM):
    """A model that writes when a test tells it to: `write` adds to the answer, None or `finish` ends it."""

    model = "typist"

    def __init__(self) -> None:
        self.pieces: asyncio.Queue[str | BaseException | ToolCall | list[ToolCall] | None] = asyncio.Queue()
        self.prompts: list[list[Any]] = []
        self.is_asked = asyncio.Event()

    def write(self, *pieces: Any) -> None:
        for piece in pieces:
            self.pieces.put_nowait(piece)

    def finish(self) -> None:
        self.pieces.put_nowait(None)

    async def chat(self, messages, tools=(), *, on_text=None) -> ChatResponse:
        self.prompts.append(list(messages))
        self.is_asked.set()
        said: list[str] = []
        while (piece := await self.pieces.get()) is not None:
            if isinstance(piece, BaseException):
                raise piece
            if isinstance(piece, ToolCall | list):
                return ChatResponse("".join(said), tuple(piece) if isinstance(piece, list) else (piece,))
            said.append(piece)
            if on_text is not None:
                on_text(piece)
        return ChatResponse("".join(said))
