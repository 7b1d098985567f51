"""What is kept of one person, in all conversations: to give it out, and to delete it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, select

from botservice.errors import StorageError
from botservice.history import ChatHistory
from botservice.messages import Author, Role
from botservice.overview import forget_context
from botservice.storage import Storage
from botservice.storage.tables import contexts, messages


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was deleted of a person.

    Attributes:
        contexts: Conversations that went whole, because nobody else wrote in them.
        messages: Their messages in conversations with others, which stay.
    """

    contexts: int
    messages: int


async def export_person(storage: Storage, person: Author) -> dict[str, Any]:
    """Return every message that a person wrote, in all conversations, oldest first, as JSON values.

    Raises:
        StorageError: there is none.
    """
    query = (
        select(messages, contexts.c.context_keys)
        .join(contexts, contexts.c.id == messages.c.context_id)
        .where(_is_by(person))
        .order_by(messages.c.id)
    )
    rows = await storage.read(lambda connection: connection.execute(query).all())
    _check(person, rows)
    return {
        "person": {"platform": person.platform, "id": person.id},
        "messages": [
            {
                "id": row.id,
                "context": {"id": row.context_id, "keys": row.context_keys},
                "name": row.author_name,
                "text": row.text,
                "created_at": row.created_at.isoformat(),
                "attachments": [
                    {"name": file.get("name"), "mime_type": file.get("mime_type")} for file in row.attachments or ()
                ],
            }
            for row in rows
        ],
    }


async def forget_person(storage: Storage, person: Author) -> Forgotten:
    """Delete what a person wrote: whole conversations where nobody else wrote, their messages in the others.

    What the assistant said to others about it, and its steps there, stay: `forget` of that conversation deletes them.

    Raises:
        StorageError: there is no message of this person.
    """
    written = await storage.read(lambda connection: _read_written(connection, person))
    _check(person, list(written))
    gone, deleted = 0, 0
    for context_id, (ids, is_alone) in written.items():
        if is_alone:
            await forget_context(storage, context_id)
            gone += 1
        else:
            deleted += await ChatHistory(storage, context_id).delete_messages(ids)
    return Forgotten(gone, deleted)


def _read_written(connection: Connection, person: Author) -> dict[int, tuple[list[int], bool]]:
    """Return the person's message ids by context, and whether nobody else wrote there."""
    written: dict[int, list[int]] = {}
    for row in connection.execute(select(messages.c.id, messages.c.context_id).where(_is_by(person))):
        written.setdefault(row.context_id, []).append(row.id)
    others = (
        select(messages.c.context_id)
        .where(messages.c.context_id.in_(list(written)), messages.c.role == Role.USER.value, ~_is_by(person))
        .distinct()
    )
    shared = set(connection.execute(others).scalars())
    return {context_id: (ids, context_id not in shared) for context_id, ids in written.items()}


def _is_by(person: Author) -> ColumnElement[bool]:
    # Messages without an identity are somebody else's: null is no match, and no mismatch either.
    return and_(
        messages.c.author_platform.is_not_distinct_from(person.platform),
        messages.c.author_id.is_not_distinct_from(person.id),
    )


def _check(person: Author, found: Sequence[int] | Sequence[Row[Any]]) -> None:
    if not found:
        raise StorageError(f"there is no message of {person.platform}:{person.id}")
