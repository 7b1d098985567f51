"""When what happened in a turn: from being accepted to being delivered, as bars along a timeline."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from botservice.memory import ActionStep, MemoryItem, PlanningStep, Timing, ToolResult
from botservice.memory.readable import listed
from botservice.memory.replay import visible
from botservice.overview.turn_details import TurnDetails
from transports.web.inspector.steps import number_actions

WIDTH: Final = 1_000  # of a picture, in its own units
_NARROWEST: Final = 4


@dataclass(frozen=True, slots=True)
class Span:
    """Something that took a while.

    Attributes:
        kind: How it looks: wait, prompt, model, write, tool, send or bad.
        begin: In seconds since the turn was accepted, as end.
        note: What else is known of it.
    """

    label: str
    kind: str
    begin: float
    end: float
    note: str = ""


def draw_waterfall(details: TurnDetails, steps: Sequence[MemoryItem]) -> list[tuple[Span, int, int]]:
    """Return what happened in a turn, in the order in which it began, with where its bar begins and how wide it is."""
    start = details.row.created_at
    spans = sorted(_spans(details, steps, start), key=lambda span: (span.begin, span.end))
    whole = max((span.end for span in spans), default=0.0) or 1.0
    return [(span, *_place(span, whole)) for span in spans]


def _place(span: Span, whole: float) -> tuple[int, int]:
    x = min(round(span.begin / whole * WIDTH), WIDTH - _NARROWEST)
    return x, max(_NARROWEST, round((span.end - span.begin) / whole * WIDTH))


def _spans(details: TurnDetails, steps: Sequence[MemoryItem], start: datetime) -> Iterator[Span]:
    row = details.row
    if details.received_at is not None:
        yield Span("Accepted", "wait", 0.0, _since(start, details.received_at), "its last message was stored")
    if row.started_at is not None:
        yield Span("Waited", "wait", 0.0, _since(start, row.started_at), "until it was its turn")
    for number, step in number_actions(steps):
        yield from _of_step(step, _name(step, number), start)
    for place, sent in enumerate(details.deliveries, 1):
        begin = _since(start, sent.created_at)
        end = begin if sent.finished_at is None else _since(start, sent.finished_at)
        tries = f"{sent.attempts} {'try' if sent.attempts == 1 else 'tries'}"
        kind = "bad" if sent.status == "failed" else "send"
        label = "Delivery" if len(details.deliveries) == 1 else f"Delivery {place}"
        yield Span(label, kind, begin, max(begin, end), f"{sent.status} after {tries}")


def _name(step: MemoryItem, number: int) -> str:
    return f"Step {number}" if isinstance(step, ActionStep) else "Plan" if isinstance(step, PlanningStep) else "Answer"


def _of_step(step: MemoryItem, name: str, start: datetime) -> Iterator[Span]:
    timing = step.get_value("timing")
    if not isinstance(timing, Timing):
        return
    begin = _since(start, timing.start_time)
    end = begin + (timing.duration_seconds or 0.0)
    attempts = [each for each in listed(step.get_value("model_attempts")) if isinstance(each, Mapping)]
    if not attempts:
        yield Span(f"{name}: all of it", "model", begin, end)
    asked = begin
    for place, attempt in enumerate(attempts, 1):
        asked = begin + _number(attempt, "ended")
        yield from _of_attempt(attempt, f"{name}, attempt {place}" if len(attempts) > 1 else name, begin)
    for result in listed(step.get_value("tool_results")):
        if isinstance(result, ToolResult):
            duration = result.duration_seconds or 0.0
            yield Span(f"{name}: {_tool(step, result)}", "bad" if result.is_error else "tool", asked, asked + duration)


def _of_attempt(attempt: Mapping[str, Any], name: str, start: float) -> Iterator[Span]:
    began, ended = _number(attempt, "began"), _number(attempt, "ended")
    asked = _number(attempt, "asked") if "asked" in attempt else began
    if asked > began:
        yield Span(f"{name}: prompt", "prompt", start + began, start + asked)
    if "error" in attempt:
        yield Span(f"{name}: model", "bad", start + asked, start + ended, visible(str(attempt["error"])))
        return
    first = _number(attempt, "first_text") if "first_text" in attempt else None
    if first is None:
        yield Span(f"{name}: model", "model", start + asked, start + ended)
        return
    yield Span(f"{name}: until the first token", "model", start + asked, start + first)
    yield Span(f"{name}: writing", "write", start + first, start + ended)


def _tool(step: MemoryItem, result: ToolResult) -> str:
    calls = listed(step.get_value("tool_calls"))
    return visible(next((each.name for each in calls if getattr(each, "id", None) == result.call_id), "tool"))


def _number(attempt: Mapping[str, Any], name: str) -> float:
    value = attempt.get(name, 0.0)
    return float(value) if isinstance(value, int | float) else 0.0


def _since(start: datetime, at: datetime) -> float:
    return max(0.0, (at - start).total_seconds())
