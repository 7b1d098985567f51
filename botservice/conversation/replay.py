"""Steps as a person reads them on a terminal.

Everything is plain text: no markup is interpreted, and control characters are shown as escapes.
"""

import io
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from botservice.conversation.agent_memory import AgentMemory, Memory
from botservice.conversation.field_values import StepError, Timing, ToolResult
from botservice.conversation.items import MemoryItem, declared_fields
from botservice.conversation.masked_secrets import mask
from botservice.conversation.readable import describe, error_text, listed, readable
from botservice.conversation.steps import (
    ActionStep,
    FailedStep,
    FinalAnswerStep,
    PlanningStep,
    SystemPromptStep,
    TaskStep,
    UnknownStep,
)
from botservice.conversation.sub_runs import SubRun, sub_runs
from botservice.conversation.tool_calls import state_of_unmade
from botservice.core.messages import Attachment, TokenUsage, ToolCall
from botservice.core.quoting import found_records
from botservice.core.visible_text import escaped, hides, is_all_seen, isolate_lines
from botservice.llm.chat import FinishReason

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_SUCCINCT_LENGTH: Final = 2_000
_WINDOW_LENGTH: Final = 140
_MODEL_INPUT: Final = "model_input_messages"
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f]")

_Part = tuple[str, str, str]
"""A label, a text, and the style of the label."""


def visible(text: str) -> str:
    """Return text in which nothing hides, moves the cursor, colours or reorders what stands around it."""
    lines = text.replace("\r\n", "\n").expandtabs(4)
    if is_all_seen(lines):
        return lines
    if lines.isascii():
        return _CONTROLS.sub(lambda found: _escaped(found[0]), lines)
    pairs = zip(lines, hides(lines), strict=True)
    return isolate_lines("".join(_escaped(sign) if is_hidden else sign for sign, is_hidden in pairs))


def render_steps(steps: Iterable[MemoryItem], *, detailed: bool) -> "RenderableType":
    """Return steps for `rich.console.Console.print`.

    Args:
        detailed: Show everything uncut, and what the model was given; otherwise long texts are cut.
    """
    from rich.console import Group

    return Group(*_blocks((step for step in steps if step is not None), detailed=detailed))


def replay(memory: Memory, detailed: bool = False, console: "Console | None" = None) -> None:  # noqa: FBT001, FBT002 - contract
    """Print the steps of a memory; with `detailed` its system prompt as well.

    Args:
        console: The console to print to; by default standard output.
    """
    prompt = [memory.system_prompt] if detailed and isinstance(memory, AgentMemory) else []
    steps = [*prompt, *memory.content]
    show(render_steps(steps, detailed=detailed), console)


def show(renderable: "RenderableType", console: "Console | None" = None) -> None:
    """Print, also where the output's encoding lacks a character: it is shown as an escape then."""
    from rich.console import Console

    console = console or Console()
    if console.encoding.lower().replace("-", "").startswith("utf"):
        console.print(renderable)
        return
    paper = Console(file=io.StringIO(), width=console.width, color_system=None)
    with paper.capture() as capture:
        paper.print(renderable)
    console.file.write(capture.get().encode(console.encoding, "backslashreplace").decode(console.encoding))


def _escaped(sign: str) -> str:
    return f"\\x{ord(sign):02x}" if ord(sign) < 0x100 else escaped(sign)


def _blocks(steps: Iterable[MemoryItem], *, detailed: bool) -> "Iterator[RenderableType]":
    from rich.padding import Padding
    from rich.text import Text

    shown: set[tuple[str, str]] = (
        set()
    )  # what was found and the window are the same in every prompt of a task: shown once
    for step in steps:
        if isinstance(step, TaskStep):
            shown = set()
        yield Text(f"-- {visible(_title(step))} --", style="bold", overflow="fold")
        for label, text, style in _parts(step, shown, detailed=detailed):
            if label:
                yield Text(visible(label), style=style, overflow="fold")
            body = visible(text if detailed else _cut(text)).strip("\n")
            yield Padding(Text(body, overflow="fold"), (0, 0, 0, 2 if label else 0), expand=False)


def _cut(text: str) -> str:
    missing = len(text) - _SUCCINCT_LENGTH
    return text if missing <= 0 else f"{text[:_SUCCINCT_LENGTH]}\n... {missing:,} more characters, shown in detail"


def _title(step: MemoryItem) -> str:
    given = (_duration(step.get_value("timing")), usage_text(step.get_value("token_usage")), step.get_value("model"))
    reason = step.get_value("finish_reason")
    is_told = reason not in (None, FinishReason.STOP, FinishReason.TOOL_CALLS)
    facts = [str(fact) for fact in (*given, f"ended by {reason}" if is_told else None) if fact]
    match step:
        case ActionStep():
            name = f"Step {readable(step.step_number)}" + (", failed" if isinstance(step, FailedStep) else "")
        case TaskStep():
            name = "Task"
        case PlanningStep():
            name = "Plan"
        case FinalAnswerStep():
            name = "Answer"
        case SystemPromptStep():
            name = "System prompt"
        case UnknownStep():
            name = f"Unknown kind {readable(step.get_value('kind'))}"
        case _:
            name = type(step).__name__
    return " | ".join([name, *facts])


def _duration(timing: Any) -> str:
    seconds = timing.duration_seconds if isinstance(timing, Timing) else None
    return "" if seconds is None else f"{seconds:.2f} s"


def usage_text(usage: Any) -> str:
    """Return how many tokens something took; nothing where that is not known."""
    return f"{usage.input_tokens} tokens in, {usage.output_tokens} out" if isinstance(usage, TokenUsage) else ""


def _parts(step: MemoryItem, shown: set[tuple[str, str]], *, detailed: bool) -> Iterator[_Part]:
    match step:
        case ActionStep():
            yield from _input(step, shown, detailed=detailed)
            yield from _action(step, detailed=detailed)
        case TaskStep():
            yield "", readable(step.task), ""
            yield from _files(step.task_images)
        case PlanningStep():
            yield from _input(step, shown, detailed=detailed)
            yield "", readable(step.plan), ""
        case FinalAnswerStep():
            yield from _input(step, shown, detailed=detailed)
            yield ("Answer" if step.model_input_messages else ""), readable(step.output), ""
        case SystemPromptStep():
            yield "", readable(step.system_prompt), ""
    told = (
        {*declared_fields(step), "kind", "version"} if isinstance(step, UnknownStep) else declared_fields(step).keys()
    )
    for name in step.attributes:
        if name not in told:
            yield name, readable(step.get_value(name)), "cyan"


def _action(step: ActionStep, *, detailed: bool) -> Iterator[_Part]:
    if step.model_output is not None:
        yield "Model", readable(step.model_output), "blue"
    results = [result for result in listed(step.tool_results) if isinstance(result, ToolResult)]
    told = "\n".join(result.text for result in results)
    for call in listed(step.tool_calls):
        yield from _call(call, results)
    for result in results:
        yield from _result(result)
    for run in sub_runs(step):
        yield f"Agent {run.name}", sub_run_text(run, detailed=detailed), "magenta"
    if step.observations is not None and (not told or step.observations != told):
        yield "Observation", readable(step.observations), "green"
    yield from _files(step.observations_images)
    if step.error is not None and not _is_told(step.error, told):
        yield "Error", error_text(step.error), "red"
    if step.action_output is not None and (detailed or step.is_final_answer):
        yield "Final answer" if step.is_final_answer else "Output", readable(step.action_output), "green"


def sub_run_text(run: SubRun, *, detailed: bool = False) -> str:
    """Return the work of an agent for another one, in lines."""
    lines = []
    for step in run.memory.steps:
        lines.append(f"-- {_title(step)} --")
        for label, text, _ in _parts(step, set(), detailed=detailed):
            lines += [label] if label else []
            lines.append(textwrap.indent(text, "  ") if label else text)
    return "\n".join(lines)


def _is_told(error: Any, told: str) -> bool:
    return isinstance(error, StepError) and bool(error.message) and error.message in told


def _call(call: Any, results: list[ToolResult]) -> Iterator[_Part]:
    if not isinstance(call, ToolCall):
        yield "Call", readable(call), "yellow"
        return
    malformed = call.malformed_arguments
    yield f"Call {call.name}", readable(mask(call.arguments if malformed is None else malformed)), "yellow"
    own = next((result for result in results if result.call_id == call.id), None)
    if own is not None:
        results.remove(own)
        yield from _result(own)


def _result(result: ToolResult) -> Iterator[_Part]:
    if state_of_unmade(result.text) is not None:
        yield "Not made", result.text, ""
        return
    seconds = "" if result.duration_seconds is None else f" ({result.duration_seconds:.2f} s)"
    yield f"{'Failed' if result.is_error else 'Result'}{seconds}", result.text, "red" if result.is_error else "green"


def _files(value: Any) -> Iterator[_Part]:
    for file in listed(value):
        yield "", describe(file) if isinstance(file, Attachment) else readable(file), ""


def _input(step: MemoryItem, shown: set[tuple[str, str]], *, detailed: bool) -> Iterator[_Part]:
    """Yield what the model was given: whole in detail, else what was found for it and the window, once for a task."""
    messages = [message if isinstance(message, Mapping) else {} for message in listed(step.get_value(_MODEL_INPUT))]
    if not messages:
        return
    sections = _sections(step, len(messages))
    if detailed:
        for section, message in zip(sections, messages, strict=True):
            label = " ".join(readable(name) for name in (section, message.get("role")) if name)
            yield f"Prompt, {label}", _content(message), "dim"
        return
    counts = Counter(
        section or readable(message.get("role")) for section, message in zip(sections, messages, strict=True)
    )
    yield "Prompt", ", ".join(f"{count} {name}" for name, count in counts.items()), "dim"
    by_section: dict[str | None, list[Mapping[str, Any]]] = {}
    for section, message in zip(sections, messages, strict=True):
        by_section.setdefault(section, []).append(message)
    found = "\n".join(found_records(_content(message)) for message in by_section.get("found", ()))
    window = "\n".join(_line(message) for message in by_section.get("window", ()))
    if by_section.keys() & {"question", "found"}:
        found = found or "nothing"
    for label, text in (("Found", found), ("Window", window)):
        if text and (label, text) not in shown:
            shown.add((label, text))
            yield label, text, "magenta"


def _sections(step: MemoryItem, count: int) -> list[str | None]:
    """Return the section of each message of a step's prompt; a field of another form gives empty ones."""
    sections: list[str | None] = [None] * count
    ranges = step.get_value("prompt_sections")
    for name, places in ranges.items() if isinstance(ranges, Mapping) else ():
        match tuple(listed(places)):
            case (int(first), int(end)) if 0 <= first <= end <= count:
                sections[first:end] = [name] * (end - first)
    return sections


def _line(message: Mapping[str, Any]) -> str:
    """Return a message of the window in about a line."""
    text = " ".join(_content(message).split())
    cut = text if len(text) <= _WINDOW_LENGTH else f"{text[:_WINDOW_LENGTH]}..."
    return f"{readable(message.get('role'))}: {cut}"


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    parts = [_part(part) for part in listed(content)] if not isinstance(content, str) else [content]
    calls = [f"calls {readable(mask(call))}" for call in listed(message.get("tool_calls"))]
    return "\n".join([*parts, *calls])


def _part(part: Any) -> str:
    if isinstance(part, Mapping) and part.get("type") == "text":
        return readable(part.get("text"))
    return "[image]" if isinstance(part, Mapping) and part.get("type") == "image_url" else readable(part)
