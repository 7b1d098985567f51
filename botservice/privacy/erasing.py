"""The statements that remove words from every place that holds them.

A turn that is under way writes nothing back: its row goes first, and without it nothing of it is stored any more (see
`Saver`). What it was to answer and is not forgotten itself is asked anew.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, delete, func, insert, literal, select, update

from botservice.history.queries import delete_rows
from botservice.privacy.affected_turns import AffectedTurns, answers_of, find_seen, own_turns, turns_left
from botservice.privacy.deletion_counts import Forgotten, count_messages
from botservice.privacy.quotes import Quotes, erase_references
from botservice.storage.chunks import chunks
from botservice.storage.orphaned_files import loosen_all_files
from botservice.storage.ranges import is_of
from botservice.storage.tables.conditions import DELIVERY_IS_OWED, TURN_IS_OPEN
from botservice.storage.tables.conversations import contexts, deliveries, events, messages, prompt_log, steps, turns
from botservice.storage.tables.metadata import metadata
from botservice.storage.tables.waiting import pending_calls

_SOON: Final = timedelta(seconds=2)  # parts of one message gather for less
_QUEUED, _RUNNING, _WAITING, _DONE, _FAILED, _PROGRAM = "queued", "running", "waiting", "done", "failed", "api"
_FORGOTTEN: Final = "what it had done was forgotten, with somebody's words"
_TOO_OFTEN: Final = 1_000  # beginnings: the worker that takes such a turn up sets it aside, and tells its chat so
# They go with their turns, or one by one.
_BY_TURN: Final = {
    "turns",
    "events",
    "steps",
    "tool_calls",
    "prompt_log",
    "deliveries",
    "messages",
    "blobs",
    "loose_files",
    "exports",
    "pending_calls",
}
_KEPT: Final = {"model_usage"}  # sums, without words
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


@dataclass(frozen=True, slots=True)
class Erasure:
    """What is to go from a conversation that stays.

    Attributes:
        quotes: What repeats them.
        but_turn: The turn in which this is asked for; it stays, without its words.
        seen: Which turns may have seen it, where that was looked for already.
    """

    context_id: int
    message_ids: Collection[int]
    quotes: Quotes = Quotes()  # noqa: RUF009 - frozen
    but_turn: int | None = None
    seen: AffectedTurns | None = None


def erase_chat(connection: Connection, context_id: int, *, but_turn: int | None, now: datetime) -> None:
    """Empty a conversation that goes on: what is left is its keys, and what was said after the turn that asks for it.

    The platform's names of events stay: delivered again, they would bring back what is forgotten.
    """
    waiting = select(turns.c.id).where(
        turns.c.context_id == context_id,
        turns.c.status == _QUEUED,
        select(events.c.id).where(events.c.turn_id == turns.c.id, events.c.raw.is_not(None)).exists(),
    )
    every = connection.execute(select(turns.c.id).where(turns.c.context_id == context_id)).scalars()
    delete_turns(connection, set(every) - {*connection.execute(waiting).scalars(), but_turn}, now)
    leave_events(connection, (events.c.context_id == context_id) & events.c.turn_id.is_(None), now)
    delete_rows(connection, context_id)
    for table in metadata.sorted_tables:
        if "context_id" in table.c and table.name not in _BY_TURN | _KEPT:
            connection.execute(delete(table).where(table.c.context_id == context_id))
    empty: dict[str, Any] = {
        "metadata": {},
        "only_identity_id": None,
        "deletion_version": contexts.c.deletion_version + 1,
    }
    connection.execute(update(contexts).where(contexts.c.id == context_id).values(empty))
    if but_turn is not None:
        forget_words_of(connection, [but_turn])
    _go_on(connection, context_id, now)
    loosen_all_files(connection, context_id)


def erase_messages(connection: Connection, erasure: Erasure, now: datetime) -> Forgotten:
    """Take messages out of a conversation with all that came of them, and return what went.

    With them go the answers to them, and the record of the agent's work ever since: any prompt or step of it may
    quote them. What others said, and the answers to them that do not repeat what is forgotten, stay.
    """
    context_id = erasure.context_id
    seen = erasure.seen or find_seen(connection, context_id, erasure.message_ids, erasure.quotes.held)
    own = own_turns(connection, erasure.message_ids, seen)
    later = turns_left(connection, context_id, seen)
    if erasure.but_turn is not None:
        own.discard(erasure.but_turn)
        later.pop(erasure.but_turn, None)
        forget_words_of(connection, [erasure.but_turn])
    delete_turns(connection, own, now)
    answer_ids = [*erasure.quotes.answers, *answers_of(connection, context_id, own)]
    _drop_changes(connection, context_id, erasure.message_ids, now)
    gone = count_messages(connection, context_id, [*erasure.message_ids, *answer_ids])
    delete_rows(connection, context_id, erasure.message_ids)
    if answer_ids:
        delete_rows(connection, context_id, answer_ids)
    gone += Forgotten(files=erase_references(connection, context_id, erasure.quotes.held))
    for turn_id, status in later.items():
        if turn_id not in own:
            _erase_work(connection, turn_id, status, now)
    _go_on(connection, context_id, now)
    loosen_all_files(connection, context_id)
    return gone


def delete_turns(connection: Connection, turn_ids: Collection[int], now: datetime) -> None:
    """Delete turns with their work; the names of their events stay."""
    for chunk in chunks(turn_ids):
        leave_events(connection, events.c.turn_id.in_(chunk), now)
        connection.execute(delete(turns).where(turns.c.id.in_(chunk)))


def leave_events(connection: Connection, which: ColumnElement[bool], now: datetime) -> None:
    """Leave nothing of events but their names."""
    handled_at = func.coalesce(events.c.handled_at, literal(now, events.c.handled_at.type))
    connection.execute(update(events).where(which).values(raw=None, turn_id=None, handled_at=handled_at))


def erase_event(connection: Connection, turn_id: int) -> None:
    """Forget what the platform delivered for a turn; its name stays, so that it is not taken in again."""
    connection.execute(update(events).where(events.c.turn_id == turn_id).values(raw=None))


def is_owed(connection: Connection, turn_id: int) -> bool:
    """Return whether anything of what answers a turn is still to be sent."""
    open_ones = select(deliveries.c.id).where(deliveries.c.turn_id == turn_id, deliveries.c.finished_at.is_(None))
    return connection.execute(open_ones.limit(1)).first() is not None


def erase_shown(connection: Connection, turn_ids: Sequence[int]) -> None:
    """Forget what was sent to answer a few turns; the platforms' ids of messages stay."""
    shown = update(deliveries).where(deliveries.c.turn_id.in_(turn_ids), deliveries.c.finished_at.is_not(None))
    connection.execute(shown.values(payload={}, buttons=None, error=None))


def ask_anew(connection: Connection, turn_id: int, now: datetime) -> None:
    """Replace a turn whose answer must not stay by a new one, so that a worker on the old one writes nothing back.

    One that has run tools, or of which nothing is kept that asks for it, cannot be done again: it is given up, and its
    chat is told so.
    """
    row = connection.execute(select(turns).where(turns.c.id == turn_id)).mappings().one()
    asked = select(func.count()).where(events.c.turn_id == turn_id, events.c.raw.is_not(None))
    values = {name: value for name, value in row.items() if name not in _OF_ONE_RUN}
    values |= {"failures": 0, "due_at": now, "due_set_at": now}
    if row["transport"] == _PROGRAM:  # who asked learns that it was cut off
        values |= {"status": _DONE, "outcome": _FAILED, "finished_at": now, "error": _FORGOTTEN, "compacted_at": now}
    elif row["steps_taken"] or not connection.execute(asked).scalar_one():
        values |= {"status": _RUNNING, "attempts": _TOO_OFTEN, "error": _FORGOTTEN, "compacted_at": now}
        values |= {"started_at": row["started_at"]}
    else:
        values |= {"status": _QUEUED, "attempts": 0}
    new_id = connection.execute(insert(turns).values(values).returning(turns.c.id)).scalar_one()
    connection.execute(update(events).where(events.c.turn_id == turn_id).values(turn_id=new_id, handled_at=None))
    connection.execute(delete(turns).where(turns.c.id == turn_id))


def _drop_changes(connection: Connection, context_id: int, message_ids: Collection[int], now: datetime) -> None:
    """Drop the changes of messages that go with them: they would wait for these, with their words."""
    for chunk in chunks(message_ids):
        names = select(messages.c.external_id).where(messages.c.id.in_(chunk), messages.c.external_id.is_not(None))
        is_change = (events.c.context_id == context_id) & events.c.turn_id.is_(None) & events.c.external_id.in_(names)
        leave_events(connection, is_change, now)


def _go_on(connection: Connection, context_id: int, now: datetime) -> None:
    """Have nothing that was not tried yet wait for what is gone: it was put off behind that."""
    for table, is_untried in (
        (turns, TURN_IS_OPEN & (turns.c.status == _QUEUED)),
        (deliveries, DELIVERY_IS_OWED & (deliveries.c.attempts == 0)),
    ):
        is_put_off = is_of(table, literal(context_id)) & is_untried & (table.c.due_at > now + _SOON)
        connection.execute(update(table).where(is_put_off).values(due_at=now, due_set_at=now))


def _erase_work(connection: Connection, turn_id: int, status: str, now: datetime) -> None:
    """Forget how a turn of another person was answered; one that is under way, or is owed an answer, begins anew."""
    if status in (_RUNNING, _WAITING) or (status == _DONE and _owes_what_is_gone(connection, turn_id)):
        ask_anew(connection, turn_id, now)
        return
    forget_words_of(connection, [turn_id])
    # What is still owed goes when it is sent: see `Outbox`.
    connection.execute(update(turns).where(turns.c.id == turn_id).values(compacted_at=now))
    if status == _DONE:
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


def forget_words_of(connection: Connection, turn_ids: Sequence[int]) -> None:
    """Delete the steps and prompts of a few turns, and what was shown of them; the platforms' ids of messages stay."""
    for table in (steps, prompt_log, pending_calls):
        connection.execute(delete(table).where(table.c.turn_id.in_(turn_ids)))
    erase_shown(connection, turn_ids)
    connection.execute(update(turns).where(turns.c.id.in_(turn_ids)).values(error=None))
