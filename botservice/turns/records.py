"""Reading and writing the tables of events and turns."""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Connection, bindparam, delete, func, insert, or_, select, update
from sqlalchemy.dialects import postgresql, sqlite

from botservice.contexts.context import ContextKeys, find_or_insert_context
from botservice.errors import TurnGrew
from botservice.storage.statements import execute
from botservice.storage.tables.conditions import EVENT_IS_UNHANDLED, TURN_IS_OPEN, TURN_IS_QUEUED, TURN_IS_RUNNING
from botservice.storage.tables.conversations import events, turns
from botservice.turns.due_conditions import when_due_was_set
from botservice.turns.turn import EventKind, InboundEvent, Outcome, StoredEvent, Turn, TurnStatus, set_due

GATHERING = timedelta(seconds=1)  # how long the parts of one message, such as an album, are waited for
MAX_OWN_TURNS = 10  # beyond so many that wait in a context, messages share turns
_MAX_JOINED = 50  # and no turn is shared by more than so many, or no prompt could hold it

# Statements are made once: making one anew for every call takes SQLAlchemy longer than running it.
_UPDATE_TURN = update(turns).where(turns.c.id == bindparam("turn"))
_COUNT_BEGINNING = _UPDATE_TURN.values(attempts=turns.c.attempts + 1)
_COUNT_FAILURE = _UPDATE_TURN.values(failures=turns.c.failures + 1)
_BEGIN_FIRST = _COUNT_BEGINNING.where(TURN_IS_OPEN, turns.c.joined_events == bindparam("joined")).returning(turns.c.id)
_INSERT_TURN = insert(turns).returning(turns.c.id)
_NEW_TURN = ("context_id", "transport", "status", "order_key", "due_at", "created_at")
_COUNT_WAITING = (
    select(func.count())
    .select_from(turns)
    .where(TURN_IS_OPEN, turns.c.context_id == bindparam("context_id"), TURN_IS_QUEUED)
)
# One statement on the accepting path: a turn of its own, where the context does not have enough of them.
_INSERT_OWN_TURN = (
    insert(turns)
    .from_select(
        _NEW_TURN,
        select(*(bindparam(name, type_=turns.c[name].type) for name in _NEW_TURN)).where(
            _COUNT_WAITING.scalar_subquery() < MAX_OWN_TURNS
        ),
    )
    .returning(turns.c.id)
)
_LAST_WAITING = (
    select(turns.c.id)
    .where(
        TURN_IS_OPEN,
        turns.c.context_id == bindparam("context"),
        TURN_IS_QUEUED,
        turns.c.transport == bindparam("transport"),
        turns.c.order_key <= bindparam("order_key"),
    )
    .order_by(turns.c.order_key.desc(), turns.c.id.desc())
    .limit(1)
)
# Of a turn that somebody begins at this moment this waits for the outcome: what joins it is read, or it does not join.
_JOIN_TURN = (
    update(turns)
    .where(turns.c.id == bindparam("turn"), TURN_IS_QUEUED, turns.c.joined_events < _MAX_JOINED)
    .values(joined_events=turns.c.joined_events + 1)
    .returning(turns.c.id)
)
_LEAVE_TURN = _UPDATE_TURN.values(joined_events=turns.c.joined_events - 1)
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
    turns.c.joined_events,
    turns.c.failures,
    turns.c.created_at,
    when_due_was_set(turns),
).where(turns.c.context_id == bindparam("context"))
# In the order of the index of open turns: by their ids, SQLite goes through all the turns of a chat.
_RUNNING_TURN = _TURNS.where(TURN_IS_OPEN, TURN_IS_RUNNING).order_by(turns.c.order_key, turns.c.id).limit(1)
_NEXT_TURN = (
    _TURNS.where(TURN_IS_OPEN, or_(TURN_IS_RUNNING, turns.c.transport.in_(bindparam("transports", expanding=True))))
    .order_by(turns.c.status.desc(), turns.c.order_key, turns.c.id)  # running comes after queued in the alphabet
    .limit(1)
)
_TURN = _TURNS.where(turns.c.id == bindparam("turn"))
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
        TURN_IS_OPEN,
        turns.c.context_id == bindparam("context"),
        TURN_IS_QUEUED,
        events.c.group_key == bindparam("group"),
    )
    .limit(1)
)
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


def insert_event(
    connection: Connection, transport: str, keys: ContextKeys, event: InboundEvent, now: datetime
) -> int | None:
    """Store an event and the turn that will answer it; return its context, or None if it is known already."""
    context_id = find_or_insert_context(connection, keys, now)
    turn_id, is_own_turn = None, False
    if event.kind is EventKind.MESSAGE:
        turn_id, is_own_turn = _find_or_insert_turn(connection, context_id, transport, event, now)
    values = {
        "key": event.key,
        "context_id": context_id,
        "turn_id": turn_id,
        "transport": transport,
        "kind": event.kind.value,
        "order_key": event.order_key,
        "group_key": event.group_key,
        "external_id": event.external_id,
        "raw": event.raw,
        "received_at": now,
    }
    event_id = execute(connection, _INSERT_EVENT[connection.dialect.name], values).scalar_one_or_none()
    if event_id is not None:
        return context_id
    if is_own_turn:
        connection.execute(delete(turns).where(turns.c.id == turn_id))
    elif turn_id is not None:
        execute(connection, _LEAVE_TURN, {"turn": turn_id})
    return None


def _find_or_insert_turn(
    connection: Connection, context_id: int, transport: str, event: InboundEvent, now: datetime
) -> tuple[int, bool]:
    """Return the turn that a message belongs to, and whether it was made for it."""
    gathering = _gather(connection, context_id, event, now)
    if gathering is not None:
        return gathering, False
    due_at = now if event.group_key is None else now + GATHERING
    values = {
        "context_id": context_id,
        "transport": transport,
        "status": TurnStatus.QUEUED.value,
        "order_key": event.order_key,
        "due_at": due_at,
        "created_at": now,
    }
    own = execute(connection, _INSERT_OWN_TURN, values).scalar_one_or_none()
    if own is not None:
        return int(own), True
    sought = {"context": context_id, "transport": transport, "order_key": event.order_key}
    shared = execute(connection, _LAST_WAITING, sought).scalar_one_or_none()
    if shared is not None and _join(connection, shared):
        return int(shared), False
    return insert_turn(connection, context_id, transport, now, order_key=event.order_key, due_at=due_at), True


def _join(connection: Connection, turn_id: int) -> bool:
    """Add one more event to a turn and return True; False if the turn has begun, or is full."""
    return execute(connection, _JOIN_TURN, {"turn": turn_id}).scalar_one_or_none() is not None


def insert_turn(
    connection: Connection,
    context_id: int,
    transport: str,
    now: datetime,
    *,
    status: TurnStatus = TurnStatus.QUEUED,
    **columns: Any,
) -> int:
    """Store a turn and return its id; one that is running counts as begun now.

    Args:
        columns: What the row has besides: order_key, due_at, keeps_steps, system_prompt.
    """
    is_running = status is TurnStatus.RUNNING
    values = {
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
    return int(execute(connection, _INSERT_TURN, values).scalar_one())


def _gather(connection: Connection, context_id: int, event: InboundEvent, now: datetime) -> int | None:
    """Return the queued turn with the other parts of the same message, and let it wait a little longer for more."""
    if event.group_key is None:
        return None
    sought = {"context": context_id, "group": event.group_key}
    turn_id = execute(connection, _GATHERING_TURN, sought).scalar_one_or_none()
    if turn_id is None or not _join(connection, turn_id):
        return None
    execute(connection, _UPDATE_TURN, {"turn": turn_id, **set_due(now + GATHERING, now)})
    return int(turn_id)


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
        joined_events: How many events it had beside the first when it was read, where it begins for the first time.
        system_prompt: The digest of the blob with what the agent is told to be then.

    Raises:
        TurnGrew: it has others now, or somebody has dropped it.
    """
    values: dict[str, Any] = {"turn": turn_id, "status": TurnStatus.RUNNING.value}
    if not is_first:
        execute(connection, _COUNT_BEGINNING, values)
        return
    values |= {"started_at": now, "joined": joined_events, "system_prompt": system_prompt}
    begun = execute(connection, _BEGIN_FIRST, values)
    if begun.one_or_none() is None:
        raise TurnGrew(f"turn {turn_id} is not any more what was read")


def note_step(connection: Connection, turn_id: int, *, steps_taken: int, last_step_number: int) -> None:
    """Store that a turn got one step further, and count its beginnings and failures from zero again."""
    values = {
        "turn": turn_id,
        "attempts": 1,
        "failures": 0,
        "steps_taken": steps_taken,
        "last_step_number": last_step_number,
    }
    execute(connection, _UPDATE_TURN, values)


def note_failure(connection: Connection, turn_id: int, *, last_step_number: int) -> None:
    """Store the number of a step that failed; it does not count as one that was taken."""
    execute(connection, _UPDATE_TURN, {"turn": turn_id, "last_step_number": last_step_number})


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
    execute(connection, _UPDATE_TURN, values)


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
    execute(connection, _COUNT_FAILURE, values)


def set_waiting(connection: Connection, turn_id: int) -> None:
    """Mark a turn as waiting."""
    execute(connection, _UPDATE_TURN, {"turn": turn_id, "status": TurnStatus.WAITING.value})


def reopen_turn(connection: Connection, turn_id: int, now: datetime) -> None:
    """Set a turn running again that was set aside."""
    values = {"turn": turn_id, "status": TurnStatus.RUNNING.value, "attempts": 1, "failures": 0, **set_due(now, now)}
    execute(connection, _UPDATE_TURN, {**values, "outcome": None, "finished_at": None, "error": None})


def find_running_turn(connection: Connection, context_id: int) -> Turn | None:
    """Return the running turn of a context, or None."""
    row = execute(connection, _RUNNING_TURN, {"context": context_id}).one_or_none()
    return None if row is None else _read_turn(connection, row)


def find_turn(connection: Connection, context_id: int, turn_id: int) -> Turn | None:
    """Return a turn of a context."""
    row = execute(connection, _TURN, {"context": context_id, "turn": turn_id}).one_or_none()
    return None if row is None else _read_turn(connection, row)


def find_next_turn(connection: Connection, context_id: int, transports: Collection[str]) -> Turn | None:
    """Return the turn of a context to work on next: the one that has begun, else the first in the platform's order.

    It may be due a moment later, while the parts of a message gather: those after it wait for that.
    """
    sought = {"context": context_id, "transports": list(transports)}
    row = execute(connection, _NEXT_TURN, sought).one_or_none()
    return None if row is None else _read_turn(connection, row)


def find_failed_turn(connection: Connection, context_id: int, transport: str) -> Turn | None:
    """Return the newest turn of a context if it was set aside, else None."""
    row = execute(connection, _NEWEST_TURN, {"context": context_id}).one_or_none()
    if row is None or row.status != TurnStatus.SET_ASIDE.value or row.transport != transport:
        return None
    return _read_turn(connection, row)


def find_stops(connection: Connection, context_ids: Collection[int]) -> dict[int, int]:
    """Return the order key of the newest unhandled stop of each context that has one."""
    if not context_ids:
        return {}
    rows = execute(connection, _STOPS, {"contexts": list(context_ids)}).all()
    return {row.context_id: row.order_key for row in rows}


def count_waiting(connection: Connection) -> int:
    """Return how many turns of all contexts are not done."""
    return int(connection.execute(_COUNT_OPEN).scalar_one())


def _read_turn(connection: Connection, row: Any) -> Turn:
    found = execute(connection, _EVENTS_OF_TURN, {"turn": row.id}).all()
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
        row.joined_events,
        row.due_set_at,
        row.failures,
        row.created_at,
    )
