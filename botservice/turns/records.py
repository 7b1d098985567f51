"""How events and turns lie in their tables: the queries that own them."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, select, text, update
from sqlalchemy.dialects import postgresql, sqlite

from botservice.contexts import ContextKeys, find_or_insert_context
from botservice.storage.tables import events, turns
from botservice.turns.turn import EventKind, InboundEvent, Outcome, StoredEvent, Turn, TurnStatus

# Word for word the condition of the partial index: with a bound parameter in it, a planner cannot know that it fits.
_IS_OPEN = text("turns.status IN ('queued', 'running')")
_IS_UNHANDLED = text("events.turn_id IS NULL AND events.handled_at IS NULL")

GATHERING = timedelta(seconds=1)  # how long the parts of one message, such as an album, are waited for

# Statements are made once: making one anew for every call takes SQLAlchemy longer than running it.
_UPDATE_TURN = update(turns).where(turns.c.id == bindparam("turn"))
_COUNT_BEGINNING = _UPDATE_TURN.values(attempts=turns.c.attempts + 1)
_INSERT_TURN = insert(turns).returning(turns.c.id)
_INSERT_EVENT = {
    name: dialect.insert(events).on_conflict_do_nothing(index_elements=["key"]).returning(events.c.id)
    for name, dialect in (("sqlite", sqlite), ("postgresql", postgresql))
}
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
).where(turns.c.context_id == bindparam("context"))
_RUNNING_TURN = _TURNS.where(_IS_OPEN, turns.c.status == TurnStatus.RUNNING.value).order_by(turns.c.id).limit(1)
_NEXT_TURN = (
    _TURNS.where(
        _IS_OPEN,
        (turns.c.status == TurnStatus.RUNNING.value)
        | ((turns.c.due_at <= bindparam("latest")) & turns.c.transport.in_(bindparam("transports", expanding=True))),
    )
    .order_by(turns.c.status.desc(), turns.c.order_key, turns.c.id)  # running comes after queued in the alphabet
    .limit(1)
)
_NEWEST_TURN = _TURNS.order_by(turns.c.id.desc()).limit(1)
_EVENTS_OF_TURN = (
    select(events.c.id, events.c.key, events.c.raw, events.c.received_at)
    .where(events.c.turn_id == bindparam("turn"))
    .order_by(events.c.order_key, events.c.id)
)
_GATHERING_TURN = (
    select(turns.c.id)
    .join(events, events.c.turn_id == turns.c.id)
    .where(
        _IS_OPEN,
        turns.c.context_id == bindparam("context"),
        turns.c.status == TurnStatus.QUEUED.value,
        events.c.group_key == bindparam("group"),
    )
    .limit(1)
)
# Not in order: asked to sort by id, SQLite would read the whole table in that order instead of the partial index.
_BUSY_CONTEXTS = select(turns.c.id, turns.c.context_id).where(
    _IS_OPEN, turns.c.due_at <= bindparam("now"), turns.c.transport.in_(bindparam("transports", expanding=True))
)
_NEWEST_STOP = select(func.max(events.c.order_key)).where(
    _IS_UNHANDLED, events.c.context_id == bindparam("context"), events.c.kind == EventKind.STOP.value
)
_HANDLE_STOPS = (
    update(events)
    .where(_IS_UNHANDLED, events.c.context_id == bindparam("context"), events.c.kind == EventKind.STOP.value)
    .values(handled_at=bindparam("now"))
)


def insert_event(
    connection: Connection, transport: str, keys: ContextKeys, event: InboundEvent, now: datetime
) -> int | None:
    """Store an event, and the turn that will answer it, and return its context; None where it is known already."""
    context_id = find_or_insert_context(connection, keys, now)
    turn_id = None
    is_own_turn = False
    if event.kind is EventKind.MESSAGE:
        turn_id = _gather(connection, context_id, event, now)
        is_own_turn = turn_id is None
        if is_own_turn:
            due_at = now if event.group_key is None else now + GATHERING
            turn_id = insert_turn(connection, context_id, transport, now, order_key=event.order_key, due_at=due_at)
    values = {
        "key": event.key,
        "context_id": context_id,
        "turn_id": turn_id,
        "transport": transport,
        "kind": event.kind.value,
        "order_key": event.order_key,
        "group_key": event.group_key,
        "raw": event.raw,
        "received_at": now,
    }
    event_id = connection.execute(_INSERT_EVENT[connection.dialect.name], values).scalar_one_or_none()
    if event_id is not None:
        return context_id
    if is_own_turn:
        connection.execute(delete(turns).where(turns.c.id == turn_id))
    return None


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
    values = {
        "context_id": context_id,
        "transport": transport,
        "status": status.value,
        "order_key": order_key,
        "due_at": due_at or now,
        "created_at": now,
        "started_at": now if is_running else None,
        "attempts": int(is_running),
        "keeps_steps": keeps_steps,
    }
    return int(connection.execute(_INSERT_TURN, values).scalar_one())


def _gather(connection: Connection, context_id: int, event: InboundEvent, now: datetime) -> int | None:
    """Return the turn that waits with the other parts of the same message, after having it wait a little longer."""
    if event.group_key is None:
        return None
    sought = {"context": context_id, "group": event.group_key}
    turn_id = connection.execute(_GATHERING_TURN, sought).scalar_one_or_none()
    if turn_id is not None:
        connection.execute(_UPDATE_TURN, {"turn": turn_id, "due_at": now + GATHERING})
    return turn_id


def begin_turn(connection: Connection, turn_id: int, now: datetime, *, is_first: bool) -> None:
    """Count one more beginning of a turn."""
    values: dict[str, Any] = {"turn": turn_id, "status": TurnStatus.RUNNING.value}
    if is_first:
        values["started_at"] = now
    connection.execute(_COUNT_BEGINNING, values)


def note_system_prompt(connection: Connection, turn_id: int, digest: str) -> None:
    """Take note of the blob with what the agent was told to be."""
    connection.execute(_UPDATE_TURN, {"turn": turn_id, "system_prompt": digest})


def note_step(connection: Connection, turn_id: int, *, steps_taken: int, last_step_number: int) -> None:
    """Take note that a turn got one step further: its beginnings count anew."""
    values = {"turn": turn_id, "attempts": 1, "steps_taken": steps_taken, "last_step_number": last_step_number}
    connection.execute(_UPDATE_TURN, values)


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
    values = {"turn": turn_id, "status": status.value, "outcome": outcome.value, "finished_at": now, "error": error}
    connection.execute(_UPDATE_TURN, values)


def postpone_turn(connection: Connection, turn_id: int, due_at: datetime, error: str) -> None:
    """Have a turn tried again later; the ones after it wait."""
    values = {"turn": turn_id, "status": TurnStatus.RUNNING.value, "due_at": due_at, "error": error}
    connection.execute(_COUNT_BEGINNING, values)


def reopen_turn(connection: Connection, turn_id: int, now: datetime) -> None:
    """Take a turn up again that was set aside."""
    values = {"turn": turn_id, "status": TurnStatus.RUNNING.value, "due_at": now, "attempts": 1}
    connection.execute(_UPDATE_TURN, {**values, "outcome": None, "finished_at": None, "error": None})


def find_running_turn(connection: Connection, context_id: int) -> Turn | None:
    """Return the turn of a context that has begun and not ended."""
    row = connection.execute(_RUNNING_TURN, {"context": context_id}).one_or_none()
    return None if row is None else _read_turn(connection, row)


def find_next_turn(connection: Connection, context_id: int, now: datetime, transports: Collection[str]) -> Turn | None:
    """Return the turn of a context to work on next: the one that has begun, else the first in the platform's order.

    It may be due a moment later, while the parts of a message gather: those after it wait for that. One that is due in
    hours, such as a reminder, holds nothing up.
    """
    sought = {"context": context_id, "latest": now + GATHERING, "transports": list(transports)}
    row = connection.execute(_NEXT_TURN, sought).one_or_none()
    return None if row is None else _read_turn(connection, row)


def find_failed_turn(connection: Connection, context_id: int, transport: str) -> Turn | None:
    """Return the newest turn of a context, where it was set aside."""
    row = connection.execute(_NEWEST_TURN, {"context": context_id}).one_or_none()
    if row is None or row.status != TurnStatus.SET_ASIDE.value or row.transport != transport:
        return None
    return _read_turn(connection, row)


def find_busy_contexts(connection: Connection, now: datetime, transports: Collection[str]) -> list[int]:
    """Return the contexts that have a turn to work on now, those that have waited longest first."""
    found = connection.execute(_BUSY_CONTEXTS, {"now": now, "transports": list(transports)}).all()
    return list(dict.fromkeys(row.context_id for row in sorted(found)))


def find_stop(connection: Connection, context_id: int) -> int | None:
    """Return the order key of the newest stop control of a context that has not taken effect."""
    newest: int | None = connection.execute(_NEWEST_STOP, {"context": context_id}).scalar_one()
    return newest


def handle_stops(connection: Connection, context_id: int, now: datetime) -> None:
    """Take note that the stop controls of a context took effect."""
    connection.execute(_HANDLE_STOPS, {"context": context_id, "now": now})


def notify_replicas(connection: Connection, context_ids: Collection[int]) -> None:
    """Tell every replica on the same Postgres, when this transaction commits, that contexts have something new."""
    if connection.dialect.name == "postgresql":
        for context_id in context_ids:
            connection.execute(text("SELECT pg_notify('botservice', :payload)"), {"payload": str(context_id)})


def _read_turn(connection: Connection, row: Any) -> Turn:
    found = connection.execute(_EVENTS_OF_TURN, {"turn": row.id}).all()
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
