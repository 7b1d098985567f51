"""Every statement of the background: how far the observer has read, what is old enough to delete, and alerts."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Generic, Literal, TypeVar

from sqlalchemy import Connection, and_, bindparam, delete, exists, func, insert, literal_column, or_, select, update

from botservice.conversation.snapshots import turns_in_view
from botservice.core.states import API, TurnStatus
from botservice.history.queries import OF_CONTEXT
from botservice.storage.blobs import DIGEST, loosen_files
from botservice.storage.statements import of_each_database
from botservice.storage.tables.conditions import (
    CONTEXT_IS_REMEMBERED,
    DELIVERY_HAS_BUTTONS,
    DELIVERY_IS_OVER,
    EVENT_IS_MESSAGE,
    MESSAGE_IS_SAID,
    READING_IS_DUE,
    REMINDER_IS_OVER,
    TURN_HAS_FAILED,
    TURN_IS_ANSWERED,
    TURN_IS_NOT_SUSPENDED,
    TURN_IS_UNANSWERED,
    TURN_IS_WHOLE,
)
from botservice.storage.tables.conversations import (
    contexts,
    deliveries,
    events,
    messages,
    prompt_log,
    reminders,
    steps,
    turns,
)
from botservice.storage.tables.knowledge import observed
from botservice.storage.tables.people import identities
from botservice.storage.tables.services import alerts
from botservice.storage.tables.waiting import approvals, pending_calls

T = TypeVar("T")

AT_ONCE: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""When something is due that the database itself has put back."""

CHANGED_AT_ONCE: Final = 50
_DUE_AT_ONCE: Final = 20
MOST_UNREAD: Final = 4_000
_CHARACTERS_PER_TOKEN: Final = 4
_CHANGED = (
    select(contexts.c.id, contexts.c.last_message_id)
    .outerjoin(observed, observed.c.context_id == contexts.c.id)
    .where(
        contexts.c.last_message_id > bindparam("after"),
        CONTEXT_IS_REMEMBERED,
        or_(observed.c.seen_id.is_(None), observed.c.seen_id != contexts.c.last_message_id),
    )
    .order_by(contexts.c.last_message_id, contexts.c.id)
    .limit(CHANGED_AT_ONCE)
)
_DUE = (
    select(observed.c.context_id)
    .where(READING_IS_DUE, observed.c.due_at <= bindparam("now", type_=observed.c.due_at.type))
    .order_by(observed.c.due_at)
    .limit(_DUE_AT_ONCE)
)
_STATE = select(observed).where(observed.c.context_id == bindparam("context"))
_UNREAD = (
    select(
        messages.c.position,
        messages.c.created_at,
        func.coalesce(
            messages.c.token_count, func.length(messages.c.text) / literal_column(str(_CHARACTERS_PER_TOKEN)) + 1
        ).label("tokens"),
    )
    .where(messages.c.context_id == bindparam("context"), messages.c.position > bindparam("after"), MESSAGE_IS_SAID)
    .order_by(messages.c.position.desc())
    .limit(MOST_UNREAD)
)


MOST_READ: Final = 500
"""Messages of a stretch."""
_SAID = (
    OF_CONTEXT.add_columns(messages.c.own_text)
    .where(messages.c.position > bindparam("after"), messages.c.position <= bindparam("last"), MESSAGE_IS_SAID)
    .order_by(messages.c.position)
    .limit(MOST_READ)
)
_CHAT = (
    select(
        contexts.c.context_keys,
        contexts.c.fresh_from,
        contexts.c.is_shared,
        identities.c.platform,
        identities.c.platform_id,
    )
    .outerjoin(identities, and_(identities.c.id == contexts.c.only_identity_id, ~contexts.c.is_shared))
    .where(contexts.c.id == bindparam("context"), CONTEXT_IS_REMEMBERED)
)


def find_changed(connection: Connection, after: int) -> list[tuple[int, int]]:
    """Return conversations in which something was said since they were looked at, with their last messages' ids."""
    return [(row.id, row.last_message_id) for row in connection.execute(_CHANGED, {"after": after}).all()]


def find_seen(connection: Connection) -> int:
    """Return the id of the newest message that was looked at."""
    return int(connection.execute(select(func.coalesce(func.max(observed.c.seen_id), 0))).scalar_one())


def find_due(connection: Connection, now: datetime) -> list[int]:
    """Return conversations that are to be looked at or read, those that have waited longest first."""
    return [row.context_id for row in connection.execute(_DUE, {"now": now}).all()]


def read_state(connection: Connection, context_id: int) -> Any | None:
    """Return how far a conversation is read, or None if nobody has looked at it."""
    return connection.execute(_STATE, {"context": context_id}).one_or_none()


def list_unread(connection: Connection, context_id: int, after: int) -> Sequence[Any]:
    """Return the newest messages behind a position, at most `MOST_UNREAD`, newest first, with their tokens."""
    return connection.execute(_UNREAD, {"context": context_id, "after": after}).all()


def ensure_state(connection: Connection, context_id: int, *, read_to: int = 0) -> None:
    """Create the reading state of a conversation if there is none, unless the conversation is gone."""
    if read_state(connection, context_id) is not None:
        return
    found = select(contexts.c.id).where(contexts.c.id == context_id).with_for_update(key_share=True)
    if connection.execute(found).first() is None or read_state(connection, context_id) is not None:
        return
    connection.execute(insert(observed).values(context_id=context_id, read_to=read_to))


def note_seen(connection: Connection, context_id: int, seen_id: int, due_at: datetime | None) -> None:
    """Note that a conversation was looked at; what is to be read at once stays so."""
    is_put_back = and_(observed.c.due_at == AT_ONCE, observed.c.again_to > observed.c.read_to)
    of_context = observed.c.context_id == context_id
    connection.execute(update(observed).where(of_context).values(seen_id=seen_id))
    connection.execute(update(observed).where(of_context, ~func.coalesce(is_put_back, False)).values(due_at=due_at))


def put_off(connection: Connection, context_id: int, due_at: datetime | None, *, tries: int | None = None) -> None:
    """Set when to look at a conversation again; None for not before its next message."""
    values: dict[str, Any] = {"due_at": due_at}
    if tries is not None:
        values["tries"] = tries
    connection.execute(update(observed).where(observed.c.context_id == context_id).values(values))


def end_again(connection: Connection, context_id: int) -> None:
    """Note that nothing is left to be read again."""
    of_context = (observed.c.context_id == context_id) & (observed.c.again_to > observed.c.read_to)
    connection.execute(update(observed).where(of_context).values(again_to=observed.c.read_to))


def mark_read(connection: Connection, context_id: int, version: int, last: int) -> bool:
    """Note that a stretch was read, or is left out for good; return whether nothing changed meanwhile."""
    change = update(observed).where(observed.c.context_id == context_id, observed.c.version == version)
    values = {"read_to": last, "version": version + 1, "tries": 0}
    return connection.execute(change.values(values)).rowcount > 0


def find_chat(connection: Connection, context_id: int) -> Any | None:
    """Return the keys of a conversation, where it last began afresh, and its only person; None if it is forgotten."""
    return connection.execute(_CHAT, {"context": context_id}).one_or_none()


def lock_chat(connection: Connection, context_id: int) -> bool:
    """Return whether a conversation is there still; nobody forgets it or edits in it until this transaction ends."""
    alive = select(contexts.c.id).where(contexts.c.id == context_id, CONTEXT_IS_REMEMBERED)
    return connection.execute(alive.with_for_update(key_share=True)).first() is not None


def list_said(connection: Connection, context_id: int, after: int, last: int) -> Sequence[Any]:
    """Return the messages between two positions, at most `MOST_READ`, oldest first."""
    return connection.execute(_SAID, {"context": context_id, "after": after, "last": last}).all()


_TURNS_AT_ONCE: Final = 50  # each with a dozen rows: the writer is held for some hundredths of a second
_EVENTS_AT_ONCE: Final = 200

_WHOLE_TURNS = (
    select(turns.c.id, turns.c.context_id, turns.c.status, turns.c.created_at, turns.c.finished_at)
    .where(TURN_IS_WHOLE, turns.c.id > bindparam("after"))
    .order_by(turns.c.id)
    .limit(_TURNS_AT_ONCE)
)
_OLD_BUTTONS = (
    select(deliveries.c.id)
    .join(turns, turns.c.id == deliveries.c.turn_id)
    .where(DELIVERY_HAS_BUTTONS, turns.c.created_at < bindparam("before"), TURN_IS_NOT_SUSPENDED)
    .limit(_EVENTS_AT_ONCE)
)
_NEWEST_TURN = (
    select(turns.c.id, turns.c.keeps_steps, turns.c.system_prompt)
    # Not "equal", and ordered by both: Postgres would go through the turns of all contexts for the newest of one.
    .where(turns.c.context_id.between(bindparam("context"), bindparam("context")), turns.c.started_at.is_not(None))
    .order_by(turns.c.context_id.desc(), turns.c.id.desc())
    .limit(1)
)
_OLDEST_EVENTS = (
    select(events.c.id, events.c.turn_id, events.c.received_at, events.c.handled_at, turns.c.status)
    .outerjoin(turns, turns.c.id == events.c.turn_id)
    .where(events.c.id > bindparam("after"))
    .order_by(events.c.id)
    .limit(_EVENTS_AT_ONCE)
)


@dataclass(frozen=True, slots=True)
class Batch(Generic[T]):
    """A run of rows, oldest first.

    Attributes:
        old: What of them is old enough.
        last_id: The last one that was looked at; the next batch begins after it.
        is_last: Whether what follows is too young, or nothing does.
    """

    old: T
    last_id: int
    is_last: bool


@dataclass(frozen=True, slots=True)
class Doomed:
    """What is to be deleted of one context.

    Attributes:
        digests: Blobs that may be needed by nothing else.
        prompt_keeper: The turn that goes on naming the context's system prompt.
    """

    context_id: int
    turn_ids: Sequence[int]
    digests: Collection[str]
    prompt_keeper: int | None


def read_newest(connection: Connection, table: Literal["turns", "events"]) -> int:
    """Return the largest id of a table; 0 where it is empty."""
    newest = func.max(turns.c.id if table == "turns" else events.c.id)
    return int(connection.execute(select(newest)).scalar_one() or 0)


def read_old_turns(connection: Connection, after: int, before: datetime) -> Batch[dict[int, list[int]]]:
    """Return the next turns that were done before a moment and have their steps still, by context."""
    rows = connection.execute(_WHOLE_TURNS, {"after": after}).all()
    by_context: dict[int, list[int]] = {}
    for row in rows:
        if row.status == TurnStatus.DONE.value and row.finished_at is not None and row.finished_at < before:
            by_context.setdefault(row.context_id, []).append(row.id)
    is_last = len(rows) < _TURNS_AT_ONCE or rows[-1].created_at >= before
    return Batch(by_context, rows[-1].id if rows else after, is_last)


def read_old_events(connection: Connection, after: int, before: datetime) -> Batch[list[int]]:
    """Return the next events that came before a moment and are dealt with."""
    rows = connection.execute(_OLDEST_EVENTS, {"after": after}).all()
    found = [
        row.id
        for row in rows
        if row.received_at < before
        and (row.status == TurnStatus.DONE.value if row.turn_id is not None else row.handled_at is not None)
    ]
    is_last = len(rows) < _EVENTS_AT_ONCE or rows[-1].received_at >= before
    return Batch(found, rows[-1].id if rows else after, is_last)


def read_doomed(connection: Connection, context_id: int, turn_ids: Sequence[int]) -> Doomed:
    """Return what can be deleted of turns of one context, except what its newest turn keeps in view."""
    newest = connection.execute(_NEWEST_TURN, {"context": context_id}).one_or_none()
    keeps_steps = newest is not None and newest.keeps_steps
    in_view = {row.id for row in turns_in_view(connection, context_id)} if keeps_steps else set()
    going = [each for each in turn_ids if each not in in_view]
    digests = _read_digests(connection, going) - {None if newest is None else newest.system_prompt}
    return Doomed(context_id, going, digests, None if newest is None else newest.id)


def delete_doomed(connection: Connection, doomed: Doomed, now: datetime) -> None:
    """Delete the steps, prompts and deliveries of turns, and mark the turns as compacted."""
    ids = list(doomed.turn_ids)
    for table in (steps, prompt_log, pending_calls):
        connection.execute(delete(table).where(table.c.turn_id.in_(ids)))
    connection.execute(delete(deliveries).where(deliveries.c.turn_id.in_(ids), DELIVERY_IS_OVER))
    compacted = update(turns).where(turns.c.id.in_(ids))
    connection.execute(compacted.values(compacted_at=now))
    connection.execute(compacted.where(turns.c.id != (doomed.prompt_keeper or 0)).values(system_prompt=None))
    loosen_files(connection, doomed.context_id, doomed.digests)


def delete_events(connection: Connection, ids: Sequence[int]) -> None:
    """Delete events."""
    connection.execute(delete(events).where(events.c.id.in_(list(ids))))


def delete_buttons(connection: Connection, before: datetime) -> int:
    """Delete the next buttons of turns that are older than a moment, and return how many had some.

    Who was asked, and whether a person has pressed one, is known by events: nothing can be pressed for longer.
    """
    ids = list(connection.execute(_OLD_BUTTONS, {"before": before}).scalars())
    connection.execute(update(deliveries).where(deliveries.c.id.in_(ids)).values(buttons=None))
    return len(ids)


def delete_old_reminders(connection: Connection, before: datetime) -> None:
    """Delete reminders that were over before a moment."""
    connection.execute(delete(reminders).where(REMINDER_IS_OVER, reminders.c.finished_at < before))


def delete_approvals(connection: Connection, before: datetime) -> int:
    """Delete the next approvals that were decided before a moment, and return how many."""
    old = select(approvals.c.call).where(approvals.c.decided_at < before).limit(_EVENTS_AT_ONCE)
    ids = list(connection.execute(old).scalars())
    connection.execute(delete(approvals).where(approvals.c.call.in_(ids)))
    return len(ids)


def _read_digests(connection: Connection, turn_ids: Sequence[int]) -> set[str]:
    """Return the blobs that turns name."""
    found: set[str] = set()
    for column, turn_id in (
        (steps.c.data, steps.c.turn_id),
        (prompt_log.c.content, prompt_log.c.turn_id),
        (turns.c.system_prompt, turns.c.id),
    ):
        query = select(column).where(turn_id.in_(list(turn_ids)), column.is_not(None))
        for each in connection.execute(query).scalars():
            found.update(DIGEST.findall(each))
    return found


_ALERT: Final = "failed_turns"
_insert_alert = of_each_database(lambda insert: insert(alerts).on_conflict_do_nothing(index_elements=["name"]))
_ALERT_STATE = select(alerts).where(alerts.c.name == _ALERT)
_FAILED = (
    select(turns.c.id, turns.c.finished_at)
    .where(TURN_IS_UNANSWERED, TURN_HAS_FAILED)
    .order_by(turns.c.outcome.desc(), turns.c.id.desc())  # as the index of unanswered turns is
    .limit(bindparam("limit"))
)
# What a person or a program asked, and the agent answered: neither a command, nor a reminder, nor an alert.
_ANSWERED = (
    select(func.count())
    .select_from(turns)
    .where(
        turns.c.id >= bindparam("first"),
        TURN_IS_ANSWERED,
        exists().where(steps.c.turn_id == turns.c.id),
        or_(turns.c.transport == API, exists().where(events.c.turn_id == turns.c.id, EVENT_IS_MESSAGE)),
    )
)


def find_alert(connection: Connection) -> Any | None:
    """Return what was told of failed turns, and whether they fail still; None if nobody has looked."""
    return connection.execute(_ALERT_STATE).one_or_none()


def lock_alert(connection: Connection) -> Any:
    """Return the same, stored if new, for this transaction to change."""
    connection.execute(_insert_alert(connection), {"name": _ALERT, "is_on": False})
    return connection.execute(_ALERT_STATE.with_for_update()).one()


def note_alert(connection: Connection, *, is_on: bool, **told: datetime) -> None:
    """Store what was told: told_at and since, where it is that turns fail."""
    connection.execute(update(alerts).where(alerts.c.name == _ALERT).values(is_on=is_on, **told))


def list_failed(connection: Connection, limit: int) -> Sequence[Any]:
    """Return the newest turns that failed, each with its id and when it ended."""
    return connection.execute(_FAILED, {"limit": limit}).all()


def count_answered_after(connection: Connection, first: int, moment: datetime) -> int:
    """Return how many turns from an id on were answered after a moment."""
    return int(connection.execute(_ANSWERED.where(turns.c.finished_at > moment), {"first": first}).scalar_one())


def count_answered_between(connection: Connection, first: int, begin: datetime, end: datetime) -> int:
    """Return how many turns from an id on were answered between two moments."""
    query = _ANSWERED.where(turns.c.finished_at.between(begin, end))
    return int(connection.execute(query, {"first": first}).scalar_one())
