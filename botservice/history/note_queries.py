"""Every statement of what is noted of a conversation."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import bindparam, delete, insert, select, update

from botservice.core.quoting import digest_of_words
from botservice.history.notes import Note, StoredNote
from botservice.storage.database import Connection
from botservice.storage.statements import of_each_database
from botservice.storage.tables.conversations import contexts
from botservice.storage.tables.knowledge import notes, observed, refused_notes

_OF_CONTEXT: Final = (
    select(
        notes.c.text,
        notes.c.at,
        notes.c.message_ids,
        notes.c.number,
        notes.c.first_position,
        notes.c.last_position,
        notes.c.tokens,
        notes.c.id,
        notes.c.span,
    )
    .where(notes.c.context_id == bindparam("context"))
    .order_by(notes.c.last_position, notes.c.number)
)
_SHOWN: Final = _OF_CONTEXT.where(
    notes.c.first_position
    > select(contexts.c.fresh_from).where(contexts.c.id == bindparam("context")).scalar_subquery()
)
ARE_SHOWN: Final = _SHOWN.exists()
"""Whether notes of a context stand in its prompts."""

_refuse = of_each_database(lambda insert: insert(refused_notes).on_conflict_do_nothing())


def read_notes(connection: Connection, context_id: int, *, is_shown: bool = False) -> list[StoredNote]:
    """Return the notes of a conversation, oldest first.

    Args:
        is_shown: Only those that stand in prompts: of what was said since it last began afresh.
    """
    rows = connection.execute(_SHOWN if is_shown else _OF_CONTEXT, {"context": context_id}).all()
    return [_read(row) for row in rows]


def insert_notes(
    connection: Connection, context_id: int, new: Sequence[StoredNote], *, replaced: Sequence[StoredNote] = ()
) -> list[Note]:
    """Store notes with the next numbers of their conversation, and return them as they are kept.

    Args:
        replaced: Delete these: what they say stands in the new ones.
    """
    if replaced:
        connection.execute(delete(notes).where(notes.c.id.in_([each.id for each in replaced])))
    taken = update(observed).where(observed.c.context_id == context_id)
    taken = taken.values(last_number=observed.c.last_number + len(new)).returning(observed.c.last_number)
    first = int(connection.execute(taken).scalar_one()) - len(new) + 1
    kept = [Note(each.note.text, each.note.at, each.note.message_ids, first + n) for n, each in enumerate(new)]
    values = [
        {
            "context_id": context_id,
            "number": note.number,
            "text": note.text,
            "at": note.at,
            "message_ids": list(note.message_ids),
            "first_position": each.first,
            "last_position": each.last,
            "span": each.span,
            "tokens": each.tokens,
        }
        for note, each in zip(kept, new, strict=True)
    ]
    if values:
        connection.execute(insert(notes), values)
    return kept


def delete_note(connection: Connection, context_id: int, number: int) -> str | None:
    """Delete a note for good, and return its text; None if there is none of this number.

    Its words are remembered as a digest, and a reading that is under way writes nothing: it does not come back.
    """
    gone = delete(notes).where(notes.c.context_id == context_id, notes.c.number == number).returning(notes.c.text)
    text: str | None = connection.execute(gone).scalar_one_or_none()
    if text is not None:
        refuse = _refuse(connection)
        connection.execute(refuse, {"context_id": context_id, "digest": digest_of_words(text)})
        changed = update(observed).where(observed.c.context_id == context_id)
        connection.execute(changed.values(version=observed.c.version + 1))
    return text


def refused_digests(connection: Connection, context_id: int) -> set[str]:
    """Return the digests of the notes that people have deleted in a conversation."""
    query = select(refused_notes.c.digest).where(refused_notes.c.context_id == context_id)
    return set(connection.execute(query).scalars())


def _read(row: Any) -> StoredNote:
    note = Note(row.text, row.at, tuple(row.message_ids), row.number)
    return StoredNote(note, row.first_position, row.last_position, row.tokens, row.id, row.span)
