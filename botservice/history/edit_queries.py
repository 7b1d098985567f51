"""Every statement that edits or deletes stored messages."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Boolean, ColumnElement, and_, bindparam, delete, func, or_, select, update

from botservice.core.messages import Role, storable
from botservice.history.rows import NewWords, store_attachment, without_erased
from botservice.history.search_queries import forget_words
from botservice.storage.blobs import loosen_files
from botservice.storage.database import Connection
from botservice.storage.message_references import decode_references, keep_references, storable_references
from botservice.storage.statements import LARGEST_ID, chunks
from botservice.storage.tables.conditions import MESSAGE_IS_EDITED, MESSAGE_IS_EXTERNAL, MESSAGE_IS_OF_A_PERSON
from botservice.storage.tables.conversations import contexts, messages, vectors

_OF_PEOPLE = select(
    messages.c.id, messages.c.external_id, messages.c.text, messages.c.attachments, messages.c.said_by_others
).where(
    MESSAGE_IS_EXTERNAL,
    MESSAGE_IS_OF_A_PERSON,
    messages.c.context_id == bindparam("context"),
    messages.c.external_id.in_(bindparam("external_ids", expanding=True)),
)
_NOTE_CHANGE = (
    update(contexts)
    .where(contexts.c.id == bindparam("context"))
    .values(deletion_version=contexts.c.deletion_version + 1)
)
# New words that are not wholly those of the only person in a chat count as read from strangers now.
_NOTE_UNTRUSTED = (
    update(contexts)
    .where(contexts.c.id == bindparam("context"), or_(contexts.c.is_shared, bindparam("holds_others", type_=Boolean)))
    .values(untrusted_at=contexts.c.last_position)
)
_DELETED = messages.c["role", "position", "attachments"]
_FORGET_MEANING = delete(vectors).where(vectors.c.message_id == bindparam("message"))
_EDITED = (
    select(messages.c.id, messages.c.edited_at)
    .where(and_(MESSAGE_IS_EDITED, messages.c.edited_at >= bindparam("since")))
    .order_by(messages.c.edited_at)
)


def delete_rows(connection: Connection, context_id: int, message_ids: Iterable[int] | None = None) -> list[Any]:
    """Delete messages of a context, all of them by default; `sweep_files` sees to their files.

    Returns a row for each: its role, its position and its attachments.
    """
    message_ids = None if message_ids is None else list(message_ids)
    forget_words(connection, context_id)
    deleted = [
        row
        for condition in _conditions(context_id, message_ids)
        for row in connection.execute(delete(messages).where(condition).returning(*_DELETED))
    ]
    if deleted:
        change = update(contexts).where(contexts.c.id == context_id)
        connection.execute(change.values(deletion_version=contexts.c.deletion_version + 1))
        if message_ids is not None:  # what answered them may stay, and whose words they were is not known any more
            last_said = max((row.position for row in deleted if row.role == Role.USER.value), default=-1)
            is_later = func.coalesce(contexts.c.untrusted_at, -1) < last_said
            connection.execute(change.where(is_later).values(untrusted_at=last_said))
    digests = {each["sha256"] for row in deleted for each in row.attachments or () if "sha256" in each}
    loosen_files(connection, context_id, digests)
    return deleted


def _conditions(context_id: int, message_ids: Iterable[int] | None) -> Iterator[ColumnElement[bool]]:
    of_context = messages.c.context_id == context_id
    if message_ids is None:
        yield of_context
        return
    for chunk in chunks({number for number in message_ids if 0 < number <= LARGEST_ID}):
        yield and_(messages.c.context_id + 0 == context_id, messages.c.id.in_(chunk))


def find_stored(connection: Connection, context_id: int, external_ids: Collection[str]) -> set[str]:
    """Return those of a platform's message ids that people's messages in a context have."""
    sought = {"context": context_id, "external_ids": list(external_ids)}
    return {row.external_id for row in connection.execute(_OF_PEOPLE, sought)}


def change_message(connection: Connection, context_id: int, external_id: str, new: NewWords, now: datetime) -> bool:
    """Have a person's message say something else; return whether that is anything new."""
    rows = _find_rows(connection, context_id, external_id)
    changed = [_change_row(connection, context_id, row, new, now) for row in rows]
    if any(changed):
        forget_words(connection, context_id)
        connection.execute(_NOTE_CHANGE, {"context": context_id})
        connection.execute(_NOTE_UNTRUSTED, {"context": context_id, "holds_others": not new.is_all_own})
    return any(changed)


def delete_message(connection: Connection, context_id: int, external_id: str) -> bool:
    """Delete a person's message by the platform's id; return whether it was there."""
    found = [row.id for row in _find_rows(connection, context_id, external_id)]
    return bool(delete_rows(connection, context_id, found))


def find_edited(connection: Connection, since: datetime) -> list[tuple[int, datetime]]:
    """Return the messages that were changed since then, in all contexts, with the time of the change, in its order."""
    return [(row.id, row.edited_at) for row in connection.execute(_EDITED, {"since": since})]


def _find_rows(connection: Connection, context_id: int, external_id: str) -> Sequence[Any]:
    return connection.execute(_OF_PEOPLE, {"context": context_id, "external_ids": [external_id]}).all()


def _change_row(connection: Connection, context_id: int, row: Any, new: NewWords, now: datetime) -> bool:
    held = decode_references(row.said_by_others)
    new = without_erased(held, new)
    said = storable(new.text)
    files = [store_attachment(connection, context_id, each) for each in new.attachments] or None
    references = storable_references(new.references)
    if said == row.text and files == row.attachments and references == held:
        return False
    values = {
        "text": said,
        "attachments": files,
        "token_count": new.token_count,
        "token_encoding": new.token_encoding,
        "edited_at": now,
        "own_text": None if new.own_text is None else storable(new.own_text),
        "is_all_own": new.is_all_own,
    }
    keep_references(connection, context_id, row.id, references, **values)
    connection.execute(_FORGET_MEANING, {"message": row.id})
    gone = {each["sha256"] for each in row.attachments or () if "sha256" in each}
    loosen_files(connection, context_id, gone - {each.get("sha256") for each in files or ()})
    return True
