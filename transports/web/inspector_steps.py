"""A turn as it can be read: each step with what the model was given, what it wanted, and what came of it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, zip_longest
from typing import Any, Final

from botservice.conversation.field_values import Timing
from botservice.conversation.items import MemoryItem
from botservice.conversation.readable_values import readable
from botservice.conversation.replay import sub_run_text, visible
from botservice.conversation.step_parts import PartKind, content_of, prompt_messages, section_names, step_parts
from botservice.conversation.steps import (
    ActionStep,
    FailedStep,
    FinalAnswerStep,
    PlanningStep,
    SystemPromptStep,
    TaskStep,
)
from botservice.core.messages import TokenUsage

_SHOWN_ELSEWHERE: Final = ("prompt_sections", "prompt_facts", "model_attempts")
_LONGEST: Final = 20_000  # characters of one text
SECTION_LABELS: Final = {
    "system": "Instructions",
    "instructions": "Instructions",
    "notes": "Notes of the chat",
    "earlier": "Steps of earlier turns",
    "waiting": "What waits",
    "around": "Tools, and what the server adds",
    "": "Without a section",
    "person": "Known of the person",
    "documents": "Passages of documents",
    "found": "Found by searching",
    "window": "Window",
    "question": "Question",
    "steps": "Steps so far",
}


_TITLES: Final[Mapping[type[MemoryItem], str]] = {
    TaskStep: "Question",
    PlanningStep: "Plan",
    FinalAnswerStep: "Answer",
    SystemPromptStep: "Instructions",
}


@dataclass(frozen=True, slots=True)
class LabelledText:
    """A text with its label.

    Attributes:
        parts: What is folded under the label, where there is more than a text.
        is_open: Whether it is unfolded at first.
        call: Which of the step's calls it is about, if it is one.
    """

    label: str
    text: str = ""
    kind: PartKind = PartKind.TEXT
    parts: "Sequence[LabelledText]" = ()
    is_open: bool = False
    call: int | None = None


@dataclass(frozen=True, slots=True)
class Block:
    """A step."""

    title: str
    facts: list[str]
    parts: list[LabelledText]

    @property
    def groups(self) -> "list[tuple[int | None, list[LabelledText]]]":
        """Its parts, with those of a call together; the number of the call comes before them."""
        return [(call, list(parts)) for call, parts in groupby(self.parts, lambda part: part.call)]


def show_steps(steps: Iterable[MemoryItem], took: Sequence[float | None] = ()) -> list[Block]:
    """Return steps for the page. The first prompt is unfolded down to what was found for it.

    Args:
        took: For how many seconds each step was at work, where that is not all of its time.
    """
    blocks = [
        Block(_title(step, number), list(_facts(step, lasted)), list(_parts(step)))
        for (number, step), lasted in zip_longest(number_actions(steps), took)
    ]
    first = next(((block, part) for block in blocks for part in block.parts if part.parts), None)
    if first is not None:
        block, part = first
        block.parts[block.parts.index(part)] = replace(part, is_open=True)
    return blocks


def number_actions(steps: Iterable[MemoryItem]) -> Iterator[tuple[int, MemoryItem]]:
    """Yield steps with their number within their turn, whatever was numbered before it; plans and answers take none."""
    number = 0
    for step in steps:
        number += isinstance(step, ActionStep)
        yield number, step


def show_text(value: Any) -> str:
    """Return a value as text in which nothing is hidden and nothing turns the direction."""
    text = visible(readable(value)).strip("\n")
    missing = len(text) - _LONGEST
    return text if missing <= 0 else f"{text[:_LONGEST]}\n… {missing:,} more characters"


def _title(step: MemoryItem, number: int) -> str:
    if isinstance(step, ActionStep):
        return f"Step {number}" + (", failed" if isinstance(step, FailedStep) else "")
    return next((title for kind, title in _TITLES.items() if isinstance(step, kind)), visible(type(step).__name__))


def _facts(step: MemoryItem, took: float | None) -> Iterator[str]:
    timing, usage = step.get_value("timing"), step.get_value("token_usage")
    if isinstance(timing, Timing) and timing.duration_seconds is not None:
        yield f"{timing.duration_seconds if took is None else took:.2f} s"
    if isinstance(usage, TokenUsage):
        yield f"{usage.input_tokens:,} tokens in"
        yield f"{usage.output_tokens:,} out"
        if usage.cached_tokens:
            yield f"{usage.cached_tokens:,} cached"
        if usage.reasoning_tokens:
            yield f"{usage.reasoning_tokens:,} thinking"
    for fact in (step.get_value("model"), step.get_value("finish_reason")):
        if isinstance(fact, str) and fact:
            yield visible(fact)


def _parts(step: MemoryItem) -> Iterator[LabelledText]:
    yield from _prompt(step)
    for part in step_parts(step, sub_run_text):
        if part.label not in _SHOWN_ELSEWHERE:
            yield LabelledText(show_text(part.label), show_text(part.text), part.kind, call=part.call)


def _prompt(step: MemoryItem) -> Iterator[LabelledText]:
    """Yield what the model was given, in the sections that it was made of."""
    messages = prompt_messages(step)
    if not messages:
        return
    sections: dict[str, list[LabelledText]] = {}
    for name, message in zip(section_names(step, messages), messages, strict=True):
        sections.setdefault(name, []).append(
            LabelledText(show_text(message.get("role")), show_text(content_of(message)))
        )
    yield LabelledText(
        f"What the model was given: {len(messages)} {'message' if len(messages) == 1 else 'messages'}",
        parts=[
            LabelledText(SECTION_LABELS.get(name, show_text(name)), parts=parts, is_open=name == "found")
            for name, parts in sections.items()
        ],
    )
