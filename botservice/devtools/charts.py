"""Sums of turns by hour or day, by model and by platform."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from sqlalchemy import BigInteger, Connection, Select, case, func, literal, not_, select, type_coerce

from botservice.conversation.queries import VERDICTS
from botservice.devtools.turn_search import IS_ASKED, IS_COMMAND
from botservice.storage.tables.conversations import turn_figures, turns
from botservice.storage.tables.slack import feedback
from botservice.turns.person_waits import select_person_wait
from botservice.turns.turn import Outcome

LOOKED_AT: Final = 20_000
"""How many turns are summed up, at most: the newest."""

_MICROSECONDS: Final = 1_000_000
_FIGURES: Final = ("calls", "failed_calls", "input_tokens", "cached_tokens", "cost", "model_ms")


@dataclass(frozen=True, slots=True)
class Sums:
    """The sums of one hour or day, model and platform.

    Attributes:
        at: When it begins.
        model: Empty where no model was asked.
        answered: How many were; they took waited_seconds, together, without the time in which people had to decide.
        first_tokens: Of how many answers it is known when they began; first_token_ms, together.
        cost: In billionths of the currency.
    """

    at: datetime
    platform: str
    model: str
    turns: int
    answered: int
    failed: int
    stopped: int
    waited_seconds: float
    first_tokens: int
    first_token_ms: int
    calls: int
    failed_calls: int
    input_tokens: int
    cached_tokens: int
    cost: int
    model_ms: int
    good: int
    bad: int


@dataclass(frozen=True, slots=True)
class Summary:
    """The sums of a period."""

    sums: Sequence[Sums]
    is_cut: bool


def read_sums(
    connection: Connection, since: datetime, until: datetime, *, every: timedelta, looks_at: int = LOOKED_AT
) -> Summary:
    """Return the sums of the turns that began from since to until, oldest first.

    Args:
        every: How long is summed up together; counted from 1970, in UTC.
    """
    query = _sums(since, until, every, looks_at)
    oldest = select(turns.c.created_at).order_by(turns.c.id.desc()).limit(1).offset(looks_at)
    before = connection.execute(oldest).scalar_one_or_none()
    sums = [_as_sums(row, every) for row in connection.execute(query)]
    return Summary(sums, is_cut=before is not None and before >= since)


def _sums(since: datetime, until: datetime, every: timedelta, looks_at: int) -> Select[Any]:
    newest = select(turns.c.id).order_by(turns.c.id.desc()).limit(looks_at).subquery()
    begun = type_coerce(turns.c.created_at, BigInteger)
    bucket = (begun // literal(int(every.total_seconds()) * _MICROSECONDS, BigInteger)).label("bucket")
    waited = type_coerce(turns.c.finished_at, BigInteger) - begun - select_person_wait(turns.c.id)
    is_answered = turns.c.outcome == Outcome.ANSWERED.value
    figures = turn_figures.c
    model = func.coalesce(figures.model, "")
    return (
        select(
            bucket,
            turns.c.transport,
            model.label("model"),
            func.count().label("turns"),
            _count(is_answered).label("answered"),
            _count(turns.c.outcome == Outcome.FAILED.value).label("failed"),
            _count(turns.c.outcome == Outcome.STOPPED.value).label("stopped"),
            func.sum(case((is_answered, waited), else_=0)).label("waited"),
            func.count(figures.first_token_ms).label("first_tokens"),
            func.coalesce(func.sum(figures.first_token_ms), 0).label("first_token_ms"),
            *(func.coalesce(func.sum(figures[name]), 0).label(name) for name in _FIGURES),
            *(func.sum(_votes(verdict)).label(verdict) for verdict in VERDICTS),
        )
        .select_from(
            newest.join(turns, turns.c.id == newest.c.id).outerjoin(turn_figures, figures.turn_id == turns.c.id)
        )
        .where(turns.c.created_at >= since, turns.c.created_at < until)
        .where(IS_ASKED, not_(IS_COMMAND))
        .group_by(bucket, turns.c.transport, model)
        .order_by(bucket)
    )


def _votes(verdict: str) -> Any:
    of_turn = feedback.c.turn_id == turns.c.id, feedback.c.verdict == verdict
    return select(func.count()).where(*of_turn).scalar_subquery()


def _count(condition: Any) -> Any:
    return func.sum(case((condition, 1), else_=0))


def _as_sums(row: Any, every: timedelta) -> Sums:
    at, waited = int(row.bucket) * every.total_seconds(), int(row.waited or 0) / _MICROSECONDS
    counts = {each.name: int(getattr(row, each.name)) for each in fields(Sums) if each.type is int}
    return Sums(datetime.fromtimestamp(at, UTC), row.transport, row.model, waited_seconds=waited, **counts)
