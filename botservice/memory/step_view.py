"""Steps as the model sees them, each rendered and counted once for as long as it stays as it is."""

from collections.abc import Callable, Iterable, Sequence
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


class StepView:
    """The rendered steps of one context."""

    def __init__(self) -> None:
        self._rendered: dict[tuple[str, ...], dict[int, RenderedStep]] = {}

    def rendered(self, steps: Iterable[MemoryItem | None], memory_keys: tuple[str, ...] = ()) -> list[RenderedStep]:
        """Return those of steps that the model sees; the same objects again while a step does not change."""
        known = self._rendered.setdefault(memory_keys, {})
        shown = []
        for step in steps:
            rendered = known.get(id(step))
            if rendered is None or rendered.step is not step or rendered.revision != revision_of(step):
                if step is None:
                    continue
                messages = step_messages(step, memory_keys=memory_keys)
                rendered = known[id(step)] = RenderedStep(step, revision_of(step), messages)
            if rendered.messages:
                shown.append(rendered)
        return shown


def step_sizes(steps: Iterable[RenderedStep], encoding: str, count: Count) -> list[int]:
    """Return the tokens of each step; they are counted once for each encoding."""
    sizes = []
    for step in steps:
        size = step.sizes.get(encoding)
        if size is None:
            size = step.sizes[encoding] = count(step.messages)
        sizes.append(size)
    return sizes
