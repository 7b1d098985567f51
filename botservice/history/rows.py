"""Messages and their rows: what is stored of a message, and how it is read from its row."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from botservice.core.message_references import Reference, keep_files, write_out
from botservice.core.messages import Attachment, Author, Message, Role, storable
from botservice.core.picture_size import read_picture_size
from botservice.llm.tokens import TokenCounter
from botservice.storage.blobs import read_blobs, store_blob
from botservice.storage.database import Connection, Row
from botservice.storage.message_references import NOTHING, decode_references


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message that is about to be stored.

    Attributes:
        event_id: The event that brought it; it is stored once for each.
        answers_turn_id: The turn that it answers; it is stored once for each.
        own_text: What its author says in their own words; None if that is all of text.
        references: What it holds of others.
        is_all_own: Whether its author wrote all of it themselves, files included.
    """

    role: Role
    text: str
    created_at: datetime
    author: Author | None = None
    attachments: tuple[Attachment, ...] = ()
    token_count: int | None = None
    token_encoding: str | None = None
    external_id: str | None = None
    event_id: int | None = None
    answers_turn_id: int | None = None
    own_text: str | None = None
    references: tuple[Reference, ...] = ()
    is_all_own: bool = False


_UNKNOWN_BYTES = "application/octet-stream"
_UNREADABLE = " (stored with a key that is lost: it cannot be read)"
_ROLES = {role.value: role for role in Role}


def read_messages(
    connection: Connection, context_id: int, rows: Sequence[Row[*tuple[Any, ...]]], counter: TokenCounter | None = None
) -> list[Message]:
    """Return rows as messages, with their attachments; counts of another encoding than counter's are made again."""
    wanted = {each["sha256"] for row in rows if row.attachments for each in row.attachments if "sha256" in each}
    data = read_blobs(connection, context_id, wanted) if wanted else {}
    return [read_message(row, data, counter) for row in rows]


class Bounds(NamedTuple):
    """Where the conversation before a message lies in its chat, and how far that has come.

    Attributes:
        after: The position of the fresh start.
        before: The message's position; None if it is not there.
        message_count: How many there are in all; None where it is not known yet.
        version: The deletion version.
        last: The last position.
    """

    after: int
    before: int | None
    message_count: int | None
    version: int
    last: int


def told_apart(people: Iterable[Author]) -> frozenset[tuple[str | None, ...]]:
    """Return what tells people apart: their accounts; their names where they have none."""
    return frozenset((each.platform, each.id, each.name if each.id is None else None) for each in people)


def store_attachment(connection: Connection, context_id: int, attachment: Attachment) -> dict[str, str | int | None]:
    """Keep an attachment's bytes and return what stands of it in its message; of a picture, also its size."""
    kept: dict[str, str | int | None] = {
        "mime_type": storable(attachment.mime_type),
        "name": attachment.name and storable(attachment.name),
    }
    if attachment.data is None:
        return {**kept, "url": storable(attachment.url or "")}
    kept["sha256"] = store_blob(connection, context_id, attachment.data)
    if size := read_picture_size(attachment.mime_type, attachment.data):
        kept["width"], kept["height"] = size
    return kept


def storable_author(author: Author | None) -> Author | None:
    """Return an author as the database takes one; None for one without a name or an account."""
    if author is None:
        return None
    platform, author_id, name = author.platform, author.id, author.name
    return _author(platform and storable(platform), author_id and storable(author_id), name and storable(name))


def _author(platform: str | None, author_id: str | None, name: str | None) -> Author | None:
    return Author(platform, author_id, name) if platform or author_id or name else None


def read_message(row: Row[*tuple[Any, ...]], data: Mapping[str, bytes] | None, counter: TokenCounter | None) -> Message:
    """Return a row as a message; data has the bytes of its files, or is None where nobody needs them."""
    number, _, role, text, files, platform, author_id, name, created_at, count, encoding, external_id, *more = row
    is_all_own, others, *_ = more
    references = () if others == NOTHING else decode_references(others)
    return Message(
        number,
        _ROLES[role],
        text,
        tuple(_read_attachment(each, data) for each in files) if files else (),
        Author(platform, author_id, name) if platform or author_id or name else None,
        created_at,
        count if counter is None or encoding == counter.name else counter.count(write_out(text, references)),
        external_id,
        references=references,
        is_all_own=is_all_own,
    )


def _read_attachment(kept: dict[str, str], data: Mapping[str, bytes] | None) -> Attachment:
    mime_type, name = kept["mime_type"], kept["name"]
    if "url" in kept:
        return Attachment(mime_type, name, url=kept["url"])
    if data is None:
        return Attachment(mime_type, name, data=b"")
    if kept["sha256"] not in data:  # its key is lost: no picture any more, but the chat knows that there was one
        return Attachment(_UNKNOWN_BYTES, f"{name or mime_type}{_UNREADABLE}", data=b"")
    return Attachment(mime_type, name, data=data[kept["sha256"]])


@dataclass(frozen=True, slots=True)
class NewWords:
    """What a message says from now on.

    Attributes:
        token_count: Tokens of the full text, in token_encoding; None for not counted.
        own_text: What its author says in their own words; None if that is all of text.
        references: What it holds of others.
        is_all_own: Whether its author wrote all of it themselves, files included.
    """

    text: str
    attachments: tuple[Attachment, ...]
    token_count: int | None
    token_encoding: str | None
    own_text: str | None = None
    references: tuple[Reference, ...] = ()
    is_all_own: bool = False


def without_erased(held: Sequence[Reference], new: NewWords) -> NewWords:
    """Return new words without what is forgotten: a platform repeats with an edit what the message replies to."""
    if not any(each.is_erased for each in held):
        return new
    files = keep_files(new.attachments, new.references, lambda _: False)
    kept = tuple(replace(each, file_count=0) for each in held)
    return replace(new, references=kept, attachments=tuple(files), token_count=None, token_encoding=None)
