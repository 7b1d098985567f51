"""How a turn stands, in the words of the pages, and what they mark about it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from botservice.conversation.field_values import ToolResult
from botservice.conversation.items import MemoryItem
from botservice.conversation.readable import listed
from botservice.conversation.tool_calls import state_of_unmade
from botservice.turns.turn import Outcome, TurnStatus
from botservice.turns.waiting_calls import PendingKind, PendingStatus, WaitingCall

_OPEN: Final = {TurnStatus.QUEUED: "Queued", TurnStatus.RUNNING: "Running", TurnStatus.WAITING: "Waiting"}
_ENDED: Final = {
    Outcome.ANSWERED: "Answered",
    Outcome.LISTENED: "Listened",
    Outcome.REFUSED: "Refused",
    Outcome.STOPPED: "Stopped",
    Outcome.FAILED: "Failed",
}
_DECIDED: Final = {
    PendingStatus.ALLOWED: "answered",
    PendingStatus.HANDED_IN: "answered",
    PendingStatus.DENIED: "refused",
}
AWAITING_APPROVAL: Final = "Awaiting approval"
AWAITING_RESULT: Final = "Awaiting a result"


@dataclass(frozen=True, slots=True)
class TurnState:
    """How a turn, or one of its calls, stands.

    Attributes:
        look: How it looks: as what it ended with, or "open".
    """

    words: str
    look: str


def state_of(turn: Any, waiting: Iterable[WaitingCall] = ()) -> TurnState:
    """Return how a turn stands.

    Args:
        turn: Its status and its outcome.
        waiting: The calls that it waits with.
    """
    if turn.outcome is None:
        words = _OPEN.get(TurnStatus(turn.status), "Running")
        open_calls = [each for each in waiting if each.is_waiting]
        return TurnState(say_waiting(open_calls[0].kind) if open_calls else words, "open")
    outcome = Outcome(turn.outcome)
    words = _ENDED[outcome]
    return TurnState(f"{words}, set aside" if turn.status == TurnStatus.SET_ASIDE else words, outcome.value)


def say_waiting(kind: PendingKind) -> str:
    """Return what a turn waits for with a call of some kind."""
    return AWAITING_APPROVAL if kind is PendingKind.APPROVAL else AWAITING_RESULT


def state_of_call(call: WaitingCall) -> TurnState:
    """Return how a call stands that waits, or has waited."""
    if call.is_waiting:
        return TurnState(say_waiting(call.kind), "open")
    return TurnState(call.status.value.replace("_", " ").capitalize(), _DECIDED.get(call.status, "stopped"))


def count_failed_calls(steps: Iterable[MemoryItem]) -> int:
    """Return how many calls of tools failed in the steps of a turn; those that were not made are none of them."""
    results = (each for step in steps for each in listed(step.get_value("tool_results")))
    return sum(1 for each in results if isinstance(each, ToolResult) and has_failed(each))


def has_failed(result: ToolResult) -> bool:
    """Return whether a call was made, and failed."""
    return result.is_error and state_of_unmade(result.text) is None
