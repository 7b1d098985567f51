"""Every statement that finds what people said, and what repeats it, and that deletes it from chats."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Select, and_, delete, func, not_, select, update

from botservice.core.message_references import Reference, keep_files
from botservice.core.messages import Author, Message, Role
from botservice.history.edit_queries import delete_rows
from botservice.history.queries import select_messages
from botservice.history.rows import read_messages
from botservice.history.search_queries import forget_words
from botservice.privacy.forgotten_counts import Forgotten
from botservice.privacy.record_queries import forget_words_of, queue_turns
from botservice.privacy.turn_queries import (
    AffectedTurns,
    answers_of,
    delete_turns,
    drop_changes,
    erase_work,
    find_seen,
    go_on,
    leave_events,
    own_turns,
    turns_to_erase,
)
from botservice.storage.blobs import loosen_all_files
from botservice.storage.database import Connection
from botservice.storage.message_references import decode_references, keep_references
from botservice.storage.statements import chunks, is_by, select_among
from botservice.storage.tables.columns import metadata
from botservice.storage.tables.conditions import MESSAGE_IS_NOT_OF_A_PERSON, MESSAGE_IS_OF_A_PERSON, TURN_IS_QUEUED
from botservice.storage.tables.conversations import (
    contexts,
    deliveries,
    events,
    message_references,
    messages,
    reminders,
    turns,
    vectors,
)
from botservice.storage.tables.people import facts

# Messages


def contexts_of(connection: Connection, authors: Iterable[Author]) -> list[int]:
    """Return the contexts in which a person wrote under one of these accounts, in the order of their ids."""
    found: set[int] = set()
    for author in authors:
        query = select(messages.c.context_id).where(is_by(messages, author)).distinct()
        found.update(connection.execute(query).scalars())
    return sorted(found)


def own_message_ids(connection: Connection, context_id: int, author: Author) -> list[int]:
    """Return the ids of all that an author wrote in a context."""
    query = select(messages.c.id).where(messages.c.context_id == context_id, is_by(messages, author))
    return list(connection.execute(query).scalars())


def is_alone(connection: Connection, context_id: int, accounts: Collection[Author]) -> bool:
    """Return whether these accounts alone wrote in a context; messages without an account are others'."""
    by_others = select(messages.c.id).where(messages.c.context_id == context_id, MESSAGE_IS_OF_A_PERSON)
    for each in accounts:
        is_theirs = and_(
            messages.c.author_platform.is_not_distinct_from(each.platform),
            messages.c.author_id.is_not_distinct_from(each.id),
        )
        by_others = by_others.where(not_(is_theirs))
    return connection.execute(by_others.limit(1)).first() is None


def find_own_message(
    connection: Connection,
    context_id: int,
    author: Author,
    *,
    message_id: int | None = None,
    external_id: str | None = None,
) -> Message | None:
    """Return a message of an author in a context, or None if there is none, or it is another person's.

    Args:
        message_id: Which one; by default the newest.
        external_id: The platform's id of it, or of an answer to it.
    """
    query = select_messages(context_id).where(MESSAGE_IS_OF_A_PERSON, is_by(messages, author))
    if message_id is not None:
        query = query.where(messages.c.id == message_id)
    elif external_id is not None:
        query = query.where(
            (messages.c.external_id == external_id) | messages.c.event_id.in_(_asked_by(context_id, external_id))
        )
    row = connection.execute(query.order_by(messages.c.position.desc()).limit(1)).one_or_none()
    return None if row is None else read_messages(connection, context_id, [row])[0]


def _asked_by(context_id: int, external_id: str) -> Select[tuple[int]]:
    """Return the query of the events that an answer on a platform answers."""
    return (
        select(events.c.id)
        .join(deliveries, deliveries.c.turn_id == events.c.turn_id)
        .where(deliveries.c.context_id == context_id, deliveries.c.external_id == external_id)
    )


# Chats

_ROWS_AT_ONCE: Final = 200


def lock_chat(connection: Connection, context_id: int) -> None:
    """Have nothing more be said in a conversation until all of it is done: on SQLite, others do not write meanwhile."""
    connection.execute(select(contexts.c.id).where(contexts.c.id == context_id).with_for_update())


def read_state(connection: Connection, context_id: int) -> tuple[Any, ...] | None:
    """Return what changes as soon as anything is said, quoted or deleted in a chat; None where it is gone."""
    last_reference = select(func.max(message_references.c.id)).where(message_references.c.context_id == context_id)
    state = select(contexts.c.deletion_version, contexts.c.last_position, last_reference.scalar_subquery())
    row = connection.execute(state.where(contexts.c.id == context_id)).one_or_none()
    return None if row is None else tuple(row)


def last_said(connection: Connection, context_id: int) -> int:
    """Return where the last message of a person stands; 0 where there is none."""
    said = select(func.max(messages.c.position)).where(messages.c.context_id == context_id, MESSAGE_IS_OF_A_PERSON)
    return connection.execute(said).scalar_one() or 0


def find_messages_before(connection: Connection, _after: int, context_id: int, up_to: int) -> list[int]:
    """Return the first messages of a chat before a position: those that were found before are deleted."""
    before = select(messages.c.id).where(messages.c.context_id == context_id, messages.c.position < up_to)
    return list(connection.execute(before.order_by(messages.c.position).limit(_ROWS_AT_ONCE)).scalars())


def delete_messages(connection: Connection, context_id: int, message_ids: Collection[int] | None = None) -> Forgotten:
    """Delete messages of a chat, all of them by default, with the facts that come from them; return what went."""
    known = count_facts(connection, context_id) if message_ids is None else count_facts_from(connection, message_ids)
    rows = delete_rows(connection, context_id, message_ids)
    return Forgotten(
        messages=sum(row.role == Role.USER.value for row in rows),
        answers=sum(row.role == Role.ASSISTANT.value for row in rows),
        files=sum(len(row.attachments or ()) for row in rows),
        facts=known,
    )


def find_handled_events(connection: Connection, after: int, context_id: int, before: datetime) -> list[int]:
    """Return the next events of a chat that came before a moment and have no turn any more."""
    handled = select(events.c.id).where(
        events.c.context_id == context_id,
        events.c.id > after,
        events.c.turn_id.is_(None),
        events.c.handled_at.is_not(None),
        events.c.received_at < before,
    )
    return list(connection.execute(handled.order_by(events.c.id).limit(_ROWS_AT_ONCE)).scalars())


def delete_events(connection: Connection, event_ids: Sequence[int]) -> None:
    """Delete events."""
    connection.execute(delete(events).where(events.c.id.in_(event_ids)))


def delete_chat(connection: Connection, context_id: int, *, but_turn: int | None, now: datetime) -> Forgotten:
    """Delete a chat, or empty it where a turn asks for that or a person's message waits; return what went."""
    asked = select(func.count()).where(reminders.c.context_id == context_id)
    gone = Forgotten(reminders=connection.execute(asked).scalar_one()) + delete_messages(connection, context_id)
    # In a shared conversation, the first message of another person may be waiting.
    others = select(turns.c.id).join(contexts, contexts.c.id == turns.c.context_id)
    others_wait = others.where(contexts.c.id == context_id, contexts.c.is_shared, TURN_IS_QUEUED).limit(1)
    if but_turn is not None or connection.execute(others_wait).first() is not None:
        _empty_chat(connection, context_id, but_turn=but_turn, now=now)
        return gone + Forgotten(contexts=1)
    # None, if another process was faster.
    return gone + Forgotten(contexts=connection.execute(delete(contexts).where(contexts.c.id == context_id)).rowcount)


_KNOWN: Final = select(func.count()).where(facts.c.superseded_at.is_(None))


def count_facts(connection: Connection, context_id: int) -> int:
    """Count the facts that come from a chat."""
    return connection.execute(_KNOWN.where(facts.c.context_id == context_id)).scalar_one()


def count_facts_from(connection: Connection, message_ids: Collection[int]) -> int:
    """Count the facts that come from some messages."""
    return sum(
        connection.execute(_KNOWN.where(facts.c.source_message_id.in_(chunk))).scalar_one()
        for chunk in chunks(sorted(set(message_ids)))
    )


# Deleting from chats

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


@dataclass(frozen=True, slots=True)
class Erasure:
    """What is to go from a conversation that stays.

    Attributes:
        answers: Messages of the assistant that repeat what goes.
        held: Messages of people, with what they may go on holding of others.
        but_turn: The turn in which this is asked for; it stays, without its words.
        seen: Which turns may have seen it, where that was looked for already.
    """

    context_id: int
    message_ids: Collection[int]
    answers: Collection[int] = ()
    held: Mapping[int, Sequence[Reference]] = field(default_factory=dict)
    but_turn: int | None = None
    seen: AffectedTurns | None = None


def _empty_chat(connection: Connection, context_id: int, *, but_turn: int | None, now: datetime) -> None:
    """Leave nothing of a conversation without messages but its keys, and the turns that wait or ask for this.

    The platform's names of events stay: delivered again, they would bring back what is forgotten.
    """
    waiting = select(turns.c.id).where(
        turns.c.context_id == context_id,
        TURN_IS_QUEUED,
        select(events.c.id).where(events.c.turn_id == turns.c.id, events.c.raw.is_not(None)).exists(),
    )
    every = connection.execute(select(turns.c.id).where(turns.c.context_id == context_id)).scalars()
    delete_turns(connection, set(every) - {*connection.execute(waiting).scalars(), but_turn}, now)
    leave_events(connection, (events.c.context_id == context_id) & events.c.turn_id.is_(None), now)
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
    go_on(connection, context_id, now)
    loosen_all_files(connection, context_id)


def erase_messages(connection: Connection, erasure: Erasure, now: datetime) -> Forgotten:
    """Take messages out of a conversation with all that came of them, and return what went.

    With them go the answers to them, and the record of the agent's work ever since: any prompt or step of it may
    quote them. What others said, and the answers to them that do not repeat what is forgotten, stay.
    """
    context_id = erasure.context_id
    seen = erasure.seen or find_seen(connection, context_id, erasure.message_ids, erasure.held)
    own = own_turns(connection, erasure.message_ids, seen)
    later = turns_to_erase(connection, context_id, seen)
    if erasure.but_turn is not None:
        own.discard(erasure.but_turn)
        later.pop(erasure.but_turn, None)
        forget_words_of(connection, [erasure.but_turn])
    delete_turns(connection, own, now)
    answer_ids = [*erasure.answers, *answers_of(connection, context_id, own)]
    drop_changes(connection, context_id, erasure.message_ids, now)
    gone = delete_messages(connection, context_id, [*erasure.message_ids, *answer_ids])
    gone += Forgotten(files=erase_references(connection, context_id, erasure.held))
    for turn_id, status in later.items():
        if turn_id not in own:
            erase_work(connection, turn_id, status, now)
    if seen.first is not None and seen.first <= seen.up_to:
        queue_turns(connection, context_id, seen.first, seen.up_to, now)
    go_on(connection, context_id, now)
    loosen_all_files(connection, context_id)
    return gone


def erase_references(connection: Connection, context_id: int, held: Mapping[int, Sequence[Reference]]) -> int:
    """Remove forgotten words from messages of people, to be counted and embedded again.

    Returns how many files went with that.
    """
    if not held:
        return 0
    forget_words(connection, context_id)
    gone = 0
    for message_id, references in held.items():
        files_of = select(messages.c.said_by_others, messages.c.attachments).where(messages.c.id == message_id)
        row = connection.execute(files_of).one()
        before = decode_references(row.said_by_others)
        left = {id(each) for each, now in zip(before, references, strict=True) if not now.is_erased}
        files = keep_files(row.attachments or (), before, lambda each, left=left: id(each) in left)  # type: ignore[misc]  # bound at once
        gone += len(row.attachments or ()) - len(files)
        counts = {"token_count": None, "token_encoding": None}
        keep_references(connection, context_id, message_id, references, attachments=files or None, **counts)
        connection.execute(delete(vectors).where(vectors.c.message_id == message_id))
    version = update(contexts).where(contexts.c.id == context_id)
    connection.execute(version.values(deletion_version=contexts.c.deletion_version + 1))
    return gone


# What repeats a person

_SILENT: Final = select(messages.c.id).where(messages.c.text == "")
_SPOKEN: Final = select(
    *messages.c["id", "position", "text", "said_by_others", "external_id"],
    *messages.c["author_platform", "author_id", "author_name"],
)


def prepare_messages(connection: Connection, context_id: int, message_ids: Collection[int]) -> list[Any]:
    """Return what messages say, hold of others, and whose they are."""
    return select_among(connection, _SPOKEN.where(messages.c.context_id == context_id), messages.c.id, message_ids)


def read_answers(
    connection: Connection, context_id: int, *, ids: Collection[int] = (), turn_ids: Collection[int] = ()
) -> list[Any]:
    """Return the texts of answers, by their ids or by the turns that gave them."""
    query = select(messages.c.text, messages.c.answers_turn_id).where(messages.c.context_id == context_id)
    by_turns = select_among(connection, query, messages.c.answers_turn_id, turn_ids)
    return [*select_among(connection, query, messages.c.id, ids), *by_turns]


def find_answers_holding(
    connection: Connection, context_id: int, texts: Collection[str] | None = None, *, after: int = -1
) -> list[int]:
    """Return the answers behind a position that hold one of some texts; by default, all answers of a chat."""
    later = select(messages.c.id, messages.c.text).where(
        messages.c.context_id == context_id, messages.c.position > after, MESSAGE_IS_NOT_OF_A_PERSON
    )
    rows = connection.execute(later).all()
    return [row.id for row in rows if texts is None or any(each in row.text for each in texts)]


def find_silent(connection: Connection, message_ids: Collection[int]) -> list[int]:
    """Return those of some messages that have no words of their own."""
    return [row.id for row in select_among(connection, _SILENT, messages.c.id, message_ids)]


def find_sent(connection: Connection, turn_ids: Collection[int]) -> set[str]:
    """Return the platforms' ids of the messages that turns have sent."""
    sent = select(deliveries.c.external_id).where(deliveries.c.external_id.is_not(None))
    return {row.external_id for row in select_among(connection, sent, deliveries.c.turn_id, turn_ids)}


def read_unnamed(connection: Connection, after: int) -> Iterable[tuple[int, tuple[Reference, ...]]]:
    """Yield what messages of all chats hold of others whose account is not known, or of the assistant.

    Args:
        after: Behind which row of what is held of others.
    """
    held = messages.c.said_by_others
    unnamed = (
        select(messages.c.context_id, held)
        .join(message_references, message_references.c.message_id == messages.c.id)
        .where(
            message_references.c.external_id.is_(None) | held.contains('"kind":"share"', autoescape=True),
            message_references.c.person_id.is_(None) | held.contains('"is_of_assistant":true', autoescape=True),
            message_references.c.id > after,
        )
    )
    for row in connection.execute(unnamed):
        yield row.context_id, decode_references(row.said_by_others)


def newest_reference(connection: Connection) -> int:
    """Return the id of the newest reference of all chats: later ones have higher ids."""
    newest: int = connection.execute(select(func.coalesce(func.max(message_references.c.id), 0))).scalar_one()
    return newest
