"""Calls of tools that wait for a person's decision or for a result, as the inspector shows them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from botservice.memory import ActionStep, MemoryItem
from botservice.memory.replay import visible
from botservice.turns.waiting.arguments import readable
from botservice.turns.waiting.calls import PendingKind, WaitingCall


@dataclass(frozen=True, slots=True)
class WaitingLine:
    """A call that waits or has waited, in a few lines.

    Attributes:
        number: What people call it by, as in /allow 3.
        what: Whether it waits for a decision or for its result, or how it ended.
    """

    number: int
    context_id: int
    turn_id: int
    tool: str
    what: str
    since: datetime
    until: datetime
    decided_at: datetime | None
    arguments: str = ""


def show_waiting(calls: Iterable[WaitingCall], steps: Sequence[MemoryItem] = ()) -> list[WaitingLine]:
    """Return calls for a page; with what they would be made with, where their turn's steps are given."""
    return [
        WaitingLine(
            each.id,
            each.context_id,
            each.turn_id,
            visible(each.tool),
            _what(each),
            each.created_at,
            each.expires_at,
            each.decided_at,
            _arguments(each, steps),
        )
        for each in calls
    ]


def _what(call: WaitingCall) -> str:
    if not call.is_waiting:
        return call.status.value.replace("_", " ")
    return "waits for a word" if call.kind is PendingKind.APPROVAL else "waits for its result"


def _arguments(call: WaitingCall, steps: Sequence[MemoryItem]) -> str:
    step = next((each for each in steps if isinstance(each, ActionStep) and _holds(each, call)), None)
    return "" if step is None else readable((step.tool_calls or ())[call.call_index].arguments)[0]


def _holds(step: ActionStep, call: WaitingCall) -> bool:
    calls = step.tool_calls or ()
    return call.call_index < len(calls) and (calls[call.call_index].id, calls[call.call_index].name) == (
        call.call_id,
        call.tool,
    )
