"""Which turns answer messages of people: by the events that brought them, or else by where the answers stand."""

from collections.abc import Collection

from sqlalchemy import Connection, and_, select

from botservice.messages import Role
from botservice.storage.chunks import chunks
from botservice.storage.tables.conversations import events, messages, turns


def turns_of(connection: Connection, context_id: int, message_ids: Collection[int]) -> set[int]:
    """Return the turns that messages of a context began, also those whose events are not kept any more."""
    found, unknown = _by_events(connection, message_ids)
    return found | _by_places(connection, context_id, unknown) if unknown else found


def turns_of_only(connection: Connection, context_id: int, message_ids: Collection[int]) -> set[int]:
    """Return the turns that answer some messages of a context and no others."""
    found = turns_of(connection, context_id, message_ids)
    return found - shared_turns(connection, found, message_ids)


def shared_turns(connection: Connection, turn_ids: Collection[int], message_ids: Collection[int]) -> set[int]:
    """Return those of some turns that answer other messages too."""
    query = (
        select(events.c.turn_id, messages.c.id)
        .join(messages, messages.c.event_id == events.c.id)
        .where(events.c.turn_id.in_(list(turn_ids)))
    )
    chosen = set(message_ids)
    return {row.turn_id for row in connection.execute(query) if row.id not in chosen}


def answers_of(connection: Connection, context_id: int, turn_ids: Collection[int]) -> list[int]:
    """Return the messages of a context that answer turns."""
    query = select(messages.c.id).where(messages.c.context_id == context_id)
    return [
        number
        for chunk in chunks(turn_ids)
        for number in connection.execute(query.where(messages.c.answers_turn_id.in_(chunk))).scalars()
    ]


def _by_events(connection: Connection, message_ids: Collection[int]) -> tuple[set[int], set[int]]:
    """Return the turns that messages began, and the messages whose events are gone."""
    query = (
        select(messages.c.id, events.c.id.label("event"), events.c.turn_id)
        .outerjoin(events, events.c.id == messages.c.event_id)
        .where(messages.c.event_id.is_not(None))
    )
    rows = [
        row
        for chunk in chunks(sorted(message_ids))
        for row in connection.execute(query.where(messages.c.id.in_(chunk)))
    ]
    return {row.turn_id for row in rows if row.turn_id is not None}, {row.id for row in rows if row.event is None}


def _by_places(connection: Connection, context_id: int, message_ids: Collection[int]) -> set[int]:
    """Return the turns whose answers stand right behind nothing but these messages.

    What a turn answers stands before its answer, with as many messages as came together. What is due at a time, or a
    program asks for, is not brought by events: its turn has no order among them.
    """
    query = (
        select(messages.c.id, messages.c.role, turns.c.id.label("turn_id"), turns.c.joined_events)
        .outerjoin(turns, and_(turns.c.id == messages.c.answers_turn_id, turns.c.order_key != 0))
        .where(messages.c.context_id == context_id)
        .order_by(messages.c.position)
    )
    chosen, found, asked = set(message_ids), set(), list[int]()
    for row in connection.execute(query):
        if row.role == Role.USER.value:
            asked.append(row.id)
            continue
        if row.turn_id is not None and asked and chosen.issuperset(asked[-1 - row.joined_events :]):
            found.add(row.turn_id)
        asked = []
    return found
