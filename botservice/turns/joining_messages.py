"""Storing a message with its turn: a new one, or one that waits and that it joins because it came soon after."""

from datetime import datetime, timedelta

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from botservice.contexts.context import ContextKeys, find_or_insert_context
from botservice.storage.statements import execute, of_each_database
from botservice.storage.tables.conditions import TURN_IS_OPEN, TURN_IS_QUEUED
from botservice.storage.tables.conversations import events, turns
from botservice.turns.records import insert_turn
from botservice.turns.turn import EventKind, InboundEvent, TurnStatus, set_due

GATHERING = timedelta(seconds=1)  # how long the parts of one message, such as an album, are waited for
MAX_OWN_TURNS = 10  # beyond so many that wait in a context, messages share turns
_MAX_JOINED = 50  # and no turn is shared by more than so many, or no prompt could hold it

_COUNT_WAITING = (
    select(func.count())
    .select_from(turns)
    .where(TURN_IS_OPEN, turns.c.context_id == bindparam("context_id"), TURN_IS_QUEUED)
)
_NEW_TURN = ("context_id", "transport", "status", "order_key", "due_at", "created_at")
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
# While a process begins the turn, this waits for the outcome: what joins is read with it, or does not join.
_JOIN_TURN = (
    update(turns)
    .where(turns.c.id == bindparam("turn"), TURN_IS_QUEUED, turns.c.joined_events < _MAX_JOINED)
    .values(joined_events=turns.c.joined_events + 1)
    .returning(turns.c.id)
)
_UPDATE_TURN = update(turns).where(turns.c.id == bindparam("turn"))
_LEAVE_TURN = _UPDATE_TURN.values(joined_events=turns.c.joined_events - 1)
_insert_event = of_each_database(
    lambda insert: insert(events).on_conflict_do_nothing(index_elements=["key"]).returning(events.c.id)
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
    event_id = execute(connection, _insert_event(connection), values).scalar_one_or_none()
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
