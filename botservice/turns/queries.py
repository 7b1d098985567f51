"""Every statement that changes or finds a turn: beginning, steps, end, and what comes next."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Table, and_, bindparam, delete, exists, func, insert, not_, or_, select, update

from botservice.core.errors import StorageError, TurnGrew
from botservice.core.states import EventKind, Outcome, TurnStatus
from botservice.storage.database import Connection, Storage
from botservice.storage.ranges import is_of
from botservice.storage.statements import execute_each
from botservice.storage.tables.conditions import (
    CALL_IS_OPEN,
    DELIVERY_IS_OWED,
    EVENT_IS_UNHANDLED,
    TURN_IS_OPEN,
    TURN_IS_QUEUED,
    TURN_IS_RUNNING,
)
from botservice.storage.tables.conversations import deliveries, events, messages, steps, turns
from botservice.storage.tables.waiting import pending_calls
from botservice.turns.turn import AT_ONCE, StoredEvent, Turn, set_due

IS_COMMAND: Final = and_(
    turns.c.outcome.is_not(None),  # or "not a command" would be unknown of what has not ended
    turns.c.outcome == Outcome.ANSWERED.value,
    not_(exists().where(steps.c.turn_id == turns.c.id)),
    not_(exists().where(messages.c.answers_turn_id == turns.c.id)),
)
"""Whether a turn was for the service itself, such as /help: the agent took no step, and nothing was answered."""


def when_due_was_set(table: Table) -> ColumnElement[datetime]:
    """Return the column to select as due_set_at."""
    return _was_set(table).label("due_set_at")


def due_in(table: Table) -> ColumnElement[bool]:
    """Return the condition that something is due at its time, of the parameters of `due_by`: an index finds it."""
    is_past: ColumnElement[bool] = table.c.due_at <= bindparam("due_by")
    return is_past


def due_by_a_wrong_clock_in(table: Table) -> ColumnElement[bool]:
    """Return the condition that its time was set while the clock was ahead: whatever is open has to be looked at."""
    return _was_set(table) > bindparam("due_ahead")


def due_by(now: datetime) -> dict[str, datetime]:
    """Return the parameters of these conditions, which together are what `is_due` says of rows that are read."""
    return {"due_by": now, "due_ahead": now + AT_ONCE}


def _was_set(table: Table) -> ColumnElement[datetime]:
    return func.coalesce(table.c.due_set_at, table.c.created_at)


# Statements are made once: making one again for every call takes SQLAlchemy longer than running it.
_UPDATE_TURN = update(turns).where(turns.c.id == bindparam("turn"))
_COUNT_BEGINNING = _UPDATE_TURN.values(attempts=turns.c.attempts + 1)
_COUNT_FAILURE = _UPDATE_TURN.values(failures=turns.c.failures + 1)
_DEFER = _COUNT_BEGINNING.where(TURN_IS_QUEUED)
_BEGIN_FIRST = _COUNT_BEGINNING.where(TURN_IS_OPEN, turns.c.joined_events == bindparam("joined"))
_INSERT_TURN = insert(turns).returning(turns.c.id, sort_by_parameter_order=True)
_TURNS = select(
    turns.c.id,
    turns.c.context_id,
    turns.c.status,
    turns.c.transport,
    turns.c.attempts,
    turns.c.due_at,
    turns.c.keeps_steps,
    turns.c.order_key,
    turns.c.started_at,
    turns.c.joined_events,
    turns.c.failures,
    turns.c.created_at,
    when_due_was_set(turns),
).where(turns.c.context_id == bindparam("context"))
# In the order of the index of open turns: by their ids, SQLite goes through all the turns of a chat.
_RUNNING_TURN = _TURNS.where(TURN_IS_OPEN, TURN_IS_RUNNING).order_by(turns.c.order_key, turns.c.id).limit(1)
_next = (
    _TURNS.add_columns(func.count().over().label("number"))
    .where(TURN_IS_OPEN, or_(TURN_IS_RUNNING, turns.c.transport.in_(bindparam("transports", expanding=True))))
    .order_by(turns.c.status.desc(), turns.c.order_key, turns.c.id)  # running comes after queued in the alphabet
    .limit(1)
    .subquery("next")
)
_EVENT = [column.label(f"event_{column.name}") for column in events.c["id", "key", "raw", "received_at", "group_key"]]
_NEXT_TURN = (
    select(_next, *_EVENT)
    .outerjoin_from(_next, events, events.c.turn_id == _next.c.id)
    .order_by(events.c.order_key, events.c.id)
)
_QUEUED_TURNS = (
    _TURNS.where(TURN_IS_OPEN, TURN_IS_QUEUED, turns.c.transport == bindparam("transport"))
    .where(turns.c.id != bindparam("but"))
    .order_by(turns.c.order_key, turns.c.id)
    .limit(50)
)
_TURN = _TURNS.where(turns.c.id == bindparam("turn"))
_NEWEST_TURN = _TURNS.where(turns.c.started_at.is_not(None)).order_by(turns.c.id.desc()).limit(1)
_EVENTS_OF_TURN = select(*_EVENT).where(events.c.turn_id == bindparam("turn")).order_by(events.c.order_key, events.c.id)
_NEWEST_MESSAGES = (
    select(*_EVENT, events.c.transport)
    .where(
        events.c.context_id == bindparam("context"), events.c.kind == EventKind.MESSAGE.value, events.c.raw.is_not(None)
    )
    .order_by(events.c.id.desc())
)
_GROW_TURN = (
    update(turns)
    .where(TURN_IS_OPEN, turns.c.id == bindparam("turn"), turns.c.joined_events == bindparam("joined"))
    .values(joined_events=bindparam("joined") + bindparam("more"), attempts=0)
    .returning(turns.c.id)
)
_DROP_QUEUED = (
    delete(turns)
    .where(TURN_IS_QUEUED, turns.c.id == bindparam("turn"), turns.c.joined_events == bindparam("joined"))
    .returning(turns.c.id)
)
_MOVE_EVENTS = update(events).where(events.c.turn_id == bindparam("from_turn")).values(turn_id=bindparam("to_turn"))
_NAME_EVENTS = update(events).where(events.c.turn_id == bindparam("of_turn")).values(group_key=bindparam("name"))
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
_OPEN_TURNS = (
    select(turns.c.status, func.count().label("number"), func.min(turns.c.created_at).label("oldest"))
    .where(TURN_IS_OPEN)
    .group_by(turns.c.status)
)
_OPEN_DELIVERIES = select(func.count()).select_from(deliveries).where(DELIVERY_IS_OWED)


def insert_turn(
    connection: Connection,
    context_id: int,
    transport: str,
    now: datetime,
    *,
    status: TurnStatus = TurnStatus.QUEUED,
    **columns: Any,
) -> int:
    """Store a turn and return its id (see `turn_row`)."""
    return insert_turns(connection, [turn_row(context_id, transport, now, status=status, **columns)])[0]


def insert_turns(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> list[int]:
    """Store turns, whose rows have the same columns, and return their ids."""
    return list(connection.execute(_INSERT_TURN, rows).scalars()) if rows else []


def turn_row(
    context_id: int, transport: str, now: datetime, *, status: TurnStatus = TurnStatus.QUEUED, **columns: Any
) -> dict[str, Any]:
    """Return the row of a new turn; one that is running counts as begun now.

    Args:
        columns: What the row has besides: order_key, due_at, keeps_steps, system_prompt.
    """
    is_running = status is TurnStatus.RUNNING
    return {
        "context_id": context_id,
        "transport": transport,
        "status": status.value,
        "order_key": 0,
        "due_at": now,
        "created_at": now,
        "started_at": now if is_running else None,
        "attempts": int(is_running),
        "keeps_steps": False,
        **columns,
    }


def mark_running(
    connection: Connection,
    turn_id: int,
    now: datetime,
    *,
    is_first: bool,
    joined_events: int = 0,
    system_prompt: str | None = None,
) -> None:
    """Mark a turn running, and count one more beginning of it.

    Args:
        joined_events: How many events it had next to the first when it was read, where it begins for the first time.
        system_prompt: The digest of the blob with what the agent is told to be then.

    Raises:
        TurnGrew: it has other messages now, or was dropped.
    """
    if is_first:
        begin_turns(connection, [(turn_id, joined_events, system_prompt, now)])
    else:
        connection.execute(_COUNT_BEGINNING, {"turn": turn_id, "status": TurnStatus.RUNNING.value})


def begin_turns(connection: Connection, read: Sequence[tuple[int, int, str | None, datetime]]) -> None:
    """Mark turns running that begin for the first time.

    Args:
        read: Of each its id, how many events it had after the first, the digest of its system prompt, and the moment.

    Raises:
        TurnGrew: one has other messages now, or was dropped.
    """
    running = {"status": TurnStatus.RUNNING.value}
    rows = [
        {**running, "turn": turn_id, "joined": joined, "system_prompt": prompt, "started_at": now}
        for turn_id, joined, prompt, now in read
    ]
    if rows and execute_each(connection, _BEGIN_FIRST, rows).rowcount != len(rows):
        raise TurnGrew(f"turn {', '.join(str(turn_id) for turn_id, *_ in read)} is not any more what was read")


def defer_turn(connection: Connection, turn_id: int, until: datetime, now: datetime) -> None:
    """Put a turn off that has not begun: it waits for what else is said (see `Turn.is_deferred`)."""
    connection.execute(_DEFER, {"turn": turn_id, **set_due(until, now)})


def note_step(connection: Connection, turn_id: int, *, steps_taken: int, last_step_number: int) -> None:
    """Store that a turn got one step further, and count its beginnings and failures from zero again."""
    values = {
        "turn": turn_id,
        "attempts": 1,
        "failures": 0,
        "steps_taken": steps_taken,
        "last_step_number": last_step_number,
    }
    connection.execute(_UPDATE_TURN, values)


def note_failure(connection: Connection, turn_id: int, *, last_step_number: int) -> None:
    """Store the number of a step that failed; it does not count as one that was taken."""
    connection.execute(_UPDATE_TURN, {"turn": turn_id, "last_step_number": last_step_number})


def finish_turn(
    connection: Connection,
    turn_id: int,
    now: datetime,
    outcome: Outcome,
    *,
    status: TurnStatus = TurnStatus.DONE,
    error: str | None = None,
) -> None:
    """End a turn."""
    finish_turns(connection, [(turn_id, now)], outcome, status=status, error=error)


def finish_turns(
    connection: Connection,
    ended: Sequence[tuple[int, datetime]],
    outcome: Outcome,
    *,
    status: TurnStatus = TurnStatus.DONE,
    error: str | None = None,
) -> int:
    """End turns, each at its moment; return how many of them are there."""
    end = {"status": status.value, "outcome": outcome.value, "error": error}
    rows = [{"turn": turn_id, **end, "finished_at": now} for turn_id, now in ended]
    return execute_each(connection, _UPDATE_TURN, rows).rowcount if rows else 0


def postpone_turn(
    connection: Connection,
    turn_id: int,
    now: datetime,
    *,
    delay: timedelta,
    error: str,
    status: TurnStatus = TurnStatus.RUNNING,
) -> None:
    """Put a turn that failed off until its next try; a running one holds up those after it."""
    values = {"turn": turn_id, "status": status.value, "error": error, **set_due(now + delay, now)}
    connection.execute(_COUNT_FAILURE, values)


def set_waiting(connection: Connection, turn_id: int) -> None:
    """Mark a turn as waiting."""
    connection.execute(_UPDATE_TURN, {"turn": turn_id, "status": TurnStatus.WAITING.value})


def reopen_turn(connection: Connection, turn_id: int, now: datetime) -> None:
    """Set a turn running again that was set aside."""
    values = {"turn": turn_id, "status": TurnStatus.RUNNING.value, "attempts": 1, "failures": 0, **set_due(now, now)}
    connection.execute(_UPDATE_TURN, {**values, "outcome": None, "finished_at": None, "error": None})


def find_running_turn(connection: Connection, context_id: int) -> Turn | None:
    """Return the running turn of a context, or None."""
    row = connection.execute(_RUNNING_TURN, {"context": context_id}).one_or_none()
    return None if row is None else _read_turn(connection, row)


def find_turn(connection: Connection, context_id: int, turn_id: int) -> Turn | None:
    """Return a turn of a context."""
    row = connection.execute(_TURN, {"context": context_id, "turn": turn_id}).one_or_none()
    return None if row is None else _read_turn(connection, row)


def find_next_turn(connection: Connection, context_id: int, transports: Collection[str]) -> Turn | None:
    """Return the turn of a context to work on next: the one that has begun, else the first in the platform's order.

    It may be due a moment later, while the parts of a message gather: those after it wait for that.
    """
    sought = {"context": context_id, "transports": list(transports)}
    rows = connection.execute(_NEXT_TURN, sought).all()
    if not rows:
        return None
    turn = _as_turn(rows[0], [row for row in rows if row.event_id is not None])
    return replace(turn, is_alone=rows[0].number == 1)


def find_queued_turns(connection: Connection, context_id: int, transport: str, *, but: int) -> Iterator[Turn]:
    """Yield the turns of a context that have not begun, except one, in the platform's order."""
    rows = connection.execute(_QUEUED_TURNS, {"context": context_id, "transport": transport, "but": but}).all()
    return (_read_turn(connection, row) for row in rows)


def join_turns(connection: Connection, turn: Turn, parts: Sequence[Turn]) -> None:
    """Give a turn the events of queued ones, which are gone then.

    Raises:
        TurnGrew: one of them is not what was read any more.
    """
    more = sum(each.joined_events + 1 for each in parts)
    grown = connection.execute(_GROW_TURN, {"turn": turn.id, "joined": turn.joined_events, "more": more})
    if grown.one_or_none() is None:
        raise TurnGrew(f"turn {turn.id} is not any more what was read")
    for each in parts:
        connection.execute(_MOVE_EVENTS, {"from_turn": each.id, "to_turn": turn.id})
        dropped = connection.execute(_DROP_QUEUED, {"turn": each.id, "joined": each.joined_events})
        if dropped.one_or_none() is None:
            raise TurnGrew(f"turn {each.id} is not any more what was read")
    connection.execute(_NAME_EVENTS, {"of_turn": turn.id, "name": _name_of([turn, *parts])})


def find_failed_turn(connection: Connection, context_id: int, transport: str) -> Turn | None:
    """Return the newest turn of a context if it was set aside, else None."""
    row = connection.execute(_NEWEST_TURN, {"context": context_id}).one_or_none()
    if row is None or row.status != TurnStatus.SET_ASIDE.value or row.transport != transport:
        return None
    return _read_turn(connection, row)


def find_stops(connection: Connection, context_ids: Collection[int]) -> dict[int, int]:
    """Return the order key of the newest unhandled stop of each context that has one."""
    if not context_ids:
        return {}
    rows = connection.execute(_STOPS, {"contexts": list(context_ids)}).all()
    return {row.context_id: row.order_key for row in rows}


def count_waiting(connection: Connection) -> int:
    """Return how many turns of all contexts are not done."""
    return int(connection.execute(_COUNT_OPEN).scalar_one())


def measure_backlog(connection: Connection, now: datetime) -> dict[str, float]:
    """Return how many turns and messages of all contexts are not done, and how old the oldest question is."""
    rows = {row.status: row for row in connection.execute(_OPEN_TURNS).all()}
    kinds = (TurnStatus.QUEUED, TurnStatus.RUNNING)
    numbers = {f"turns_{kind.value}": rows[kind.value].number if kind.value in rows else 0 for kind in kinds}
    queued = rows.get(TurnStatus.QUEUED.value)
    oldest = 0.0 if queued is None else max(0.0, (now - queued.oldest).total_seconds())
    owed = connection.execute(_OPEN_DELIVERIES).scalar_one()
    return {**numbers, "oldest_queued_seconds": oldest, "deliveries": owed}


def find_newest_messages(connection: Connection, context_id: int, most: int) -> list[tuple[str, StoredEvent]]:
    """Find the newest messages that people wrote in a context, as they came, each with its transport."""
    found = connection.execute(_NEWEST_MESSAGES.limit(most), {"context": context_id}).all()
    return [(each.transport, _read_event(each)) for each in found]


def _read_event(row: Any) -> StoredEvent:
    return StoredEvent(row.event_id, row.event_key, row.event_raw or b"", row.event_received_at, row.event_group_key)


def _read_turn(connection: Connection, row: Any) -> Turn:
    return _as_turn(row, connection.execute(_EVENTS_OF_TURN, {"turn": row.id}).all())


def _as_turn(row: Any, found: Sequence[Any]) -> Turn:
    return Turn(
        row.id,
        row.context_id,
        TurnStatus(row.status),
        row.transport,
        row.attempts,
        row.due_at,
        row.keeps_steps,
        row.order_key,
        row.started_at is not None,
        tuple(map(_read_event, found)),
        row.joined_events,
        row.due_set_at,
        row.failures,
        row.created_at,
    )


def _name_of(joined: Sequence[Turn]) -> str:
    """Return what the parts of one question are called: the platform's name for an album, if all are of one."""
    members = [event for each in joined for event in each.events]
    names = {event.group_key for event in members}
    name = names.pop() if len(names) == 1 else None
    return name or f"together:{min(event.id for event in members)}"


async def find_newest_turn(storage: Storage, context_id: int | None, *, is_failed: bool) -> tuple[int, int]:
    """Return the conversation and the number of the newest turn, or of the newest that failed or was set aside.

    Args:
        context_id: In which conversation; None for any.

    Raises:
        StorageError: there is none.
    """
    query = select(turns.c.context_id, turns.c.id).where(turns.c.context_id.is_not(None)).limit(1)
    if context_id is None:
        query = query.order_by(turns.c.id.desc())
    else:  # not "equal", and ordered by both: Postgres would go through the turns of all contexts otherwise
        query = query.where(turns.c.context_id.between(context_id, context_id))
        query = query.order_by(turns.c.context_id.desc(), turns.c.id.desc())
    if is_failed:
        query = query.where((turns.c.outcome == Outcome.FAILED.value) | (turns.c.status == TurnStatus.SET_ASIDE.value))

    def read(connection: Connection) -> tuple[int, int] | None:
        row = connection.execute(query).one_or_none()
        return None if row is None else (row.context_id, row.id)

    found = await storage.read(read, is_long=True)
    if found is None:
        where = "" if context_id is None else f" in context {context_id}"
        raise StorageError(f"no turn has failed{where}" if is_failed else f"there is no turn{where}")
    return found


_LOCK_TURNS = (
    select(turns.c.id)
    .where(turns.c.id.in_(bindparam("turns", expanding=True)))
    .with_for_update(read=True, key_share=True)
)


def lock_turns(connection: Connection, turn_ids: Collection[int]) -> Sequence[int]:
    """Return which of some turns there are, locked: forgetting one waits, since the turn goes before what it wrote."""
    return connection.execute(_LOCK_TURNS, {"turns": list(turn_ids)}).scalars().all() if turn_ids else ()


_LAST_OPEN = select(func.max(turns.c.order_key)).where(TURN_IS_OPEN, turns.c.context_id == bindparam("context"))


def place_in_line(connection: Connection, context_id: int) -> int:
    """Return an order key behind everything that waits in a context, and before what is asked later."""
    return connection.execute(_LAST_OPEN, {"context": context_id}).scalar_one() or 0


_CONTEXT: Any = bindparam("context")
_OWES = select(deliveries.c.id).where(DELIVERY_IS_OWED, is_of(deliveries, _CONTEXT))
_CONTROL = select(events.c.id).where(EVENT_IS_UNHANDLED, events.c.context_id == _CONTEXT)
_OPEN_TURN = select(turns.c.id).where(TURN_IS_OPEN, turns.c.context_id == _CONTEXT)
_OPEN_CALL = select(pending_calls.c.id).where(CALL_IS_OPEN, is_of(pending_calls, _CONTEXT))
_LOOK = select(
    _OWES.limit(1).scalar_subquery().label("owes"),
    _CONTROL.limit(1).scalar_subquery().label("control"),
    _OPEN_TURN.limit(1).scalar_subquery().label("turn"),
    _OPEN_CALL.limit(1).scalar_subquery().label("waiting"),
)


def find_kinds_of_work(connection: Connection, context_id: int) -> Any:
    """Return what there is to do in a context at all, in one look; most have one thing, which is read then.

    Returns:
        A row with `owes` (a delivery), `control`, `turn` and `waiting` (a call), each an id or None.
    """
    return connection.execute(_LOOK, {"context": context_id}).one()
