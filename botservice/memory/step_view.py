"""Steps as the model sees them, each rendered and counted once for as long as it stays as it is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from botservice.memory.chat_messages import step_messages
from botservice.memory.items import MemoryItem, revision_of

Count = Callable[[Sequence[dict[str, Any]]], int]
"""Returns how many tokens messages take."""


@dataclass(slots=True)
class RenderedStep:
    """The chat-completions messages of one step.

    Attributes:
        sizes: Their tokens, by the name of the encoding.
    """

    step: MemoryItem
    revision: int
    messages: list[dict[str, Any]]
    sizes: dict[str, int] = field(default_factory=dict)

    def size(self, encoding: str, count: Count) -> int:
        """Return the tokens of the messages; they are counted once for each encoding."""
        known = self.sizes.get(encoding)
        if known is None:
            known = self.sizes[encoding] = count(self.messages)
        return known


class StepView:
    """The rendered steps of one context."""

    def __init__(self) -> None:
        self._rendered: dict[tuple[int, tuple[str, ...]], RenderedStep] = {}

    def rendered(self, step: MemoryItem, memory_keys: tuple[str, ...] = ()) -> RenderedStep:
        """Return step rendered; the same object again while the step does not change."""
        key = (id(step), memory_keys)
        known = self._rendered.get(key)
        if known is not None and known.step is step and known.revision == revision_of(step):
            return known
        messages = step_messages(step, memory_keys=memory_keys)
        new = self._rendered[key] = RenderedStep(step, revision_of(step), messages)
        return new
