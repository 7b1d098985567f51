"""The calls that a turn waits with: their values, their states, and how long people took to decide."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from botservice.agent.tool_questions import ToolQuestions
from botservice.core.messages import Author, ToolCall
from botservice.core.states import PendingKind, PendingStatus


@dataclass(frozen=True, slots=True)
class PendingCall:
    """A pending call, for programs.

    Attributes:
        id: The `id` of its `ToolCall`, which need not be unique; for a later result, the name in `Later`.
        number: Its unique number for people, as in /allow 3.
    """

    id: str
    name: str
    arguments: Mapping[str, Any]
    number: int


@dataclass(frozen=True, slots=True)
class WaitingCall:
    """A call that waits, as it is stored.

    Attributes:
        id: What people call it by, as in /allow 3.
        call_id: The `id` of its `ToolCall`.
        name: What the tool calls its later result.
        author: On whose behalf.
        delivery_id: The message that asks about it.
        decided_by: Who had their word: the number of an identity.
        tool_digest: Of the tool's description and schema when it was asked about.
        exchange: What the tool asks the person, where that is what it waits for.
        told_at: Since when that message says what it is to say now.
    """

    id: int
    context_id: int
    turn_id: int
    step_id: int
    call_index: int
    call_id: str
    tool: str
    name: str | None
    kind: PendingKind
    status: PendingStatus
    is_open: bool
    transport: str
    author: Author | None
    delivery_id: int | None
    created_at: datetime
    expires_at: datetime
    decided_at: datetime | None
    decided_by: int | None
    tool_digest: str | None = None
    exchange: ToolQuestions | None = None
    told_at: datetime | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether nothing has become of it yet."""
        return self.is_open and self.status is PendingStatus.WAITING

    @property
    def is_told(self) -> bool:
        """Whether the message that asks about it says what it has to: what was decided, or the next question."""
        return self.told_at is not None or (self.exchange is None and self.decided_at is None)

    def arguments_in(self, made: Sequence[ToolCall]) -> Mapping[str, Any]:
        """Return its arguments among the calls of its step; none where these are forgotten."""
        return made[self.call_index].arguments if self.call_index < len(made) else {}


_WAITS_FOR: Final = {
    PendingKind.APPROVAL: "approval of",
    PendingKind.LATER: "the result of",
    PendingKind.QUESTION: "an answer for",
}


def say_wait(call: WaitingCall) -> str:
    """Return what a call waits for, in words for the operator."""
    name = call.author and (call.author.name or call.author.id)
    whose = f", asked by {name}" if name else ""
    since, until = f"{call.created_at:%Y-%m-%d %H:%M}", f"{call.expires_at:%Y-%m-%d %H:%M}"
    return f"{_WAITS_FOR[call.kind]} {call.tool} (#{call.id}){whose}, since {since}, until {until} UTC"


def say_state(call: WaitingCall) -> str:
    """Return what a call waits for, or how it was decided, in words for the operator."""
    if call.is_waiting:
        return f"waits for {say_wait(call)}"
    at = "" if call.decided_at is None else f", {call.decided_at:%Y-%m-%d %H:%M} UTC"
    return f"{call.tool} (#{call.id}): {call.status.value.replace('_', ' ')}{at}"


def find_person_waits(waiting: Sequence[WaitingCall]) -> list[tuple[datetime, datetime]]:
    """Return from when to when a person had to decide or answer; what still waits is not among it."""
    calls = (each for each in waiting if each.kind is not PendingKind.LATER and not each.is_waiting)
    return [(each.created_at, each.decided_at or each.expires_at) for each in calls]


def person_wait_within(waiting: Sequence[WaitingCall], begin: datetime, end: datetime) -> float:
    """Return for how many seconds between two moments a person had to decide about a call."""
    waits = [
        ((first - begin).total_seconds(), (after - begin).total_seconds())
        for first, after in find_person_waits(waiting)
    ]
    return sum_of_waits(waits, 0.0, (end - begin).total_seconds())


def work_seconds(turn: Any, waiting: Sequence[WaitingCall]) -> float | None:
    """Return how long a turn took since it was accepted, without those waits, or None if it has not ended."""
    if turn.finished_at is None:
        return None
    whole: float = (turn.finished_at - turn.created_at).total_seconds()
    return max(0.0, whole - person_wait_within(waiting, turn.created_at, turn.finished_at))


def sum_of_waits(waits: Iterable[tuple[float, float]], begin: float, end: float) -> float:
    """Return how many seconds between two moments are covered by waits, which may overlap."""
    covered, at = 0.0, begin
    for first, after in sorted(waits):
        until = min(after, end)
        covered += max(0.0, until - max(first, at))
        at = max(at, until)
    return covered
