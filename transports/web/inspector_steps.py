"""A turn as it can be read: each step with what the model was given, what it wanted, and what came of it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import groupby, zip_longest
from typing import Any, Final

from botservice.conversation.field_values import Timing, ToolResult
from botservice.conversation.items import MemoryItem, declared_fields
from botservice.conversation.readable import describe, error_text, listed, readable
from botservice.conversation.replay import sub_run_text, visible
from botservice.conversation.steps import (
    ActionStep,
    FailedStep,
    FinalAnswerStep,
    PlanningStep,
    SystemPromptStep,
    TaskStep,
)
from botservice.conversation.sub_runs import sub_runs
from botservice.conversation.tool_calls import state_of_unmade
from botservice.core.messages import Attachment, TokenUsage, ToolCall

_SHOWN_ELSEWHERE: Final = ("prompt_sections", "prompt_facts", "model_attempts")
_UNMADE: Final = ("Denied", "ApprovalExpired")  # no errors: the calls say that they were not made
_LONGEST: Final = 20_000  # characters of one text
SECTIONS: Final = {
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


_SAYING: Final[Mapping[type[MemoryItem], tuple[str, str]]] = {
    TaskStep: ("Question", "task"),
    PlanningStep: ("Plan", "plan"),
    FinalAnswerStep: ("Answer", "output"),
    SystemPromptStep: ("Instructions", "system_prompt"),
}
"""The steps that say one thing: how they are called, and the field of what they say."""


class BlockKind(StrEnum):
    """How a part looks."""

    TEXT = "text"
    CODE = "code"
    GOOD = "good"
    BAD = "bad"


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
    kind: BlockKind = BlockKind.TEXT
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
    return next((title for kind, (title, _) in _SAYING.items() if isinstance(step, kind)), visible(type(step).__name__))


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
    if isinstance(step, ActionStep):
        yield from _action(step)
    for kind, (_, name) in _SAYING.items():
        if isinstance(step, kind):
            yield LabelledText("", show_text(getattr(step, name)))
    if isinstance(step, TaskStep):
        yield from _files(step.task_images)
    for name in step.attributes:
        if name not in declared_fields(step) and name not in _SHOWN_ELSEWHERE:
            yield LabelledText(show_text(name), show_text(step.get_value(name)), BlockKind.CODE)


def _action(step: ActionStep) -> Iterator[LabelledText]:
    if step.model_output is not None:
        yield LabelledText("Text next to the calls", show_text(step.model_output))
    results = {each.call_id: each for each in listed(step.tool_results) if isinstance(each, ToolResult)}
    for index, call in enumerate(listed(step.tool_calls)):
        yield from _call(index, call, results.pop(call.id, None) if isinstance(call, ToolCall) else None)
    for result in results.values():
        yield _result(result)
    told = "\n".join(each.text for each in listed(step.tool_results) if isinstance(each, ToolResult))
    if step.observations is not None and step.observations != told:
        yield LabelledText("Observation", show_text(step.observations), BlockKind.GOOD)
    for run in sub_runs(step):
        yield LabelledText(f"Agent {run.name}", visible(sub_run_text(run)), BlockKind.CODE)
    yield from _files(step.observations_images)
    if step.error is not None and getattr(step.error, "type", "") not in _UNMADE:
        yield LabelledText("Error", show_text(error_text(step.error)), BlockKind.BAD)
    if step.is_final_answer:
        yield LabelledText("Taken as the answer", show_text(step.action_output), BlockKind.GOOD)


def _call(index: int, call: Any, result: ToolResult | None) -> Iterator[LabelledText]:
    if not isinstance(call, ToolCall):
        yield LabelledText("Call", show_text(call), BlockKind.CODE, call=index)
        return
    arguments = call.arguments if call.malformed_arguments is None else call.malformed_arguments
    yield LabelledText(f"Calls {visible(call.name)}", show_text(arguments), BlockKind.CODE, call=index)
    yield (
        LabelledText("No result yet", "", BlockKind.BAD, call=index)
        if result is None
        else replace(_result(result), call=index)
    )


def _result(result: ToolResult) -> LabelledText:
    if state_of_unmade(result.text) is not None:
        return LabelledText("Not made", show_text(result.text))
    label = "Failed" if result.is_error else "Result"
    duration = "" if result.duration_seconds is None else f" after {result.duration_seconds:.2f} s"
    return LabelledText(
        f"{label}{duration}", show_text(result.text), BlockKind.BAD if result.is_error else BlockKind.GOOD
    )


def _files(value: Any) -> Iterator[LabelledText]:
    for file in listed(value):
        yield LabelledText("File", show_text(describe(file) if isinstance(file, Attachment) else file))


def _prompt(step: MemoryItem) -> Iterator[LabelledText]:
    """Yield what the model was given, in the sections that it was made of."""
    messages = [each if isinstance(each, Mapping) else {} for each in listed(step.get_value("model_input_messages"))]
    if not messages:
        return
    sections: dict[str, list[LabelledText]] = {}
    for name, message in zip(section_names(step, messages), messages, strict=True):
        sections.setdefault(name, []).append(LabelledText(show_text(message.get("role")), content_of(message)))
    yield LabelledText(
        f"What the model was given: {len(messages)} {'message' if len(messages) == 1 else 'messages'}",
        parts=[
            LabelledText(SECTIONS.get(name, show_text(name)), parts=parts, is_open=name == "found")
            for name, parts in sections.items()
        ],
    )


def section_names(step: MemoryItem, messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the section of each message, also if the field holds anything else."""
    names = [readable(message.get("section") or "") for message in messages]
    ranges = step.get_value("prompt_sections")
    for name, places in ranges.items() if isinstance(ranges, Mapping) else ():
        match tuple(listed(places)):
            case (int(first), int(end)) if 0 <= first <= end <= len(messages):
                names[first:end] = [readable(name)] * (end - first)
    return names


def content_of(message: Mapping[str, Any]) -> str:
    """Return what a message of a prompt says, as it can be read."""
    content = message.get("content")
    parts = [content] if isinstance(content, str) else [_content_part(part) for part in listed(content)]
    calls = [f"calls {readable(call)}" for call in listed(message.get("tool_calls"))]
    return show_text("\n".join([*parts, *calls]))


def _content_part(part: Any) -> str:
    if isinstance(part, Mapping) and part.get("type") == "text":
        return readable(part.get("text"))
    return "[image]" if isinstance(part, Mapping) and part.get("type") == "image_url" else readable(part)
