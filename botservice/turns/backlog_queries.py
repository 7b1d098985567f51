"""The backlog of all contexts: what is due now, what waits, runs or was set aside, and how many there are.

`find_due_contexts` finds with one query all contexts that have something to do now, for work that no wakeup announced.
What a context has to do next is the first of: a message that it owes, a change of what was said, the turn that has
begun, one that has waited, a reminder, the next turn (`NextWork`). Where the first of them is not due yet, the
others are put off to the same moment: each row says by itself when it is due, and a chat that waits is not looked at
before its time.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    Text,
    and_,
    bindparam,
    case,
    exists,
    func,
    literal,
    literal_column,
    or_,
    select,
    text,
    union_all,
    update,
)

from botservice.core.states import OPEN, DeliveryKind, EventKind, TurnStatus
from botservice.people.names import HOOKS
from botservice.storage.statements import is_of
from botservice.storage.tables.conditions import (
    CALL_IS_OPEN,
    CHANGE_IS_UNHANDLED,
    DELIVERY_IS_MESSAGE,
    DELIVERY_IS_OWED,
    EVENT_IS_UNHANDLED,
    REMINDER_IS_WAITING,
    TURN_IS_OPEN,
    TURN_IS_RUNNING,
    TURN_IS_SET_ASIDE,
    TURN_IS_SUSPENDED,
    is_one_of,
    of_alias,
)
from botservice.storage.tables.conversations import contexts, deliveries, events, messages, reminders, turns
from botservice.storage.tables.waiting import pending_calls
from botservice.turns.edits_and_deletions import PATIENCE
from botservice.turns.queries import due_by, due_by_a_wrong_clock_in, due_in
from botservice.turns.turn import set_due

OWED: Final = "owed"
"""What stands among the statuses of listed turns for an answer that a platform has not taken yet."""
_MOST_RESENDS: Final = 1000  # at one look: more than there is room for in a lane

_IS_OPEN = and_(DELIVERY_IS_OWED, DELIVERY_IS_MESSAGE)
_IS_CONTROL = and_(EVENT_IS_UNHANDLED, is_one_of("events.kind", EventKind.STOP, EventKind.MOVE, EventKind.FORGET))


class What(StrEnum):
    """The kind of work that a context has."""

    DELIVERY = "delivery"
    CONTROL = "control"
    TURN = "turn"
    WAITING = "waiting"
    REMINDER = "reminder"
    PROGRAM = "program"  # no person waits for it


@dataclass(frozen=True, slots=True)
class DueContext:
    """A context that has something to do now.

    Attributes:
        tries: How often that was tried before.
    """

    context_id: int
    what: What
    transport: str
    tries: int


def _found(
    what: What, table: Any, tries: Any, since: Any, is_of_program: ColumnElement[bool] | None = None
) -> Select[Any]:
    name: ColumnElement[str] = literal(what.value, Text)
    name = name if is_of_program is None else case((is_of_program, literal(What.PROGRAM.value, Text)), else_=name)
    columns = (table.c.context_id, name.label("what"), table.c.transport, tries.label("tries"), since.label("since"))
    return select(*columns).where(table.c.transport.in_(bindparam("transports", expanding=True)))


def _owes_nothing(table: Any) -> ColumnElement[bool]:
    # A subquery with a limit, for each row that is due: as a join, Postgres may read all that is owed anywhere.
    its_message = select(deliveries.c.id).where(
        _IS_OPEN,
        is_of(deliveries, table.c.context_id),
        deliveries.c.transport.in_(bindparam("transports", expanding=True)),
    )
    return its_message.limit(1).scalar_subquery().is_(None)


_NEVER = literal(0)
# A subquery with a limit: as a join, Postgres may read all messages for it.
_ITS_MESSAGE = (
    select(messages.c.id)
    .where(messages.c.context_id == events.c.context_id, messages.c.external_id == events.c.external_id)
    .limit(1)
    .scalar_subquery()
)
_HAS_TURN = exists().where(TURN_IS_OPEN, turns.c.context_id == events.c.context_id)
_HAS_BEGUN = exists().where(TURN_IS_OPEN, turns.c.context_id == reminders.c.context_id, TURN_IS_RUNNING)
_first = deliveries.alias("first")
_FIRST_IS_OPEN = and_(of_alias(DELIVERY_IS_OWED, "first"), of_alias(DELIVERY_IS_MESSAGE, "first"))
# What stands behind a message that was refused is not looked at by itself.
_IS_BEHIND = exists().where(
    _FIRST_IS_OPEN,
    is_of(_first, deliveries.c.context_id),
    _first.c.transport == deliveries.c.transport,
    _first.c.id < deliveries.c.id,
    _first.c.attempts > literal_column("0"),
)
_DELIVERIES = _found(
    What.DELIVERY,
    deliveries,
    deliveries.c.attempts,
    deliveries.c.due_at,
    deliveries.c.kind == literal_column(f"'{DeliveryKind.UNPLANNED}'"),
).where(_IS_OPEN)
_FIRST_TRIES = _DELIVERIES.where(due_in(deliveries), deliveries.c.attempts == literal_column("0"), ~_IS_BEHIND)
_RESENDS = (
    _DELIVERIES.where(
        due_in(deliveries),
        deliveries.c.attempts > literal_column("0"),
        deliveries.c.transport.in_(bindparam("resending", expanding=True)),
    )
    .order_by(deliveries.c.due_at)
    .limit(_MOST_RESENDS)
    .subquery("resends")
)
_CONTROLS = _found(What.CONTROL, events, _NEVER, events.c.received_at).where(_IS_CONTROL)
_CHANGES = _found(What.CONTROL, events, _NEVER, events.c.received_at).where(
    CHANGE_IS_UNHANDLED,
    or_(_ITS_MESSAGE.is_not(None), and_(events.c.received_at < bindparam("stale_before"), ~_HAS_TURN)),
    _owes_nothing(events),
)
_IS_OF_HOOK = and_(turns.c.attempts == literal_column("0"), turns.c.transport.like(literal_column(f"'{HOOKS}%'")))
_TURNS = _found(What.TURN, turns, turns.c.attempts, turns.c.due_at, _IS_OF_HOOK).where(
    TURN_IS_OPEN, turns.c.attempts < bindparam("beginnings"), _owes_nothing(turns)
)
_REMINDERS = _found(What.REMINDER, reminders, _NEVER, reminders.c.due_at).where(
    REMINDER_IS_WAITING, reminders.c.due_at <= bindparam("due_by"), ~_HAS_BEGUN, _owes_nothing(reminders)
)
# What has waited goes on next to no turn that has begun; a turn that waits still has its state.
_ITS_CHAT_IS_FREE = (
    select(turns.c.id)
    .where(TURN_IS_OPEN, turns.c.context_id == pending_calls.c.context_id, TURN_IS_RUNNING)
    .limit(1)
    .scalar_subquery()
    .is_(None)
)
_ITS_TURN = select(turns.c.status).where(turns.c.id == pending_calls.c.turn_id).limit(1).scalar_subquery()
_WAITING = _found(What.WAITING, pending_calls, _NEVER, pending_calls.c.due_at).where(
    CALL_IS_OPEN,
    pending_calls.c.due_at.is_not(None),
    literal_column(f"'{TurnStatus.WAITING}'") == _ITS_TURN,
    _ITS_CHAT_IS_FREE,
    _owes_nothing(pending_calls),
)
_DUE = union_all(
    _FIRST_TRIES,
    select(_RESENDS),
    _CONTROLS,
    _CHANGES,
    _TURNS.where(due_in(turns)),
    _REMINDERS,
    _WAITING.where(due_in(pending_calls)),
)
_DUE_BY_A_WRONG_CLOCK = union_all(
    _DELIVERIES.where(due_by_a_wrong_clock_in(deliveries)),
    _TURNS.where(due_by_a_wrong_clock_in(turns)),
    _WAITING.where(due_by_a_wrong_clock_in(pending_calls)),
)
# Postgres would plan these long questions again each time, which takes longer than they do.
_KEEP_THE_PLAN = text("SET LOCAL plan_cache_mode = force_generic_plan")
# The time as an expression: by the index of what is due, a planner may go through everything that is open anywhere.
_PUT_OFF = tuple(
    update(table)
    .where(
        is_open,
        is_of(table, bindparam("context")),
        func.coalesce(table.c.due_at, bindparam("until")) < bindparam("until"),
    )
    .values(**set_due(bindparam("until"), bindparam("now")))
    for table, is_open in ((deliveries, _IS_OPEN), (turns, TURN_IS_OPEN), (pending_calls, CALL_IS_OPEN))
)


def find_due_contexts(
    connection: Connection,
    now: datetime,
    transports: Collection[str],
    *,
    beginnings: int,
    resending: Collection[str] | None = None,
    is_thorough: bool = True,
) -> list[DueContext]:
    """Return the contexts that have something to do now, those that have waited longest first.

    Args:
        beginnings: Turns that were begun so often without getting further are left for later.
        resending: The transports whose messages are looked for that were refused before; by default all.
        is_thorough: Whether to look also for what was put off while the clock was wrong, among all that is open.
    """
    sought = {"transports": list(transports), "beginnings": beginnings, "stale_before": now - PATIENCE, **due_by(now)}
    sought["resending"] = list(transports if resending is None else resending)
    if connection.dialect.name == "postgresql":
        connection.execute(_KEEP_THE_PLAN)
    rows = list(connection.execute(_DUE, sought))
    if is_thorough:
        rows += connection.execute(_DUE_BY_A_WRONG_CLOCK, sought)
    rows.sort(key=lambda row: row.since)
    return list(dict.fromkeys(DueContext(row.context_id, What(row.what), row.transport, row.tries) for row in rows))


def put_off(connection: Connection, context_id: int, until: datetime, now: datetime) -> None:
    """Put everything that a context has to do off until its first task is due."""
    for statement in _PUT_OFF:
        connection.execute(statement, {"context": context_id, "until": until, "now": now})


# What is not done, and how many


_LISTED = (
    turns.c.id,
    turns.c.context_id,
    contexts.c.context_keys,
    turns.c.transport,
    turns.c.status,
    turns.c.joined_events,
    turns.c.attempts,
    turns.c.created_at,
    turns.c.due_at,
    turns.c.error,
)
# Found by what they wait with: few rows, and an index for them.
_HAS_OPEN_CALLS = turns.c.id.in_(select(pending_calls.c.turn_id).where(CALL_IS_OPEN))
_OPEN_TURNS = select(*_LISTED).join(contexts).where(TURN_IS_OPEN)
# Answers of which a message was not taken, and is tried again.
_OWED_ANSWERS = (
    select(
        turns.c.id,
        turns.c.context_id,
        contexts.c.context_keys,
        deliveries.c.transport,
        literal_column(f"'{OWED}'").label("status"),
        turns.c.joined_events,
        deliveries.c.attempts,
        deliveries.c.created_at,
        deliveries.c.due_at,
        deliveries.c.error,
    )
    .join(turns, turns.c.id == deliveries.c.turn_id)
    .join(contexts, contexts.c.id == deliveries.c.context_id)
    .where(DELIVERY_IS_OWED, deliveries.c.error.is_not(None))
    .order_by(deliveries.c.id)
)
_SUSPENDED_TURNS = select(*_LISTED).join(contexts).where(TURN_IS_SUSPENDED, _HAS_OPEN_CALLS)
_TURNS_SET_ASIDE = select(*_LISTED).join(contexts).where(TURN_IS_SET_ASIDE)
_STOPS = (
    select(events.c.context_id, func.max(events.c.order_key).label("order_key"))
    .where(
        EVENT_IS_UNHANDLED,
        events.c.kind == EventKind.STOP.value,
        events.c.context_id.in_(bindparam("contexts", expanding=True)),
    )
    .group_by(events.c.context_id)
)
_COUNT_OPEN = select(func.count()).select_from(turns).where(TURN_IS_OPEN)
_COUNT_BY_STATUS = (
    select(turns.c.status, func.count().label("number"), func.min(turns.c.created_at).label("oldest"))
    .where(TURN_IS_OPEN)
    .group_by(turns.c.status)
)
_COUNT_OWED = select(func.count()).select_from(deliveries).where(DELIVERY_IS_OWED)


def list_backlog(connection: Connection) -> list[Any]:
    """Return the rows of turns that are open, suspended or set aside, and of answers that a platform did not take."""
    queries = (_OPEN_TURNS, _SUSPENDED_TURNS, _TURNS_SET_ASIDE, _OWED_ANSWERS)
    return [each for query in queries for each in connection.execute(query)]


def list_set_aside(connection: Connection, since: datetime | None) -> list[int]:
    """Return the turns that were set aside, by default of all times, oldest first."""
    query = select(turns.c.id).where(TURN_IS_SET_ASIDE).order_by(turns.c.id)
    return list(connection.execute(query if since is None else query.where(turns.c.finished_at >= since)).scalars())


def count_waiting(connection: Connection) -> int:
    """Return how many turns of all contexts are not done."""
    return int(connection.execute(_COUNT_OPEN).scalar_one())


def measure_backlog(connection: Connection, now: datetime) -> dict[str, float]:
    """Return how many turns and messages of all contexts are not done, and how old the oldest question is."""
    rows = {row.status: row for row in connection.execute(_COUNT_BY_STATUS).all()}
    numbers = {f"turns_{kind.value}": rows[kind.value].number if kind.value in rows else 0 for kind in OPEN}
    queued = rows.get(TurnStatus.QUEUED.value)
    oldest = 0.0 if queued is None else max(0.0, (now - queued.oldest).total_seconds())
    owed = connection.execute(_COUNT_OWED).scalar_one()
    return {**numbers, "oldest_queued_seconds": oldest, "deliveries": owed}


def find_stops(connection: Connection, context_ids: Collection[int]) -> dict[int, int]:
    """Return the order key of the newest unhandled stop of each context that has one."""
    if not context_ids:
        return {}
    rows = connection.execute(_STOPS, {"contexts": list(context_ids)}).all()
    return {row.context_id: row.order_key for row in rows}
