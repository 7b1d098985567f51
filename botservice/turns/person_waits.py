"""How long turns waited for people to decide about their calls: time in which the service did nothing."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from botservice.turns.waiting_calls import PendingKind, WaitingCall


def find_person_waits(waiting: Sequence[WaitingCall]) -> list[tuple[datetime, datetime]]:
    """Return from when to when somebody had to decide about a call; what still waits is not among it."""
    calls = (each for each in waiting if each.kind is PendingKind.APPROVAL and not each.is_waiting)
    return [(each.created_at, each.decided_at or each.expires_at) for each in calls]


def person_wait_within(waiting: Sequence[WaitingCall], begin: datetime, end: datetime) -> float:
    """Return for how many seconds between two moments somebody had to decide about a call."""
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
