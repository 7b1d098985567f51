"""Every statement of events: accepting them with their turns, what they say of earlier ones, and their files."""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import bindparam, delete, func, insert, select, update

from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import find_context, find_or_insert_context
from botservice.core.states import EventKind, TurnStatus
from botservice.storage.database import Connection, Row, Storage
from botservice.storage.statements import of_each_database
from botservice.storage.tables.conditions import (
    DELIVERY_IS_OWED,
    EVENT_IS_CHANGE,
    EVENT_IS_EXTERNAL,
    EVENT_IS_UNHANDLED,
    TURN_IS_OPEN,
    TURN_IS_QUEUED,
)
from botservice.storage.tables.conversations import contexts, deliveries, events, turns
from botservice.turns.call_queries import find_open
from botservice.turns.queries import insert_turn
from botservice.turns.turn import InboundEvent, set_due

GATHERING = timedelta(seconds=1.5)  # how long the rest of a message is waited for that looks incomplete
MAX_OWN_TURNS = 10  # beyond so many that wait in a context, messages share turns
MAX_JOINED = 50  # and no turn is shared by more than so many, or no prompt could hold it

_COUNT_WAITING = (
    select(func.count()).select_from(turns).where(TURN_IS_OPEN, turns.c.context_id == contexts.c.id, TURN_IS_QUEUED)
)
_NEW_TURN = ("transport", "status", "order_key", "due_at", "created_at")
# One statement on the accepting path: a turn of its own, where its context is there and does not have enough of them.
_INSERT_OWN_TURN = (
    insert(turns)
    .from_select(
        ["context_id", *_NEW_TURN],
        select(contexts.c.id, *(bindparam(name, type_=turns.c[name].type) for name in _NEW_TURN)).where(
            contexts.c.key_hash == bindparam("key_hash"), _COUNT_WAITING.scalar_subquery() < MAX_OWN_TURNS
        ),
    )
    .returning(turns.c.id, turns.c.context_id)
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
    .where(turns.c.id == bindparam("turn"), TURN_IS_QUEUED, turns.c.joined_events < MAX_JOINED)
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

_BY_KEY = select(events.c.id, events.c.received_at).where(events.c.key == bindparam("key"))
_RAW = select(events.c.raw).where(events.c.key == bindparam("key"))
_LET_GO = update(events).where(events.c.id == bindparam("row")).values(key=bindparam("as_key"))


def insert_event(
    connection: Connection, transport: str, keys: ContextKeys, event: InboundEvent, now: datetime
) -> int | None:
    """Store an event and the turn that will answer it; return its context, or None if it is known already."""
    turn_id, is_own_turn = None, False
    is_plain = event.kind is EventKind.MESSAGE and event.group_key is None
    own = _insert_own_turn(connection, keys, transport, event, now) if is_plain else None
    if own is not None:
        (turn_id, context_id), is_own_turn = own, True
    else:
        context_id = find_or_insert_context(connection, keys, now)
        if event.kind is EventKind.MESSAGE:
            turn_id, is_own_turn = _find_or_insert_turn(connection, context_id, keys, transport, event, now)
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
    event_id = connection.execute(_insert_event(connection), values).scalar_one_or_none()
    if event_id is not None:
        return context_id
    if is_own_turn:
        connection.execute(delete(turns).where(turns.c.id == turn_id))
    elif turn_id is not None:
        connection.execute(_LEAVE_TURN, {"turn": turn_id})
    return None


def find_event(connection: Connection, key: str) -> tuple[int, datetime] | None:
    """Return the id of the event with a key, and when it came."""
    row = connection.execute(_BY_KEY, {"key": key}).one_or_none()
    return None if row is None else (row.id, row.received_at)


def find_raw_event(connection: Connection, key: str) -> bytes | None:
    """Return an event as its platform delivered it, or None if it is not kept."""
    return connection.execute(_RAW, {"key": key}).scalar_one_or_none()


def let_go_of_key(connection: Connection, event_id: int, key: str) -> None:
    """Have an event keep its key under another name, so that a new one may have it."""
    connection.execute(_LET_GO, {"row": event_id, "as_key": f"{key}#{event_id}"})


def _find_or_insert_turn(
    connection: Connection, context_id: int, keys: ContextKeys, transport: str, event: InboundEvent, now: datetime
) -> tuple[int, bool]:
    """Return the turn that a message belongs to, and whether it was made for it."""
    gathering = _gather(connection, context_id, event, now)
    if gathering is not None:
        return gathering, False
    own = _insert_own_turn(connection, keys, transport, event, now) if event.group_key is not None else None
    if own is not None:
        return own[0], True
    sought = {"context": context_id, "transport": transport, "order_key": event.order_key}
    shared = connection.execute(_LAST_WAITING, sought).scalar_one_or_none()
    if shared is not None and _join(connection, shared):
        return int(shared), False
    due_at = _due_at(event, now)
    return insert_turn(connection, context_id, transport, now, order_key=event.order_key, due_at=due_at), True


def _insert_own_turn(
    connection: Connection, keys: ContextKeys, transport: str, event: InboundEvent, now: datetime
) -> tuple[int, int] | None:
    """Store a turn for a message and return it with its context; None where that is not there, or has enough turns."""
    values = {
        "key_hash": keys.digest,
        "transport": transport,
        "status": TurnStatus.QUEUED.value,
        "order_key": event.order_key,
        "due_at": _due_at(event, now),
        "created_at": now,
    }
    row = connection.execute(_INSERT_OWN_TURN, values).one_or_none()
    return None if row is None else (row.id, row.context_id)


def _due_at(event: InboundEvent, now: datetime) -> datetime:
    return now + GATHERING if event.is_incomplete or event.group_key is not None else now


def _join(connection: Connection, turn_id: int) -> bool:
    """Add one more event to a turn and return True; False if the turn has begun, or is full."""
    return connection.execute(_JOIN_TURN, {"turn": turn_id}).scalar_one_or_none() is not None


def _gather(connection: Connection, context_id: int, event: InboundEvent, now: datetime) -> int | None:
    """Return the queued turn with the other parts of the same message, and let it wait a little longer for more."""
    if event.group_key is None:
        return None
    sought = {"context": context_id, "group": event.group_key}
    turn_id = connection.execute(_GATHERING_TURN, sought).scalar_one_or_none()
    if turn_id is None or not _join(connection, turn_id):
        return None
    connection.execute(_UPDATE_TURN, {"turn": turn_id, **set_due(now + GATHERING, now)})
    return int(turn_id)


# Keys of messages that programs send: each is an event, so that it is kept as long as events are

_KIND = "send"  # no release takes it for an event of a platform
_NAME_TURN = update(events).where(events.c.id == bindparam("row")).values(turn_id=bindparam("turn"))
_TURN_OF_KEY = select(events.c.turn_id).where(events.c.key == bindparam("key"))


def event_key(context_id: int, key: str) -> str:
    """Return how the key of a program's message is kept."""
    return f"{_KIND}:{context_id}:{key}"


def keep_key(connection: Connection, context_id: int, key: str, transport: str, now: datetime) -> int | None:
    """Keep the key of a program's message, and return the id of its event; None if it is kept already."""
    event = {"key": event_key(context_id, key), "context_id": context_id, "transport": transport}
    event |= {"kind": _KIND, "order_key": 0, "received_at": now, "handled_at": now}
    found: int | None = connection.execute(_insert_event(connection), event).scalar_one_or_none()
    return found


def set_turn_of_key(connection: Connection, event_id: int, turn_id: int) -> None:
    """Store with which turn a key was used."""
    connection.execute(_NAME_TURN, {"row": event_id, "turn": turn_id})


def find_turn_of_key(connection: Connection, context_id: int, key: str) -> int | None:
    """Return the turn with which a key was used; None if there is none, or not any more."""
    return connection.execute(_TURN_OF_KEY, {"key": event_key(context_id, key)}).scalar_one_or_none()


# Controls: stops, edits, deletions and moves that have not taken effect


_CONTROLS = (
    select(
        events.c.id,
        events.c.kind,
        events.c.order_key,
        events.c.transport,
        events.c.external_id,
        events.c.key,
        events.c.raw,
        events.c.received_at,
        events.c.group_key,
    )
    .where(EVENT_IS_UNHANDLED, events.c.context_id == bindparam("context"))
    .order_by(events.c.order_key)
)
_NEWEST = select(func.max(events.c.order_key)).where(
    EVENT_IS_EXTERNAL,
    EVENT_IS_CHANGE,
    events.c.context_id == bindparam("context"),
    events.c.external_id == bindparam("external"),
)
# What a control said is in the history then, or was never of use: whoever forgets it there need not look here.
_HANDLE = (
    update(events)
    .where(events.c.id.in_(bindparam("ids", expanding=True)))
    .values(handled_at=bindparam("now"), raw=None)
)


def list_controls(connection: Connection, context_id: int) -> Sequence[Row[*tuple[Any, ...]]]:
    """Return the rows of the unhandled controls of a context, in the platform's order."""
    return connection.execute(_CONTROLS, {"context": context_id}).all()


def find_newest_change(connection: Connection, context_id: int, external_id: str) -> int | None:
    """Return the order key of the newest change of a message, whether it has taken effect or not."""
    sought = {"context": context_id, "external": external_id}
    found: int | None = connection.execute(_NEWEST, sought).scalar_one_or_none()
    return found


def mark_handled(connection: Connection, event_ids: Iterable[int], now: datetime) -> None:
    """Mark controls as handled, and drop their content."""
    ids = list(event_ids)
    if ids:
        connection.execute(_HANDLE, {"ids": ids, "now": now})


# Parts of one message, and the files of events

_LATEST_TURNS = (
    select(turns.c.id)
    .where(turns.c.context_id == bindparam("context"), turns.c.id < bindparam("before"))
    .order_by(turns.c.id.desc())
    .limit(10)  # a part that comes later than that is a message of its own
    .subquery()
)
_PARTS = (
    select(events.c.id, events.c.key, events.c.raw, events.c.received_at, events.c.group_key, events.c.order_key)
    .where(
        events.c.turn_id.in_(select(_LATEST_TURNS.c.id)),
        events.c.group_key.in_(bindparam("groups", expanding=True)),
        events.c.raw.is_not(None),
    )
    .order_by(events.c.order_key)
)


def list_parts(
    connection: Connection, context_id: int, groups: Collection[str], before: int
) -> Sequence[Row[*tuple[Any, ...]]]:
    """Return the rows of the parts of messages that came with the latest turns before one."""
    sought = {"context": context_id, "before": before, "groups": list(groups)}
    return connection.execute(_PARTS, sought).all()


_BEGIN_READING = (
    update(events)
    .where(events.c.id == bindparam("event"), events.c.reading_at.is_(None))
    .values(reading_at=bindparam("now"))
    .returning(events.c.id)
)
_END_READING = update(events).where(events.c.id == bindparam("event")).values(reading_at=None)


async def begin_reading(storage: Storage, event_id: int) -> bool:
    """Mark that an event's files are about to be read; return False if this was begun before."""
    now = storage.now()

    def begin(connection: Connection) -> bool:
        return connection.execute(_BEGIN_READING, {"event": event_id, "now": now}).one_or_none() is not None

    return await storage.write(begin)


async def end_reading(storage: Storage, event_id: int) -> None:
    """Take note that reading an event's files is over, however it ended; only the process's own end is not noted."""
    await storage.write(lambda connection: connection.execute(_END_READING, {"event": event_id}))


_EMPTY = (
    update(events)
    .where(events.c.id.in_(bindparam("ids", expanding=True)))
    .values(raw=None, handled_at=bindparam("handled"))
)


def empty_events(connection: Connection, event_ids: Sequence[int], now: datetime) -> None:
    """Mark events as handled, and drop their content."""
    connection.execute(_EMPTY, {"ids": event_ids, "handled": now})


# Whether something of a conversation, or of an event, is still to come

_ANY_OPEN_TURN = select(turns.c.id).where(TURN_IS_OPEN, turns.c.context_id == bindparam("context")).limit(1)
_ANY_OWED = select(deliveries.c.id).where(DELIVERY_IS_OWED, deliveries.c.context_id == bindparam("context")).limit(1)
_HAS_ENDED = (
    select(turns.c.id)
    .join(events, events.c.turn_id == turns.c.id)
    .where(
        events.c.key == bindparam("key"),
        turns.c.finished_at.is_not(None),
        ~select(deliveries.c.id).where(DELIVERY_IS_OWED, deliveries.c.turn_id == turns.c.id).exists(),
    )
)


def goes_on(connection: Connection, keys: ContextKeys) -> bool:
    """Return whether a turn of a session runs, or waits for nothing any more, or something is to be shown or asked."""
    context_id = find_context(connection, keys)
    if context_id is None:
        return False
    if any(
        connection.execute(query, {"context": context_id}).first() is not None for query in (_ANY_OPEN_TURN, _ANY_OWED)
    ):
        return True
    pending = find_open(connection, context_id)
    undecided = {each.turn_id for each in pending if each.is_waiting and each.is_told}
    return any(each.turn_id not in undecided for each in pending)


def is_over(connection: Connection, key: str) -> bool:
    """Return whether the turn of an event has ended and nothing of it is left to be printed."""
    return connection.execute(_HAS_ENDED, {"key": key}).first() is not None
