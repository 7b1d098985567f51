"""How events and turns lie in their tables: the queries that own them."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, func, insert, select, text, update
from sqlalchemy.dialects import postgresql, sqlite

from botservice.contexts import ContextKeys, find_or_insert_context
from botservice.storage.tables import events, turns
from botservice.turns.turn import EventKind, InboundEvent, Outcome, StoredEvent, Turn, TurnStatus

# Word for word the condition of the partial index: with a bound parameter in it, a planner cannot know that it fits.
_IS_OPEN = text("turns.status IN ('queued', 'running')")
_IS_UNHANDLED = text("events.turn_id IS NULL AND events.handled_at IS NULL")

GATHERING = timedelta(seconds=1)  # how long the parts of one message, such as an album, are waited for

_TURN_COLUMNS = (
    turns.c.id,
    turns.c.context_id,
    turns.c.status,
    turns.c.transport,
    turns.c.attempts,
    turns.c.due_at,
    turns.c.keeps_steps,
    turns.c.order_key,
    turns.c.started_at,
)


def insert_event(
    connection: Connection, transport: str, keys: ContextKeys, event: InboundEvent, now: datetime
) -> int | None:
    """Store an event, and the turn that will answer it, and return its context; None where it is known already."""
    context_id = find_or_insert_context(connection, keys, now)
    dialect = sqlite if connection.dialect.name == "sqlite" else postgresql
    event_id = connection.execute(
        dialect.insert(events)
        .values(
            key=event.key,
            context_id=context_id,
            transport=transport,
            kind=event.kind.value,
            order_key=event.order_key,
            group_key=event.group_key,
            raw=event.raw,
            received_at=now,
        )
        .on_conflict_do_nothing(index_elements=["key"])
        .returning(events.c.id)
    ).scalar_one_or_none()
    if event_id is None:
        return None
    if event.kind is EventKind.MESSAGE:
        turn_id = _gather(connection, context_id, event, now) or insert_turn(
            connection,
            context_id,
            transport,
            now,
            order_key=event.order_key,
            due_at=now if event.group_key is None else now + GATHERING,
        )
        connection.execute(update(events).where(events.c.id == event_id).values(turn_id=turn_id))
    return context_id


def insert_turn(
    connection: Connection,
    context_id: int,
    transport: str,
    now: datetime,
    *,
    order_key: int = 0,
    due_at: datetime | None = None,
    status: TurnStatus = TurnStatus.QUEUED,
    keeps_steps: bool = False,
) -> int:
    """Store a turn and return its id; one that is running counts as begun now."""
    is_running = status is TurnStatus.RUNNING
    new = insert(turns).values(
        context_id=context_id,
        transport=transport,
        status=status.value,
        order_key=order_key,
        due_at=due_at or now,
        created_at=now,
        started_at=now if is_running else None,
        attempts=int(is_running),
        keeps_steps=keeps_steps,
    )
    return int(connection.execute(new.returning(turns.c.id)).scalar_one())


def _gather(connection: Connection, context_id: int, event: InboundEvent, now: datetime) -> int | None:
    """Return the turn that waits with the other parts of the same message, after having it wait a little longer."""
    if event.group_key is None:
        return None
    query = (
        select(turns.c.id)
        .join(events, events.c.turn_id == turns.c.id)
        .where(
            _IS_OPEN,
            turns.c.context_id == context_id,
            turns.c.status == TurnStatus.QUEUED.value,
            events.c.group_key == event.group_key,
        )
        .limit(1)
    )
    turn_id = connection.execute(query).scalar_one_or_none()
    if turn_id is not None:
        connection.execute(update(turns).where(turns.c.id == turn_id).values(due_at=now + GATHERING))
    return turn_id


def begin_turn(connection: Connection, turn_id: int, now: datetime, *, is_first: bool) -> None:
    """Count one more beginning of a turn."""
    values: dict[str, Any] = {"status": TurnStatus.RUNNING.value, "attempts": turns.c.attempts + 1}
    if is_first:
        values["started_at"] = now
    connection.execute(update(turns).where(turns.c.id == turn_id).values(values))


def note_step(connection: Connection, turn_id: int, *, steps_taken: int, last_step_number: int) -> None:
    """Take note that a turn got one step further: its beginnings count anew."""
    connection.execute(
        update(turns)
        .where(turns.c.id == turn_id)
        .values(attempts=1, steps_taken=steps_taken, last_step_number=last_step_number)
    )


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
    connection.execute(
        update(turns)
        .where(turns.c.id == turn_id)
        .values(status=status.value, outcome=outcome.value, finished_at=now, error=error)
    )


def postpone_turn(connection: Connection, turn_id: int, due_at: datetime, error: str) -> None:
    """Have a turn tried again later; the ones after it wait."""
    connection.execute(
        update(turns)
        .where(turns.c.id == turn_id)
        .values(status=TurnStatus.RUNNING.value, attempts=turns.c.attempts + 1, due_at=due_at, error=error)
    )


def reopen_turn(connection: Connection, turn_id: int, now: datetime) -> None:
    """Take a turn up again that was set aside."""
    connection.execute(
        update(turns)
        .where(turns.c.id == turn_id)
        .values(status=TurnStatus.RUNNING.value, outcome=None, finished_at=None, error=None, due_at=now, attempts=1)
    )


def find_running_turn(connection: Connection, context_id: int) -> Turn | None:
    """Return the turn of a context that has begun and not ended."""
    query = (
        _select_turns(context_id)
        .where(_IS_OPEN, turns.c.status == TurnStatus.RUNNING.value)
        .order_by(turns.c.id)
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else _read_turn(connection, row)


def find_next_turn(connection: Connection, context_id: int, now: datetime, transports: Collection[str]) -> Turn | None:
    """Return the turn of a context to work on next: the one that has begun, else the first in the platform's order.

    It may be due a moment later, while the parts of a message gather: those after it wait for that. One that is due in
    hours, such as a reminder, holds nothing up.
    """
    running = find_running_turn(connection, context_id)
    if running is not None:
        return running
    query = (
        _select_turns(context_id)
        .where(
            _IS_OPEN,
            turns.c.status == TurnStatus.QUEUED.value,
            turns.c.due_at <= now + GATHERING,
            turns.c.transport.in_(list(transports)),
        )
        .order_by(turns.c.order_key, turns.c.id)
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    return None if row is None else _read_turn(connection, row)


def find_failed_turn(connection: Connection, context_id: int, transport: str) -> Turn | None:
    """Return the newest turn of a context, where it was set aside."""
    query = _select_turns(context_id).order_by(turns.c.id.desc()).limit(1)
    row = connection.execute(query).one_or_none()
    if row is None or row.status != TurnStatus.SET_ASIDE.value or row.transport != transport:
        return None
    return _read_turn(connection, row)


def find_busy_contexts(connection: Connection, now: datetime, transports: Collection[str]) -> list[int]:
    """Return the contexts that have a turn to work on now, those that have waited longest first."""
    # Sorted here: asked to sort by id, SQLite would read the whole table in that order instead of the partial index.
    query = select(turns.c.id, turns.c.context_id).where(
        _IS_OPEN, turns.c.due_at <= now, turns.c.transport.in_(list(transports))
    )
    return list(dict.fromkeys(row.context_id for row in sorted(connection.execute(query).all())))


def find_stop(connection: Connection, context_id: int) -> int | None:
    """Return the order key of the newest stop control of a context that has not taken effect."""
    query = select(func.max(events.c.order_key)).where(
        _IS_UNHANDLED, events.c.context_id == context_id, events.c.kind == EventKind.STOP.value
    )
    newest: int | None = connection.execute(query).scalar_one()
    return newest


def handle_stops(connection: Connection, context_id: int, now: datetime) -> None:
    """Take note that the stop controls of a context took effect."""
    connection.execute(
        update(events)
        .where(_IS_UNHANDLED, events.c.context_id == context_id, events.c.kind == EventKind.STOP.value)
        .values(handled_at=now)
    )


def notify_replicas(connection: Connection, context_ids: Collection[int]) -> None:
    """Tell every replica on the same Postgres, when this transaction commits, that contexts have something new."""
    if connection.dialect.name == "postgresql":
        for context_id in context_ids:
            connection.execute(text("SELECT pg_notify('botservice', :payload)"), {"payload": str(context_id)})


def _select_turns(context_id: int) -> Any:
    return select(*_TURN_COLUMNS).where(turns.c.context_id == context_id)


def _read_turn(connection: Connection, row: Any) -> Turn:
    query = (
        select(events.c.id, events.c.key, events.c.raw, events.c.received_at)
        .where(events.c.turn_id == row.id)
        .order_by(events.c.order_key, events.c.id)
    )
    found = connection.execute(query).all()
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
        tuple(StoredEvent(each.id, each.key, each.raw or b"", each.received_at) for each in found),
    )
