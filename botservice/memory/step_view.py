"""Steps as the model sees them, each rendered and counted once for as long as it stays as it is."""

from collections.abc import Callable, Iterator, Sequence
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
        size = self.sizes.get(encoding)
        if size is None:
            size = self.sizes[encoding] = count(self.messages)
        return size


class StepView:
    """The rendered steps of one context."""

    def __init__(self) -> None:
        self._rendered: dict[tuple[str, ...], dict[int, RenderedStep]] = {}

    def newest(
        self, steps: Sequence[MemoryItem | None], start: int, end: int, memory_keys: tuple[str, ...] = ()
    ) -> Iterator[RenderedStep]:
        """Yield those of steps[start:end] that the model sees, newest first.

        They are the same objects again while a step does not change.
        """
        known = self._rendered.setdefault(memory_keys, {})
        for place in range(end - 1, start - 1, -1):
            step = steps[place]
            rendered = known.get(id(step))
            if rendered is None or rendered.step is not step or rendered.revision != revision_of(step):
                if step is None:
                    continue
                messages = step_messages(step, memory_keys=memory_keys)
                rendered = known[id(step)] = RenderedStep(step, revision_of(step), messages)
            if rendered.messages:
                yield rendered
