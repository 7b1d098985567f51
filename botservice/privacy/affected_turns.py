"""Finding the turns that answer messages, and the turns that may have had them in their prompts.

By the events that brought them, or else by where the answers stand. That looks through the conversation: so it is found
before the transaction that writes, which then looks only at what came since.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from sqlalchemy import Connection, and_, exists, func, or_, select

from botservice.core.messages import Role
from botservice.storage.chunks import chunks, select_among
from botservice.storage.ranges import sure_up_to
from botservice.storage.tables.conversations import deliveries, events, messages, turns

_CLOCKS_DIFFER: Final = timedelta(minutes=1)  # a platform's and ours
_NEWEST: Final = select(func.coalesce(func.max(turns.c.id), 0))
_IS_OWED = exists().where(deliveries.c.turn_id == turns.c.id, deliveries.c.finished_at.is_(None))
_IS_KEPT = exists().where(events.c.turn_id == turns.c.id, events.c.raw.is_not(None))
IS_OVER = and_(turns.c.status == "done", ~_IS_OWED)
HAS_RECORDS = or_(turns.c.compacted_at.is_(None), turns.c.error.is_not(None), _IS_KEPT)
_IS_CLEARED = and_(IS_OVER, ~HAS_RECORDS)


@dataclass(frozen=True, slots=True)
class AffectedTurns:
    """The turns that may have had messages in their prompts, as found at one moment.

    Attributes:
        first: The first of them, or None if there is none yet.
        left: Those that had records of their work then.
        up_to: Up to which turn of the conversation they were looked for.
        beside: Turns that it began, although no event tells so any more.
    """

    first: int | None
    left: Collection[int]
    up_to: int
    beside: Collection[int]


def turns_of(connection: Connection, context_id: int, message_ids: Collection[int]) -> set[int]:
    """Return the turns that messages of a context began, also those whose events are not kept any more."""
    return turns_brought_by(connection, message_ids) | turns_beside(connection, context_id, message_ids)


def turns_brought_by(connection: Connection, message_ids: Collection[int]) -> set[int]:
    """Return the turns that the events of messages began, as far as these events are kept."""
    return _by_events(connection, message_ids)[0]


def turns_beside(connection: Connection, context_id: int, message_ids: Collection[int]) -> set[int]:
    """Return the turns of messages whose events are not kept: that looks through their whole context."""
    unknown = _by_events(connection, message_ids)[1]
    return _by_places(connection, context_id, unknown) if unknown else set()


def turns_of_only(connection: Connection, context_id: int, message_ids: Collection[int]) -> set[int]:
    """Return the turns that answer some messages of a context and no others."""
    found = turns_of(connection, context_id, message_ids)
    return found - shared_turns(connection, found, message_ids)


def shared_turns(connection: Connection, turn_ids: Collection[int], message_ids: Collection[int]) -> set[int]:
    """Return those of some turns that answer other messages too."""
    query = select(events.c.turn_id, messages.c.id).join(messages, messages.c.event_id == events.c.id)
    chosen = set(message_ids)
    rows = select_among(connection, query, events.c.turn_id, turn_ids)
    return {row.turn_id for row in rows if row.id not in chosen}


def answers_of(connection: Connection, context_id: int, turn_ids: Collection[int]) -> list[int]:
    """Return the messages of a context that answer turns."""
    query = select(messages.c.id).where(messages.c.context_id == context_id)
    return [row.id for row in select_among(connection, query, messages.c.answers_turn_id, turn_ids)]


def _by_events(connection: Connection, message_ids: Collection[int]) -> tuple[set[int], set[int]]:
    """Return the turns that messages began, and the messages whose events are gone."""
    query = (
        select(messages.c.id, events.c.id.label("event"), events.c.turn_id)
        .outerjoin(events, events.c.id == messages.c.event_id)
        .where(messages.c.event_id.is_not(None))
    )
    rows = select_among(connection, query, messages.c.id, message_ids)
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


def find_seen(
    connection: Connection, context_id: int, message_ids: Collection[int], held_by: Collection[int] = ()
) -> AffectedTurns:
    """Return the turns that may have had some messages in their prompts, by looking through the whole conversation.

    Args:
        held_by: Messages of others, of which only what they repeat is to go.
    """
    newest = connection.execute(_NEWEST.where(turns.c.context_id == context_id)).scalar_one()
    up_to = sure_up_to(connection, newest)
    beside = turns_beside(connection, context_id, message_ids) | _unnamed(connection, context_id, message_ids)
    own = turns_brought_by(connection, message_ids) | beside
    first = _first_turn(connection, context_id, {*message_ids, *held_by}, own)
    found = AffectedTurns(first, (), 0, beside)
    left = {} if first is None else turns_left(connection, context_id, found)
    return AffectedTurns(first, set(left), up_to, beside)


def own_turns(connection: Connection, message_ids: Collection[int], seen: AffectedTurns) -> set[int]:
    """Return the turns that messages began, and that answer nothing else."""
    own = turns_brought_by(connection, message_ids) | set(seen.beside)
    return own - shared_turns(connection, own, message_ids)


def turns_left(connection: Connection, context_id: int, seen: AffectedTurns) -> dict[int, str]:
    """Return the turns that still have records of their prompts, with their state."""
    query = select(turns.c.id, turns.c.status).where(turns.c.context_id == context_id, ~_IS_CLEARED)
    since = max(seen.first or 0, seen.up_to + 1)
    rows = [
        *connection.execute(query.where(turns.c.id >= since)),
        *select_among(connection, query, turns.c.id, seen.left),
    ]
    return {row.id: row.status for row in rows}


def find_left(connection: Connection, context_id: int, seen: AffectedTurns) -> AffectedTurns:
    """Return what was found, with those turns alone that have records of their work still."""
    return replace(seen, left=set(turns_left(connection, context_id, seen)))


def _unnamed(connection: Connection, context_id: int, message_ids: Collection[int]) -> set[int]:
    """Return the turns of messages that a program handed in, or that were due: they are as old as their messages."""
    found: set[int] = set()
    for chunk in chunks(sorted(message_ids)):
        without = select(messages.c.created_at).where(
            messages.c.context_id + 0 == context_id, messages.c.id.in_(chunk), messages.c.event_id.is_(None)
        )
        times = connection.execute(without).scalars().all()
        as_old = select(turns.c.id).where(turns.c.context_id == context_id, turns.c.created_at.in_(times))
        found.update(connection.execute(as_old).scalars() if times else ())
    return found


def _first_turn(
    connection: Connection, context_id: int, message_ids: Collection[int], own: Collection[int]
) -> int | None:
    """Return the first turn that may have seen some messages; own are those that they began."""
    found = [min(own)] if own else []
    of_messages = select(func.min(messages.c.created_at).label("at"), func.min(messages.c.position).label("position"))
    rows = select_among(
        connection, of_messages.where(messages.c.context_id + 0 == context_id), messages.c.id, message_ids
    )
    oldest = [row for row in rows if row.position is not None]
    if oldest:
        since = min(row.at for row in oldest) - _CLOCKS_DIFFER
        after = select(func.min(turns.c.id)).where(turns.c.context_id == context_id, turns.c.created_at >= since)
        found_after = connection.execute(after).scalar_one()
        among_later = _turns_of_later_messages(connection, context_id, min(row.position for row in oldest))
        found.extend(each for each in (found_after, *among_later) if each is not None)
    return min(found, default=None)


def _turns_of_later_messages(connection: Connection, context_id: int, position: int) -> list[int | None]:
    """Return the first turns that messages after one belong to: clocks that were wrong do not hide them."""
    is_later = (messages.c.context_id == context_id) & (messages.c.position > position)
    answered = select(func.min(messages.c.answers_turn_id)).where(is_later)
    asked = select(func.min(events.c.turn_id)).join(messages, messages.c.event_id == events.c.id).where(is_later)
    return [connection.execute(query).scalar_one() for query in (answered, asked)]
