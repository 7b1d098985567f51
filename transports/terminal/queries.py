"""Every statement of the terminal: whether something of its session is still to come."""

from sqlalchemy import Connection, bindparam, select

from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import find_context
from botservice.storage.tables.conditions import DELIVERY_IS_OWED, TURN_IS_OPEN
from botservice.storage.tables.conversations import deliveries, events, turns
from botservice.turns.call_queries import find_open

_OPEN_TURN = select(turns.c.id).where(TURN_IS_OPEN, turns.c.context_id == bindparam("context")).limit(1)
_OWED = select(deliveries.c.id).where(DELIVERY_IS_OWED, deliveries.c.context_id == bindparam("context")).limit(1)
_ENDED = (
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
    if any(connection.execute(query, {"context": context_id}).first() is not None for query in (_OPEN_TURN, _OWED)):
        return True
    pending = find_open(connection, context_id)
    undecided = {each.turn_id for each in pending if each.is_waiting and (each.exchange is None or each.is_told)}
    return any(each.turn_id not in undecided for each in pending)


def has_question(connection: Connection, keys: ContextKeys) -> bool:
    """Return whether a tool waits for an answer of the person."""
    context_id = find_context(connection, keys)
    return context_id is not None and any(
        each.exchange is not None and each.is_waiting for each in find_open(connection, context_id)
    )


def is_over(connection: Connection, key: str) -> bool:
    """Return whether the turn of an event has ended and nothing of it is left to be printed."""
    return connection.execute(_ENDED, {"key": key}).first() is not None
