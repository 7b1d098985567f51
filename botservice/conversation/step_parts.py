"""What a step says, part by part, the same for terminals and pages; secrets among the arguments of calls are masked."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from botservice.conversation.field_values import StepError, ToolResult
from botservice.conversation.items import MemoryItem, declared_fields
from botservice.conversation.masked_secrets import mask
from botservice.conversation.readable_values import describe, error_text, listed, readable
from botservice.conversation.steps import (
    ActionStep,
    FinalAnswerStep,
    PlanningStep,
    SystemPromptStep,
    TaskStep,
    UnknownStep,
)
from botservice.conversation.sub_runs import SubRun, sub_runs
from botservice.conversation.tool_calls import state_of_unmade
from botservice.core.messages import Attachment, ToolCall

_UNMADE: Final = ("Denied", "ApprovalExpired")  # no errors: the calls say that they were not made


class PartKind(StrEnum):
    """How a part looks."""

    TEXT = "text"
    CODE = "code"
    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class StepPart:
    """A part of a step.

    Attributes:
        label: What it is, such as "Call add"; empty where the title of the step says so.
        call: Which of the step's calls it is about, if it is one.
    """

    label: str
    text: str
    kind: PartKind = PartKind.TEXT
    call: int | None = None


def step_parts(step: MemoryItem, write_run: Callable[[SubRun], str]) -> Iterator[StepPart]:
    """Yield the parts of a step, without the prompt of its model.

    Args:
        write_run: Writes the work of an agent that one of the calls started.
    """
    match step:
        case ActionStep():
            yield from _action(step, write_run)
        case TaskStep():
            yield StepPart("", readable(step.task))
            yield from _files(step.task_images)
        case PlanningStep():
            yield StepPart("", readable(step.plan))
        case FinalAnswerStep():
            yield StepPart("Answer" if step.model_input_messages else "", readable(step.output))
        case SystemPromptStep():
            yield StepPart("", readable(step.system_prompt))
    told = {*declared_fields(step), *(("kind", "version") if isinstance(step, UnknownStep) else ())}
    for name in step.attributes:
        if name not in told:
            yield StepPart(readable(name), readable(step.get_value(name)), PartKind.CODE)


def section_names(step: MemoryItem, messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the section of each message of a step's prompt, empty where none is known."""
    names = [readable(message.get("section") or "") for message in messages]
    ranges = step.get_value("prompt_sections")
    for name, places in ranges.items() if isinstance(ranges, Mapping) else ():
        match tuple(listed(places)):
            case (int(first), int(end)) if 0 <= first <= end <= len(messages):
                names[first:end] = [readable(name)] * (end - first)
    return names


def prompt_messages(step: MemoryItem) -> list[Mapping[str, Any]]:
    """Return the messages of the prompt that a step sent; none where it sent none."""
    return [each if isinstance(each, Mapping) else {} for each in listed(step.get_value("model_input_messages"))]


def content_of(message: Mapping[str, Any]) -> str:
    """Return what a message of a prompt says, with the calls in it."""
    content = message.get("content")
    parts = [content] if isinstance(content, str) else [_content_part(part) for part in listed(content)]
    calls = [f"calls {readable(mask(call))}" for call in listed(message.get("tool_calls"))]
    return "\n".join([*parts, *calls])


def _content_part(part: Any) -> str:
    if isinstance(part, Mapping) and part.get("type") == "text":
        return readable(part.get("text"))
    return "[image]" if isinstance(part, Mapping) and part.get("type") == "image_url" else readable(part)


def _action(step: ActionStep, write_run: Callable[[SubRun], str]) -> Iterator[StepPart]:
    if step.model_output is not None:
        yield StepPart("Model", readable(step.model_output))
    results = [result for result in listed(step.tool_results) if isinstance(result, ToolResult)]
    told = "\n".join(result.text for result in results)
    for index, call in enumerate(listed(step.tool_calls)):
        yield from _call(index, call, results, is_open=step.observations is None)
    for result in results:
        yield _result(result)
    for run in sub_runs(step):
        yield StepPart(f"Agent {run.name}", write_run(run), PartKind.CODE)
    if step.observations is not None and (not told or step.observations != told):
        yield StepPart("Observation", readable(step.observations), PartKind.GOOD)
    yield from _files(step.observations_images)
    if step.error is not None and not _is_told(step.error, told):
        yield StepPart("Error", error_text(step.error), PartKind.BAD)
    if step.action_output is not None and step.is_final_answer:
        yield StepPart("Final answer", readable(step.action_output), PartKind.GOOD)


def _is_told(error: Any, told: str) -> bool:
    """Return whether the results of calls say an error already."""
    return isinstance(error, StepError) and (error.type in _UNMADE or (bool(error.message) and error.message in told))


def _call(index: int, call: Any, results: list[ToolResult], *, is_open: bool) -> Iterator[StepPart]:
    """Yield a call and its result, which is taken out of the results."""
    if not isinstance(call, ToolCall):
        yield StepPart("Call", readable(call), PartKind.CODE, index)
        return
    arguments = call.arguments if call.malformed_arguments is None else call.malformed_arguments
    yield StepPart(f"Call {call.name}", readable(mask(arguments)), PartKind.CODE, index)
    own = next((result for result in results if result.call_id == call.id), None)
    if own is not None:
        results.remove(own)
        yield _result(own, index)
    elif is_open:
        yield StepPart("No result yet", "", PartKind.BAD, index)


def _result(result: ToolResult, call: int | None = None) -> StepPart:
    if state_of_unmade(result.text) is not None:
        return StepPart("Not made", result.text, call=call)
    seconds = "" if result.duration_seconds is None else f" ({result.duration_seconds:.2f} s)"
    label, kind = ("Failed", PartKind.BAD) if result.is_error else ("Result", PartKind.GOOD)
    return StepPart(f"{label}{seconds}", result.text, kind, call)


def _files(value: Any) -> Iterator[StepPart]:
    for file in listed(value):
        yield StepPart("File", describe(file) if isinstance(file, Attachment) else readable(file))
