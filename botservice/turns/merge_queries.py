"""Every statement that makes two conversations one: what the newer one has goes on the end of the older one."""

from typing import Any, Final

from sqlalchemy import delete, func, select, update

from botservice.storage.database import Connection
from botservice.storage.tables.columns import metadata
from botservice.storage.tables.conditions import CALL_IS_OPEN
from botservice.storage.tables.conversations import (
    blobs,
    contexts,
    deliveries,
    messages,
    refused_forms,
    steps,
    word_blocks,
)
from botservice.storage.tables.knowledge import notes, observed, observer_reservations, refused_notes
from botservice.storage.tables.services import refused_messages
from botservice.storage.tables.waiting import pending_calls

# What is not simply moved: positions go on, files are there once, and blocks of words are made again.
# So are notes, of which each conversation counts its own: what is moved is read once more. Which forms a platform
# refused, and which messages a model, is found out again.
_SPECIAL: Final = (
    *(contexts, messages, steps, blobs, word_blocks),
    *(notes, observed, observer_reservations, refused_notes, refused_forms, refused_messages),
)
_OTHERS: Final = [
    table
    for table in metadata.sorted_tables
    if table not in _SPECIAL and any(each.column is contexts.c.id for each in table.foreign_keys)
]


def forget_places(connection: Connection, context_id: int) -> None:
    """Let decided calls be announced again: the ids of the messages that ask about them have changed."""
    asked = select(pending_calls.c.delivery_id).where(pending_calls.c.context_id == context_id, CALL_IS_OPEN)
    connection.execute(update(deliveries).where(deliveries.c.id.in_(asked)).values(external_id=None))


def merge_contexts(connection: Connection, older: int, newer: int) -> None:
    """Move everything of a context to the end of another, and delete it."""
    query = select(contexts.c.id, contexts.c.last_position, contexts.c.fresh_from, contexts.c.metadata)
    rows = {row.id: row for row in connection.execute(query.where(contexts.c.id.in_([older, newer])).with_for_update())}
    first, second = rows[older], rows[newer]
    offset = first.last_position
    moved: dict[Any, Any] = {"context_id": older}
    position = {"position": messages.c.position + offset}
    connection.execute(update(messages).where(messages.c.context_id == newer).values({**moved, **position}))
    last_step = select(func.coalesce(func.max(steps.c.position), 0.0)).where(steps.c.context_id == older)
    after = {"position": steps.c.position + connection.execute(last_step).scalar_one()}
    connection.execute(update(steps).where(steps.c.context_id == newer).values({**moved, **after}))
    known = select(blobs.c.sha256).where(blobs.c.context_id == older)
    connection.execute(
        update(blobs).where(blobs.c.context_id == newer, blobs.c.sha256.not_in(known.scalar_subquery())).values(moved)
    )
    connection.execute(delete(blobs).where(blobs.c.context_id == newer))
    refused = select(refused_notes.c.digest).where(refused_notes.c.context_id == older).scalar_subquery()
    is_new = (refused_notes.c.context_id == newer) & refused_notes.c.digest.not_in(refused)
    connection.execute(update(refused_notes).where(is_new).values(moved))
    for table in _OTHERS:
        connection.execute(update(table).where(table.c.context_id == newer).values(moved))
    connection.execute(delete(contexts).where(contexts.c.id == newer))
    values = {
        "last_position": offset + second.last_position,
        "deletion_version": contexts.c.deletion_version + 1,
        "fresh_from": offset + second.fresh_from if second.fresh_from else first.fresh_from,
        "untrusted_at": offset + second.last_position,  # whose words came when is not looked into
        "metadata": {**second.metadata, **first.metadata},
    }
    connection.execute(update(contexts).where(contexts.c.id == older).values(values))
