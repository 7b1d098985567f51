"""The quotes and forwards in messages: as JSON in their rows, and in a table that finds them by their authors."""

import json
from collections.abc import Collection, Sequence
from typing import Any, Final

from sqlalchemy import Connection, Row, bindparam, delete, insert, select, update

from botservice.core.message_references import Reference, ReferenceKind, write_out
from botservice.core.messages import Author, storable
from botservice.storage.statements import select_among
from botservice.storage.tables.conversations import message_references, messages

NOTHING: Final = "[]"  # what stands in the row of a message that holds nothing of others

_INSERT = insert(message_references)
_DELETE = delete(message_references).where(message_references.c.message_id == bindparam("message"))
_KEEP = update(messages).where(messages.c.id == bindparam("row"))
_OF_MESSAGES = select(messages.c.id, messages.c.position, messages.c.said_by_others)


def encode_references(references: Sequence[Reference]) -> str:
    """Return references as they are kept in a row."""
    kept = [{name: value for name, value in _values(each).items() if value} for each in references]
    return json.dumps(kept, separators=(",", ":")) if kept else NOTHING


def decode_references(kept: str | None) -> tuple[Reference, ...]:
    """Return the references of a row; none for one of an older version."""
    return () if kept is None or kept == NOTHING else tuple(map(_read, json.loads(kept)))


def storable_references(references: Sequence[Reference]) -> tuple[Reference, ...]:
    """Return references as they will be read again."""
    return decode_references(encode_references(references))


def full_text_of(row: Row[*tuple[Any, ...]]) -> str:
    """Return the text of a row with what it holds of others, as a model reads it."""
    text: str = row.text
    return text if row.said_by_others == NOTHING else write_out(text, decode_references(row.said_by_others))


def written_text_of(row: Row[*tuple[Any, ...]]) -> str:
    """Return the text of a row for people: next to words, files have their names alone."""
    if not row.own_text or not row.attachments:
        return full_text_of(row)
    names = [each["name"] for each in row.attachments if each.get("name")]
    text = " ".join([row.own_text, *(f"[{name}]" for name in names)])
    return text if row.said_by_others == NOTHING else write_out(text, decode_references(row.said_by_others))


def index_references(connection: Connection, context_id: int, message_id: int, references: Sequence[Reference]) -> None:
    """Index the authors whose words a message repeats, in place of those indexed before."""
    connection.execute(_DELETE, {"message": message_id})
    insert_references(connection, context_id, message_id, references)


def insert_references(
    connection: Connection, context_id: int, message_id: int, references: Sequence[Reference]
) -> None:
    """Index the authors whose words a new message repeats."""
    rows = [
        {
            "context_id": context_id,
            "message_id": message_id,
            "platform": None if each.author is None else each.author.platform,
            "person_id": None if each.author is None else each.author.id,
            "external_id": each.external_id,
        }
        for each in references
        if not each.is_erased
    ]
    if rows:
        connection.execute(_INSERT, rows)


def keep_references(
    connection: Connection, context_id: int, message_id: int, references: Sequence[Reference], **others: Any
) -> None:
    """Have a stored message hold this of others.

    Args:
        others: What else of its row changes.
    """
    values = {"said_by_others": encode_references(references), **others}
    connection.execute(_KEEP.values(values), {"row": message_id})
    index_references(connection, context_id, message_id, references)


def find_contexts_repeating(connection: Connection, authors: Collection[Author], *, after: int = 0) -> set[int]:
    """Return the contexts with messages that repeat one of these authors.

    Args:
        after: Behind which row of what is held of others.
    """
    found: set[int] = set()
    for author in authors:
        query = select(message_references.c.context_id).where(
            message_references.c.platform == author.platform, message_references.c.person_id == author.id
        )
        later = query.where(message_references.c.id > after) if after > 0 else query
        found.update(connection.execute(later.distinct()).scalars())
    return found


def read_references(connection: Connection, context_id: int) -> list[tuple[int, int, tuple[Reference, ...]]]:
    """Return the id and the position of each message of a context that repeats others, with what it repeats."""
    holding = select(message_references.c.message_id).where(message_references.c.context_id == context_id)
    rows = select_among(connection, _OF_MESSAGES, messages.c.id, connection.execute(holding).scalars())
    return [(row.id, row.position, decode_references(row.said_by_others)) for row in rows]


def _values(reference: Reference) -> dict[str, Any]:
    author = reference.author or Author()
    return {
        "kind": reference.kind.value,
        "platform": author.platform and storable(author.platform),
        "id": author.id and storable(author.id),
        "name": author.name and storable(author.name),
        "text": storable(reference.text),
        "external_id": reference.external_id and storable(reference.external_id),
        "is_of_assistant": reference.is_of_assistant,
        "file_count": reference.file_count,
    }


def _read(kept: dict[str, Any]) -> Reference:
    author = Author(kept.get("platform"), kept.get("id"), kept.get("name"))
    return Reference(
        ReferenceKind(kept["kind"]),
        None if author == Author() else author,
        kept.get("text", ""),
        kept.get("external_id"),
        kept.get("is_of_assistant", False),
        kept.get("file_count", 0),
    )
