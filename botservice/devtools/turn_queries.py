"""Turns found by text, person, outcome, usage or rating, and turns summed up by hour or day, model and platform.

However many turns there are, a page looks at so many of them and no more: those of an index that fits, or the newest.
The next page begins where this one ended.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Select,
    TextClause,
    and_,
    case,
    exists,
    func,
    literal,
    not_,
    or_,
    select,
    type_coerce,
)

from botservice.conversation.field_codec import dumps
from botservice.conversation.queries import VERDICTS
from botservice.conversation.tool_calls import DENIED, EXPIRED, WITHDRAWN
from botservice.core.states import UNANSWERED, Outcome
from botservice.storage.tables.conditions import (
    TURN_HAS_FAILED,
    TURN_IS_ANSWERED,
    TURN_IS_ASKED,
    TURN_IS_STOPPED,
    TURN_IS_UNANSWERED,
    TURN_IS_UNFINISHED,
    VERDICT_IS_BAD,
    is_one_of,
)
from botservice.storage.tables.conversations import events, messages, steps, turn_figures, turns
from botservice.storage.tables.services import feedback
from botservice.turns.call_queries import select_person_wait
from botservice.turns.queries import IS_COMMAND

LOOKED_AT: Final = 2_000
"""How many turns a page looks at, at most."""

_FAILED_CALL: Final = '"is_error":true'
"""Stands in the record of a step whose tool failed; in what a tool says, its quotes are escaped."""
_OF_TURN = and_(messages.c.event_id == events.c.id, events.c.turn_id == turns.c.id)


class State(StrEnum):
    """The state of the turns that are looked for."""

    ASKED = "asked"  # those of the agent: neither commands, nor what it only listened to
    ANSWERED = Outcome.ANSWERED.value
    OPEN = "open"
    FAILED = Outcome.FAILED.value
    STOPPED = Outcome.STOPPED.value
    REFUSED = Outcome.REFUSED.value
    COMMANDS = "commands"
    ALL = "all"


class TurnOrder(StrEnum):
    """The order of the turns that are found."""

    NEWEST = "newest"
    SLOWEST = "slowest"
    MOST_EXPENSIVE = "most_expensive"


class Rating(StrEnum):
    """What people think of an answer."""

    GOOD = "good"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class TurnFilter:
    """The filter of a search for turns; empty texts and None match anything.

    Attributes:
        person: A part of a name, or an id as the platform gives it, such as "telegram:42".
        since: From then on; until: before then.
    """

    text: str = ""
    person: str = ""
    platform: str = ""
    state: State = State.ASKED
    model: str = ""
    tool: str = ""
    rating: Rating | None = None
    since: datetime | None = None
    until: datetime | None = None
    order: TurnOrder = TurnOrder.NEWEST
    context_id: int | None = None


@dataclass(frozen=True, slots=True)
class PageCursor:
    """Where a page begins: after a turn, in the order of the list.

    Attributes:
        value: What it is ordered by; the turn's id where that is all.
    """

    value: int
    turn_id: int


@dataclass(frozen=True, slots=True)
class FoundTurn:
    """A turn that was found, as its rows have it.

    Attributes:
        row: Its columns, and those of its figures, which are None if no model was asked; and is_command, whether it
            was for the service itself.
        ratings: How many think well of it, and how many badly.
    """

    row: Any
    ratings: tuple[int, int]


@dataclass(frozen=True, slots=True)
class FoundPage:
    """A page of turns.

    Attributes:
        rest: Where the next page begins, or None if there is none.
        is_full: Whether it ended because there was no more room on it; otherwise so many were looked at.
    """

    found: list[FoundTurn] = field(default_factory=list)
    rest: PageCursor | None = None
    is_full: bool = True


def find_turns(
    connection: Connection,
    sought: TurnFilter,
    *,
    limit: int,
    after: PageCursor | None = None,
    looks_at: int = LOOKED_AT,
) -> FoundPage:
    """Return the next turns that match, looking at a limited number of rows."""
    candidates = _candidates(sought, after).limit(looks_at)
    looked = candidates.subquery()
    query = (
        select(turns, *(turn_figures.c[name] for name in _FIGURES), looked.c.value, IS_COMMAND.label("is_command"))
        .join(looked, looked.c.id == turns.c.id)
        .outerjoin(turn_figures, turn_figures.c.turn_id == turns.c.id)
        .where(*_conditions(sought))
        .order_by(looked.c.value.desc(), turns.c.id.desc())
        .limit(limit + 1)
    )
    rows = connection.execute(query).all()
    ratings = read_ratings(connection, [row.id for row in rows[:limit]])
    found = [FoundTurn(row, ratings.get(row.id, (0, 0))) for row in rows[:limit]]
    if len(rows) > limit:
        last = rows[limit - 1]
        return FoundPage(found, PageCursor(int(last.value), last.id))
    end = connection.execute(candidates.limit(1).offset(looks_at - 1)).one_or_none()
    return FoundPage(found, None if end is None else PageCursor(int(end.value), end.id), is_full=False)


def read_ratings(connection: Connection, turn_ids: Sequence[int]) -> Mapping[int, tuple[int, int]]:
    """Return how many people rated each turn good, and how many bad."""
    query = (
        select(feedback.c.turn_id, feedback.c.verdict, func.count().label("votes"))
        .where(feedback.c.turn_id.in_(turn_ids))
        .group_by(feedback.c.turn_id, feedback.c.verdict)
    )
    found: dict[int, dict[str, int]] = {}
    for row in connection.execute(query):
        found.setdefault(row.turn_id, {})[row.verdict] = row.votes
    return {turn_id: (each.get(Rating.GOOD, 0), each.get(Rating.BAD, 0)) for turn_id, each in found.items()}


def find_with_failed_calls(connection: Connection, turn_ids: Sequence[int]) -> set[int]:
    """Return those of some turns in which a call of a tool failed; one that nobody allowed was not made."""
    query = select(steps.c.turn_id, steps.c.data).where(steps.c.turn_id.in_(turn_ids), steps.c.step_number.is_not(None))
    return {row.turn_id for row in connection.execute(query) if _has_failed_call(row.data)}


def _has_failed_call(record: str) -> bool:
    for told in (DENIED, EXPIRED, WITHDRAWN):
        record = record.replace(f'"text":{dumps(told)},{_FAILED_CALL}', "")
    return _FAILED_CALL in record


_ORDERED_BY: Final[Mapping[TurnOrder, ColumnElement[int]]] = {
    TurnOrder.SLOWEST: turn_figures.c.lasted_ms,
    TurnOrder.MOST_EXPENSIVE: turn_figures.c.cost,
}
_FIGURES: Final = tuple(column.name for column in turn_figures.c if column.name != "turn_id")


def _candidates(sought: TurnFilter, after: PageCursor | None) -> Select[Any]:
    """Return the query of the turns to look at, by the most selective index."""
    if sought.context_id is not None:
        # Not "equal", and ordered by both: Postgres would go through the turns of all contexts for the newest of one.
        of_context = turns.c.context_id.between(sought.context_id, sought.context_id)
        by_id = select(turns.c.id, turns.c.id.label("value")).where(of_context, *_ids_before(turns.c.id, after))
        return by_id.order_by(turns.c.context_id.desc(), turns.c.id.desc())
    if sought.order in _ORDERED_BY:
        value, turn_id = _ORDERED_BY[sought.order], turn_figures.c.turn_id
        query = select(turn_id.label("id"), value.label("value")).where(value > 0, *_before(value, turn_id, after))
        return query.order_by(value.desc(), turn_id.desc())
    if sought.rating is Rating.BAD:
        query = select(feedback.c.turn_id.label("id"), feedback.c.turn_id.label("value"))
        query = query.where(VERDICT_IS_BAD, *_ids_before(feedback.c.turn_id, after)).distinct()
        return query.order_by(feedback.c.turn_id.desc())
    query = select(turns.c.id, turns.c.id.label("value")).where(*_ids_before(turns.c.id, after))
    if sought.state.value in UNANSWERED:
        query = query.where(TURN_IS_UNANSWERED, is_one_of("turns.outcome", sought.state))
        return query.order_by(turns.c.outcome.desc(), turns.c.id.desc())
    return query.order_by(turns.c.id.desc())


def _ids_before(column: ColumnElement[Any], after: PageCursor | None) -> list[ColumnElement[bool]]:
    return [] if after is None else [column < after.turn_id]


def _before(
    value: ColumnElement[Any], turn_id: ColumnElement[Any], after: PageCursor | None
) -> list[ColumnElement[bool]]:
    if after is None:
        return []
    return [value <= after.value, or_(value < after.value, turn_id < after.turn_id)]


_IN_STATE: Final[Mapping[State, Sequence[ColumnElement[bool] | TextClause]]] = {
    State.ALL: (),
    State.COMMANDS: (IS_COMMAND,),
    State.OPEN: (TURN_IS_UNFINISHED,),
    State.ASKED: (TURN_IS_ASKED, not_(IS_COMMAND)),
    State.ANSWERED: (TURN_IS_ANSWERED, not_(IS_COMMAND)),
}
"""The conditions of the states that are more than an outcome."""


def _conditions(sought: TurnFilter) -> list[ColumnElement[bool] | TextClause]:
    found = list(_IN_STATE.get(sought.state, (is_one_of("turns.outcome", sought.state),)))
    if sought.text:
        said = messages.c.text.icontains(sought.text, autoescape=True)
        found.append(
            or_(exists().where(_OF_TURN, said), exists().where(messages.c.answers_turn_id == turns.c.id, said))
        )
    if sought.person:
        found.append(exists().where(_OF_TURN, _is_by(sought.person)))
    if sought.platform:
        found.append(turns.c.transport == sought.platform)
    if sought.model:
        found.append(turn_figures.c.model == sought.model)
    if sought.tool:
        found.append(turn_figures.c.tools.contains(f" {sought.tool} ", autoescape=True))
    if sought.rating is not None:
        verdict = feedback.c.verdict == sought.rating.value
        found.append(exists().where(feedback.c.turn_id == turns.c.id, verdict))
    if sought.since is not None:
        found.append(turns.c.created_at >= sought.since)
    if sought.until is not None:
        found.append(turns.c.created_at < sought.until)
    return found


def _is_by(person: str) -> ColumnElement[bool]:
    platform, separator, platform_id = person.partition(":")
    is_account = and_(messages.c.author_platform == platform, messages.c.author_id == platform_id)
    return or_(
        messages.c.author_name.icontains(person, autoescape=True),
        is_account if separator else messages.c.author_id == person,
    )


MOST_SUMMED: Final = 20_000
"""How many turns are summed up, at most: the newest."""

_MICROSECONDS: Final = 1_000_000
_SUMMED: Final = ("calls", "failed_calls", "input_tokens", "cached_tokens", "cost", "model_ms")


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
    connection: Connection, since: datetime, until: datetime, *, every: timedelta, looks_at: int = MOST_SUMMED
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
    figures = turn_figures.c
    model = func.coalesce(figures.model, "")
    return (
        select(
            bucket,
            turns.c.transport,
            model.label("model"),
            func.count().label("turns"),
            _count(TURN_IS_ANSWERED).label("answered"),
            _count(TURN_HAS_FAILED).label("failed"),
            _count(TURN_IS_STOPPED).label("stopped"),
            func.sum(case((TURN_IS_ANSWERED, waited), else_=0)).label("waited"),
            func.count(figures.first_token_ms).label("first_tokens"),
            func.coalesce(func.sum(figures.first_token_ms), 0).label("first_token_ms"),
            *(func.coalesce(func.sum(figures[name]), 0).label(name) for name in _SUMMED),
            *(func.sum(_votes(verdict)).label(verdict) for verdict in VERDICTS),
        )
        .select_from(
            newest.join(turns, turns.c.id == newest.c.id).outerjoin(turn_figures, figures.turn_id == turns.c.id)
        )
        .where(turns.c.created_at >= since, turns.c.created_at < until)
        .where(TURN_IS_ASKED, not_(IS_COMMAND))
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
