"""Steps as the model sees them, each rendered once for as long as it stays as it is."""

from typing import Any

from botservice.memory.chat_messages import step_messages
from botservice.memory.items import MemoryItem, revision_of


class StepView:
    """The rendered steps of one context."""

    def __init__(self) -> None:
        self._rendered: dict[tuple[int, tuple[str, ...]], tuple[MemoryItem, int, list[dict[str, Any]]]] = {}

    def messages(self, step: MemoryItem, memory_keys: tuple[str, ...] = ()) -> list[dict[str, Any]]:
        """Return the chat-completions messages of step; the same objects again while it does not change."""
        key = (id(step), memory_keys)
        known = self._rendered.get(key)
        if known is not None and known[0] is step and known[1] == revision_of(step):
            return known[2]
        rendered = step_messages(step, memory_keys=memory_keys)
        self._rendered[key] = (step, revision_of(step), rendered)
        return rendered
