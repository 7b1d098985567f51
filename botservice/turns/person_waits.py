"""How long turns waited for people to decide about their calls: time in which the service did nothing."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, func, select, type_coerce
from sqlalchemy.sql.expression import or_

from botservice.storage.tables.waiting import pending_calls
from botservice.turns.waiting_calls import PendingKind, WaitingCall

_LATER = pending_calls.alias("later")
_IS_APPROVAL = pending_calls.c.kind == PendingKind.APPROVAL.value


def select_person_wait(turn_id: ColumnElement[Any]) -> ColumnElement[int]:
    """Return the expression for how many microseconds a turn has waited for people.

    The calls of a step are asked about at once, and the turn goes on when the last of them is decided.
    """
    ended, ended_later = pending_calls.c.decided_at, _LATER.c.decided_at
    of_step = _LATER.c.turn_id == turn_id, _LATER.c.step_id == pending_calls.c.step_id
    is_last = ~(
        select(_LATER.c.id)
        .where(*of_step, _LATER.c.kind == PendingKind.APPROVAL.value)
        .where(or_(ended_later > ended, (ended_later == ended) & (_LATER.c.id > pending_calls.c.id)))
        .exists()
    )
    waited = type_coerce(ended, BigInteger) - type_coerce(pending_calls.c.created_at, BigInteger)
    whole = select(func.coalesce(func.sum(waited), 0))
    return whole.where(pending_calls.c.turn_id == turn_id, _IS_APPROVAL, ended.is_not(None), is_last).scalar_subquery()


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
