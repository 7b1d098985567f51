"""Every statement about the turns that answer messages, and those that may have had them in their prompts.

A turn is found by the event that brought it, or else by where its answer stands. That looks through the conversation:
so it is found before the transaction that writes, which then looks only at what came since.

A turn that is under way writes nothing back: its row goes first, and without it nothing of it is stored any more (see
`save_turn`). What it was to answer and is not forgotten itself is asked again.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import ColumnElement, and_, delete, func, insert, literal, select, update

from botservice.core.messages import Role
from botservice.core.states import API, Outcome, TurnStatus
from botservice.privacy.record_queries import IS_OVER, forget_words_of, is_owed
from botservice.storage.database import Connection
from botservice.storage.statements import chunks, is_of, select_among, sure_up_to
from botservice.storage.tables.conditions import DELIVERY_IS_OWED, MESSAGE_IS_EXTERNAL, TURN_IS_OPEN, TURN_IS_QUEUED
from botservice.storage.tables.conversations import deliveries, events, messages, turns

# Finding them

_CLOCKS_DIFFER: Final = timedelta(minutes=1)  # a platform's and ours
_NEWEST: Final = select(func.coalesce(func.max(turns.c.id), 0))


@dataclass(frozen=True, slots=True)
class AffectedTurns:
    """The turns that may have had messages in their prompts, as found at one moment.

    Attributes:
        first: The first of them, or None if there is none yet.
        going_on: Those that were not over then.
        up_to: Up to which turn of the conversation they were looked for.
        without_event: Turns that the messages began, although no event tells so any more.
    """

    first: int | None
    going_on: Collection[int]
    up_to: int
    without_event: Collection[int]


def turns_of(connection: Connection, context_id: int, message_ids: Collection[int]) -> set[int]:
    """Return the turns that messages of a context began, also those whose events are not kept any more."""
    brought, unknown = _by_events(connection, message_ids)
    return brought | _by_places(connection, context_id, unknown)


def turns_brought_by(connection: Connection, message_ids: Collection[int]) -> set[int]:
    """Return the turns that the events of messages began, as far as these events are kept."""
    return _by_events(connection, message_ids)[0]


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
    """Return the turns whose answers stand right behind nothing but these messages, by looking through their context.

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
    for row in connection.execute(query) if chosen else ():
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
    brought, unknown = _by_events(connection, message_ids)
    without_event = _by_places(connection, context_id, unknown) | _unnamed(connection, context_id, message_ids)
    first = _first_turn(connection, context_id, {*message_ids, *held_by}, brought | without_event)
    going_on = select(turns.c.id).where(turns.c.context_id == context_id, turns.c.id >= (first or 0), ~IS_OVER)
    return AffectedTurns(
        first, () if first is None else connection.execute(going_on).scalars().all(), up_to, without_event
    )


def own_turns(connection: Connection, message_ids: Collection[int], seen: AffectedTurns) -> set[int]:
    """Return the turns that messages began, and that answer nothing else."""
    own = turns_brought_by(connection, message_ids) | set(seen.without_event)
    return own - shared_turns(connection, own, message_ids)


def turns_to_erase(connection: Connection, context_id: int, seen: AffectedTurns) -> dict[int, str]:
    """Return the turns that were not over when they were looked for, and those since, with their state now."""
    query = select(turns.c.id, turns.c.status).where(turns.c.context_id == context_id).with_for_update()
    since = max(seen.first or 0, seen.up_to + 1)
    rows = [
        *connection.execute(query.where(turns.c.id >= since)),
        *select_among(connection, query, turns.c.id, seen.going_on),
    ]
    return {row.id: row.status for row in rows}


def _unnamed(connection: Connection, context_id: int, message_ids: Collection[int]) -> set[int]:
    """Return the turns of messages that a program handed in, or that were due: they are as old as their messages."""
    is_unnamed = (messages.c.context_id + 0 == context_id) & messages.c.event_id.is_(None)
    handed_in = select_among(connection, select(messages.c.created_at).where(is_unnamed), messages.c.id, message_ids)
    of_context = select(turns.c.id).where(turns.c.context_id == context_id)
    times = [row.created_at for row in handed_in]
    return {row.id for row in select_among(connection, of_context, turns.c.created_at, times)}


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


# Erasing them

_SOON: Final = timedelta(seconds=2)  # parts of one message gather for less
_FORGOTTEN: Final = "what it had done was forgotten, with somebody's words"
_TOO_OFTEN: Final = 1_000  # beginnings: the worker that takes such a turn up sets it aside, and tells its chat so
_OF_ONE_RUN: Final = {
    "id",
    "question_id",
    "started_at",
    "finished_at",
    "outcome",
    "error",
    "system_prompt",
    "compacted_at",
}


def delete_turns(connection: Connection, turn_ids: Collection[int], now: datetime) -> None:
    """Delete turns with their work; the names of their events stay."""
    for chunk in chunks(turn_ids):
        leave_events(connection, events.c.turn_id.in_(chunk), now)
        connection.execute(delete(turns).where(turns.c.id.in_(chunk)))


def leave_events(connection: Connection, which: ColumnElement[bool], now: datetime) -> None:
    """Leave nothing of events but their names."""
    handled_at = func.coalesce(events.c.handled_at, literal(now, events.c.handled_at.type))
    connection.execute(update(events).where(which).values(raw=None, turn_id=None, handled_at=handled_at))


def leave_events_of(connection: Connection, event_ids: Collection[int], now: datetime) -> None:
    """Leave nothing of some events but their names."""
    leave_events(connection, events.c.id.in_(event_ids), now)


def erase_event(connection: Connection, turn_id: int) -> None:
    """Forget what the platform delivered for a turn; its name stays, so that it is not taken in again."""
    connection.execute(update(events).where(events.c.turn_id == turn_id).values(raw=None))


def ask_again(connection: Connection, turn_id: int, now: datetime) -> None:
    """Replace a turn whose answer must not stay by a new one, so that a worker on the old one writes nothing back.

    One that has run tools, or of which nothing is kept that asks for it, cannot be done again: it is given up, and its
    chat is told so.
    """
    row = connection.execute(select(turns).where(turns.c.id == turn_id)).mappings().one()
    asked = select(func.count()).where(events.c.turn_id == turn_id, events.c.raw.is_not(None))
    values = {name: value for name, value in row.items() if name not in _OF_ONE_RUN}
    values |= {"failures": 0, "due_at": now, "due_set_at": now}
    if row["transport"] == API:  # who asked learns that it was cut off
        values |= {
            "status": TurnStatus.DONE.value,
            "outcome": Outcome.FAILED.value,
            "finished_at": now,
            "error": _FORGOTTEN,
            "compacted_at": now,
        }
    elif row["steps_taken"] or not connection.execute(asked).scalar_one():
        values |= {"status": TurnStatus.RUNNING.value, "attempts": _TOO_OFTEN, "error": _FORGOTTEN, "compacted_at": now}
        values |= {"started_at": row["started_at"]}
    else:
        values |= {"status": TurnStatus.QUEUED.value, "attempts": 0}
    new_id = connection.execute(insert(turns).values(values).returning(turns.c.id)).scalar_one()
    connection.execute(update(events).where(events.c.turn_id == turn_id).values(turn_id=new_id, handled_at=None))
    connection.execute(delete(turns).where(turns.c.id == turn_id))


def drop_changes(connection: Connection, context_id: int, message_ids: Collection[int], now: datetime) -> None:
    """Drop the changes of messages that go with them: they would wait for these, with their words."""
    for chunk in chunks(message_ids):
        names = select(messages.c.external_id).where(messages.c.id.in_(chunk), MESSAGE_IS_EXTERNAL)
        is_change = (events.c.context_id == context_id) & events.c.turn_id.is_(None) & events.c.external_id.in_(names)
        leave_events(connection, is_change, now)


def go_on(connection: Connection, context_id: int, now: datetime) -> None:
    """Have nothing that was not tried yet wait for what is gone: it was put off behind that."""
    for table, is_untried in (
        (turns, and_(TURN_IS_OPEN, TURN_IS_QUEUED)),
        (deliveries, DELIVERY_IS_OWED & (deliveries.c.attempts == 0)),
    ):
        is_put_off = is_of(table, literal(context_id)) & is_untried & (table.c.due_at > now + _SOON)
        connection.execute(update(table).where(is_put_off).values(due_at=now, due_set_at=now))


def erase_work(connection: Connection, turn_id: int, status: str, now: datetime) -> None:
    """Forget how a turn of another person was answered; a running or unsent one begins again."""
    is_over = status == TurnStatus.DONE
    is_begun = status in (TurnStatus.RUNNING, TurnStatus.WAITING)
    if is_begun or (is_over and _owes_what_is_gone(connection, turn_id)):
        ask_again(connection, turn_id, now)
        return
    forget_words_of(connection, [turn_id])
    # What is still owed goes when it is sent: see `Outbox`.
    connection.execute(update(turns).where(turns.c.id == turn_id).values(compacted_at=now))
    if is_over:
        erase_event(connection, turn_id)


def _owes_what_is_gone(connection: Connection, turn_id: int) -> bool:
    """Return whether a turn still owes an answer that is not in the history: it was erased, or a command gave it."""
    kept = select(messages.c.id).where(messages.c.answers_turn_id == turn_id)
    said = select(events.c.id).where(events.c.turn_id == turn_id, events.c.raw.is_not(None))
    return (
        is_owed(connection, turn_id)
        and connection.execute(kept).first() is None
        and connection.execute(said).first() is not None
    )
