"""The record of one turn beside its steps: its times, deliveries, usage and ratings."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, select

from botservice.conversation.items import MemoryItem
from botservice.conversation.step_records import read_steps
from botservice.devtools.turn_search import read_ratings
from botservice.storage.references import full_text_of
from botservice.storage.tables.conversations import deliveries, events, messages, steps, turn_figures, turns


@dataclass(frozen=True, slots=True)
class TurnDetails:
    """The record of a turn beside its steps.

    Attributes:
        figures: What it took, or None if no model was asked.
        received_at: When the last of its messages was stored, or None if none asked for it.
        before: The newest step before it in its conversation that sent a prompt.
    """

    row: Any
    figures: Any | None
    received_at: datetime | None
    answer: str | None
    deliveries: Sequence[Any]
    ratings: tuple[int, int]
    before: MemoryItem | None


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
        _find_before(connection, context_id, turn_id),
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
