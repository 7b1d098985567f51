"""Messages of a person right after each other, for models whose templates want people and assistant to take turns."""

from collections.abc import Sequence
from typing import Any, Final

from botservice.llm.chat import ChatMessage

TURN_TAKING: Final = "two messages of a person in a row"
"""What such a server has refused."""


def join_neighbours(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return messages with those of people that stand side by side made into one."""
    joined: list[ChatMessage] = []
    for message in messages:
        if joined and message["role"] == joined[-1]["role"] == "user":
            joined[-1] = {**joined[-1], "content": _join(joined[-1]["content"], message["content"])}
        else:
            joined.append(message)
    return joined


def _join(first: Any, second: Any) -> Any:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [*_parts(first), *_parts(second)]


def _parts(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
