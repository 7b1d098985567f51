"""Steps as a person reads them on a terminal.

Everything is plain text: no markup is interpreted, and control characters are shown as escapes.
"""

import io
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from botservice.conversation.agent_memory import AgentMemory, Memory
from botservice.conversation.field_values import Timing
from botservice.conversation.items import MemoryItem
from botservice.conversation.readable_values import readable
from botservice.conversation.step_parts import PartKind, content_of, prompt_messages, section_names, step_parts
from botservice.conversation.steps import (
    ActionStep,
    FailedStep,
    FinalAnswerStep,
    PlanningStep,
    SystemPromptStep,
    TaskStep,
    UnknownStep,
)
from botservice.conversation.sub_runs import SubRun
from botservice.core.messages import TokenUsage
from botservice.core.quoting import found_records
from botservice.core.visible_text import escaped, hides, is_all_seen, isolate_lines
from botservice.llm.chat import FinishReason

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

_SUCCINCT_LENGTH: Final = 2_000
_WINDOW_LENGTH: Final = 140
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f]")

_STYLES: Final = {PartKind.TEXT: "blue", PartKind.CODE: "yellow", PartKind.GOOD: "green", PartKind.BAD: "red"}

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
    yield from _input(step, shown, detailed=detailed)
    for part in step_parts(step, partial(sub_run_text, detailed=detailed)):
        yield part.label, part.text, _STYLES[part.kind]
    if detailed and isinstance(step, ActionStep) and step.action_output is not None and not step.is_final_answer:
        yield "Output", readable(step.action_output), "green"


def sub_run_text(run: SubRun, *, detailed: bool = False) -> str:
    """Return the work of an agent for another one, in lines."""
    lines = []
    for step in run.memory.steps:
        lines.append(f"-- {_title(step)} --")
        for label, text, _ in _parts(step, set(), detailed=detailed):
            lines += [label] if label else []
            lines.append(textwrap.indent(text, "  ") if label else text)
    return "\n".join(lines)


def _input(step: MemoryItem, shown: set[tuple[str, str]], *, detailed: bool) -> Iterator[_Part]:
    """Yield what the model was given: whole in detail, else what was found for it and the window, once for a task."""
    messages = prompt_messages(step)
    if not messages:
        return
    sections = section_names(step, messages)
    if detailed:
        for section, message in zip(sections, messages, strict=True):
            label = " ".join(readable(name) for name in (section, message.get("role")) if name)
            yield f"Prompt, {label}", content_of(message), "dim"
        return
    counts = Counter(
        section or readable(message.get("role")) for section, message in zip(sections, messages, strict=True)
    )
    yield "Prompt", ", ".join(f"{count} {name}" for name, count in counts.items()), "dim"
    by_section: dict[str, list[Mapping[str, Any]]] = {}
    for section, message in zip(sections, messages, strict=True):
        by_section.setdefault(section, []).append(message)
    found = "\n".join(found_records(content_of(message)) for message in by_section.get("found", ()))
    window = "\n".join(_line(message) for message in by_section.get("window", ()))
    if by_section.keys() & {"question", "found"}:
        found = found or "nothing"
    for label, text in (("Found", found), ("Window", window)):
        if text and (label, text) not in shown:
            shown.add((label, text))
            yield label, text, "magenta"


def _line(message: Mapping[str, Any]) -> str:
    """Return a message of the window in about a line."""
    text = " ".join(content_of(message).split())
    cut = text if len(text) <= _WINDOW_LENGTH else f"{text[:_WINDOW_LENGTH]}..."
    return f"{readable(message.get('role'))}: {cut}"
