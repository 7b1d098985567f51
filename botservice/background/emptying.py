"""The queries of compaction. Each looks at a few rows, in the order of their primary keys."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from sqlalchemy import Connection, Table, bindparam, delete, func, select, update

from botservice.conversation.reminder import ReminderStatus
from botservice.conversation.snapshots import turns_in_view
from botservice.storage.blobs import DIGEST
from botservice.storage.orphaned_files import loosen_files
from botservice.storage.tables.conditions import DELIVERY_HAS_BUTTONS, TURN_IS_WHOLE
from botservice.storage.tables.conversations import deliveries, events, prompt_log, reminders, steps, turns
from botservice.storage.tables.waiting import pending_calls
from botservice.turns.turn import DeliveryStatus, TurnStatus

T = TypeVar("T")

TURNS_AT_ONCE = 50  # each with a dozen rows: the writer is held for some hundredths of a second
EVENTS_AT_ONCE = 200
_OVER = (DeliveryStatus.DELIVERED.value, DeliveryStatus.FAILED.value)

_WHOLE_TURNS = (
    select(turns.c.id, turns.c.context_id, turns.c.status, turns.c.created_at, turns.c.finished_at)
    .where(TURN_IS_WHOLE, turns.c.id > bindparam("after"))
    .order_by(turns.c.id)
    .limit(TURNS_AT_ONCE)
)
_OLD_BUTTONS = (
    select(deliveries.c.id)
    .join(turns, turns.c.id == deliveries.c.turn_id)
    .where(DELIVERY_HAS_BUTTONS, turns.c.created_at < bindparam("before"), turns.c.status != TurnStatus.WAITING.value)
    .limit(EVENTS_AT_ONCE)
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
    .limit(EVENTS_AT_ONCE)
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


def read_newest(connection: Connection, table: Table) -> int:
    """Return the largest id of a table; 0 where it is empty."""
    return int(connection.execute(select(func.max(table.c.id))).scalar_one() or 0)


def read_old_turns(connection: Connection, after: int, before: datetime) -> Batch[dict[int, list[int]]]:
    """Return the next turns that were done before a moment and have their steps still, by context."""
    rows = connection.execute(_WHOLE_TURNS, {"after": after}).all()
    by_context: dict[int, list[int]] = {}
    for row in rows:
        if row.status == TurnStatus.DONE.value and row.finished_at is not None and row.finished_at < before:
            by_context.setdefault(row.context_id, []).append(row.id)
    is_last = len(rows) < TURNS_AT_ONCE or rows[-1].created_at >= before
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
    is_last = len(rows) < EVENTS_AT_ONCE or rows[-1].received_at >= before
    return Batch(found, rows[-1].id if rows else after, is_last)


def read_doomed(connection: Connection, context_id: int, turn_ids: Sequence[int]) -> Doomed:
    """Return what can be deleted of turns of one context, except what its newest turn keeps in view."""
    newest = connection.execute(_NEWEST_TURN, {"context": context_id}).one_or_none()
    in_view = set(turns_in_view(connection, context_id)) if newest is not None and newest.keeps_steps else set()
    going = [each for each in turn_ids if each not in in_view]
    digests = _read_digests(connection, going) - {None if newest is None else newest.system_prompt}
    return Doomed(context_id, going, digests, None if newest is None else newest.id)


def delete_doomed(connection: Connection, doomed: Doomed, now: datetime) -> None:
    """Delete the steps, prompts and deliveries of turns, and mark the turns as compacted."""
    ids = list(doomed.turn_ids)
    for table in (steps, prompt_log, pending_calls):
        connection.execute(delete(table).where(table.c.turn_id.in_(ids)))
    connection.execute(delete(deliveries).where(deliveries.c.turn_id.in_(ids), deliveries.c.status.in_(_OVER)))
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
    is_over = reminders.c.status != ReminderStatus.WAITING.value
    connection.execute(delete(reminders).where(is_over, reminders.c.finished_at < before))


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
