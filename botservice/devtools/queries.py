"""Queries about conversations and turns for reports; modules next to this one find turns and count them."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Text, func, or_, select, type_coerce

from botservice.conversation.items import MemoryItem
from botservice.conversation.step_records import read_steps
from botservice.conversation.steps import FailedStep, TaskStep
from botservice.core.errors import StorageError
from botservice.devtools.turn_queries import read_ratings
from botservice.storage.message_references import full_text_of
from botservice.storage.tables.conditions import MESSAGE_IS_OF_A_PERSON
from botservice.storage.tables.conversations import contexts, deliveries, events, messages, steps, turn_figures, turns
from botservice.storage.tables.people import identities
from botservice.turns.listening_queries import GateDecision, read_decision


@dataclass(frozen=True, slots=True)
class TurnDetails:
    """The record of a turn with its steps.

    Attributes:
        figures: What it took, or None if no model was asked.
        received_at: When the last of its messages was stored, or None if none asked for it.
        decision: What was decided where nobody had addressed the bot, or None.
        before: The newest step before it in its conversation that sent a prompt.
    """

    row: Any
    figures: Any | None
    received_at: datetime | None
    answer: str | None
    deliveries: Sequence[Any]
    ratings: tuple[int, int]
    decision: GateDecision | None
    before: MemoryItem | None
    steps: Sequence[MemoryItem] = ()


def read_details(connection: Connection, context_id: int, turn_id: int) -> TurnDetails | None:
    """Return the record of a turn of a conversation, or None if there is no such turn."""
    query = select(turns).where(turns.c.id == turn_id, turns.c.context_id == context_id)
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    answers = select(messages.c.text).where(messages.c.answers_turn_id == turn_id)
    received = select(func.max(events.c.received_at)).where(events.c.turn_id == turn_id)
    sent = select(deliveries).where(deliveries.c.turn_id == turn_id).order_by(deliveries.c.id)
    return TurnDetails(
        row,
        connection.execute(select(turn_figures).where(turn_figures.c.turn_id == turn_id)).one_or_none(),
        connection.execute(received).scalar_one_or_none(),
        connection.execute(answers).scalar_one_or_none(),
        connection.execute(sent).all(),
        read_ratings(connection, [turn_id]).get(turn_id, (0, 0)),
        read_decision(connection, turn_id),
        _find_before(connection, context_id, turn_id),
        [each.item for each in read_steps(connection, context_id, turn_ids=[turn_id])],
    )


def find_context_of(connection: Connection, turn_id: int) -> int | None:
    """Return the conversation of a turn, or None if there is no such turn."""
    found: int | None = connection.execute(select(turns.c.context_id).where(turns.c.id == turn_id)).scalar_one_or_none()
    return found


def read_said(
    connection: Connection, context_id: int, message_ids: Iterable[int]
) -> Mapping[int, tuple[str, datetime, str]]:
    """Return the author, text and time of messages of a conversation, by their id."""
    columns = (messages.c[name] for name in ("id", "text", "said_by_others", "role", "author_name", "created_at"))
    query = select(*columns).where(messages.c.context_id + 0 == context_id, messages.c.id.in_(list(message_ids)))
    rows = connection.execute(query)
    return {row.id: (row.author_name or row.role, row.created_at, full_text_of(row)) for row in rows}


def _find_before(connection: Connection, context_id: int, turn_id: int) -> MemoryItem | None:
    first = select(func.min(steps.c.position)).where(steps.c.turn_id == turn_id)
    position = connection.execute(first).scalar_one_or_none()
    if position is None:
        return None
    last = (
        select(steps.c.turn_id)
        .where(steps.c.context_id == context_id, steps.c.position < position, steps.c.prompt.is_not(None))
        .order_by(steps.c.position.desc())
        .limit(1)
    )
    before = connection.execute(last).scalar_one_or_none()
    if before is None:
        return None
    items = [each.item for each in read_steps(connection, context_id, turn_ids=[before])]
    return next((each for each in reversed(items) if each.get_value("model_input_messages")), None)


# Conversations


def list_context_rows(
    connection: Connection, limit: int | None, having: str | None, after: tuple[int, int] | None
) -> Sequence[Any]:
    """Return conversations with their sizes, those with the newest messages first.

    Args:
        having: Only those one of whose keys has this value.
        after: Only those after one in the list, by its last_message_id and its id.
    """
    # Not counted yet, after a migration that was cut off: counted here.
    counted = select(func.count()).where(messages.c.context_id == contexts.c.id).scalar_subquery()
    last_at = select(messages.c.created_at).where(messages.c.id == contexts.c.last_message_id).scalar_subquery()
    query = (
        select(
            contexts.c.id,
            contexts.c.context_keys,
            func.coalesce(contexts.c.message_count, counted),
            last_at,
            contexts.c.last_message_id,
        )
        .order_by(contexts.c.last_message_id.desc(), contexts.c.id.desc())
        .limit(limit)
    )
    if after is not None:
        last_message_id, context_id = after
        is_older = (contexts.c.last_message_id < last_message_id) | (contexts.c.id < context_id)
        query = query.where(contexts.c.last_message_id <= last_message_id, is_older)
    if having is not None:  # a name of a key is seldom the same
        kept = type_coerce(contexts.c.context_keys, Text)
        # A string, or another JSON value, which has no quotes around it.
        written = [json.dumps(having), f":{having},", f":{having}}}"]
        query = query.where(or_(*(kept.contains(each, autoescape=True) for each in written)))
    return connection.execute(query).all()


def check_context(connection: Connection, context_id: int) -> Any:
    """Return the row of a context.

    Raises:
        StorageError: there is no such context.
    """
    row = connection.execute(select(contexts).where(contexts.c.id == context_id)).one_or_none()
    if row is None:
        raise StorageError(f"there is no context {context_id}: `botservice contexts` lists them")
    return row


def list_turn_rows(connection: Connection, context_id: int, turn_id: int | None) -> Sequence[Any]:
    """Return the turns of a conversation, or one of them, oldest first."""
    query = select(turns).where(turns.c.context_id == context_id).order_by(turns.c.id)
    return connection.execute(query if turn_id is None else query.where(turns.c.id == turn_id)).all()


def list_named(connection: Connection, context_ids: Sequence[int]) -> Sequence[Any]:
    """Return conversations with the name of the person they have alone."""
    query = (
        select(contexts.c.id, contexts.c.context_keys, contexts.c.metadata, contexts.c.is_shared, identities.c.name)
        .outerjoin(identities, identities.c.id == contexts.c.only_identity_id)
        .where(contexts.c.id.in_(context_ids))
    )
    return connection.execute(query).all()


def find_first_words(connection: Connection, context_id: int, length: int) -> str:
    """Return the beginning of what a person said first in a conversation."""
    written = func.coalesce(func.nullif(messages.c.own_text, ""), messages.c.text)  # without what stands in files
    query = select(func.substr(written, 1, length)).where(messages.c.context_id == context_id, MESSAGE_IS_OF_A_PERSON)
    return connection.execute(query.order_by(messages.c.position).limit(1)).scalar_one_or_none() or ""


def list_speakers(connection: Connection, context_id: int, limit: int) -> list[str]:
    """Return the names of those who wrote the newest messages of a conversation, the newest first."""
    query = (
        select(messages.c.author_name)
        .where(messages.c.context_id == context_id, MESSAGE_IS_OF_A_PERSON)
        .order_by(messages.c.position.desc())
        .limit(limit)
    )
    return list(dict.fromkeys(name for name in connection.execute(query).scalars() if name))


# Turns

_WRITTEN = messages.c["text", "own_text", "attachments", "said_by_others"]


def list_messages(connection: Connection, message_ids: Sequence[int]) -> Sequence[Any]:
    """Return messages with the columns that say what was written."""
    query = select(messages.c.context_id, messages.c.role, *_WRITTEN).where(messages.c.id.in_(message_ids))
    return connection.execute(query).all()


def list_questions(connection: Connection, turn_ids: Sequence[int]) -> Sequence[Any]:
    """Return the messages that turns answer, oldest first."""
    query = (
        select(events.c.turn_id, messages.c.id, *_WRITTEN)
        .join(messages, messages.c.event_id == events.c.id)
        .where(events.c.turn_id.in_(turn_ids))
        .order_by(messages.c.id)
    )
    return connection.execute(query).all()


def list_tasks(connection: Connection, turn_ids: Sequence[int]) -> Sequence[Any]:
    """Return the steps that say what turns were asked for by a program."""
    query = select(steps.c.turn_id, steps.c.data).where(steps.c.turn_id.in_(turn_ids))
    return connection.execute(query.where(steps.c.kind == TaskStep.__name__)).all()


def list_answers(connection: Connection, turn_ids: Sequence[int]) -> Sequence[Any]:
    """Return the texts of turns' answers."""
    query = select(messages.c.answers_turn_id, messages.c.text).where(messages.c.answers_turn_id.in_(turn_ids))
    return connection.execute(query).all()


def list_sent(connection: Connection, turn_ids: Sequence[int]) -> Sequence[Any]:
    """Return what was sent in turns, the newest first."""
    query = select(deliveries.c.turn_id, deliveries.c.payload).where(deliveries.c.turn_id.in_(turn_ids))
    return connection.execute(query.order_by(deliveries.c.id.desc())).all()


def count_steps(connection: Connection, turn_ids: Sequence[int]) -> dict[int, int]:
    """Return how many steps turns have, without those that failed."""
    query = (
        select(steps.c.turn_id, func.count().label("step_count"))
        .where(steps.c.turn_id.in_(turn_ids), steps.c.step_number.is_not(None), steps.c.kind != FailedStep.__name__)
        .group_by(steps.c.turn_id)
    )
    return {row.turn_id: row.step_count for row in connection.execute(query)}
