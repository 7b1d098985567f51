"""How messages lie in their table: the queries that own it."""

import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    delete,
    func,
    literal_column,
    select,
    update,
)

from botservice.core.errors import StorageError
from botservice.core.messages import Attachment, Author, Message, Role, storable
from botservice.core.picture_size import read_picture_size
from botservice.core.references import Reference, write_out
from botservice.history.word_blocks import LARGEST_ID, forget_words
from botservice.llm.tokens import TokenCounter
from botservice.storage.blobs import read_blobs, store_blob
from botservice.storage.chunks import chunks
from botservice.storage.orphaned_files import loosen_files
from botservice.storage.references import NOTHING, decode_references, encode_references, insert_references
from botservice.storage.statements import of_each_database
from botservice.storage.tables.conditions import MESSAGE_IS_OF_A_PERSON
from botservice.storage.tables.conversations import contexts, messages


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


COLUMNS = (
    messages.c.id,
    messages.c.position,
    messages.c.role,
    messages.c.text,
    messages.c.attachments,
    messages.c.author_platform,
    messages.c.author_id,
    messages.c.author_name,
    messages.c.created_at,
    messages.c.token_count,
    messages.c.token_encoding,
    messages.c.external_id,
    messages.c.is_all_own,
    messages.c.said_by_others,
)

# Statements are made once: making one anew for every call takes SQLAlchemy longer than running it.
_OF_EVENT = select(*COLUMNS, messages.c.context_id).where(messages.c.event_id == bindparam("event"))
_OF_TURN = select(*COLUMNS, messages.c.context_id).where(messages.c.answers_turn_id == bindparam("turn"))
OF_CONTEXT = select(*COLUMNS).where(messages.c.context_id == bindparam("context"))
# A sum, so that no index is chosen by it: for ten ids SQLite would rather look through the whole context.
_OF_EVENTS = OF_CONTEXT.where(messages.c.event_id.in_(bindparam("events", expanding=True))).order_by(
    messages.c.position
)
BY_ID = select(*COLUMNS).where(
    messages.c.context_id + 0 == bindparam("context"), messages.c.id.in_(bindparam("ids", expanding=True))
)
NEWEST_FIRST = OF_CONTEXT.order_by(messages.c.position.desc()).limit(bindparam("size"))
NEWEST_FIRST_BEFORE = NEWEST_FIRST.where(messages.c.position < bindparam("before"))
LAST_OF_A_PERSON = OF_CONTEXT.where(MESSAGE_IS_OF_A_PERSON).order_by(messages.c.position.desc()).limit(1)
# Without what the service itself notes.
IS_SAID = messages.c.role.in_([literal_column(f"'{role.value}'") for role in (Role.USER, Role.ASSISTANT)])
_UNKNOWN_BYTES = "application/octet-stream"
_UNREADABLE = " (stored with a key that is lost: it cannot be read)"
_ROLES = {role.value: role for role in Role}
_LAST_SPEAKERS = 200  # messages of people: far more than a window shows
_SPEAKERS = (
    select(messages.c.author_platform, messages.c.author_id, messages.c.author_name)
    .where(messages.c.context_id == bindparam("context"), MESSAGE_IS_OF_A_PERSON)
    .order_by(messages.c.position.desc())
    .limit(_LAST_SPEAKERS)
    .subquery()
)
# A message without an author may be anybody's: it makes no second person.
_IS_SOMEBODY = _SPEAKERS.c.author_id.is_not(None) | _SPEAKERS.c.author_name.is_not(None)
_PEOPLE = select(_SPEAKERS).where(_IS_SOMEBODY).distinct()
_POSITION = select(messages.c.position).where(
    messages.c.context_id == bindparam("context"), messages.c.id == bindparam("message")
)
_TAKE_POSITION = (
    update(contexts).where(contexts.c.id == bindparam("context")).values(last_position=contexts.c.last_position + 1)
)
_GIVEN = (
    *("role", "text", "attachments", "author_platform", "author_id", "author_name", "created_at"),
    *("token_count", "token_encoding", "external_id", "event_id", "answers_turn_id", "own_text"),
    *("said_by_others", "is_all_own"),
)
# At the position that was taken just before, and nowhere where it is stored already or where its context is gone.
_insert = of_each_database(
    lambda insert: (
        insert(messages)
        .from_select(
            ["context_id", "position", *_GIVEN],
            select(
                contexts.c.id,
                contexts.c.last_position,
                *(bindparam(name, type_=messages.c[name].type) for name in _GIVEN),
            ).where(contexts.c.id == bindparam("context")),
        )
        .on_conflict_do_nothing()
        .returning(messages.c.id)
    )
)
_WINDOW = select(
    contexts.c.fresh_from,
    select(messages.c.position)
    .where(messages.c.context_id == bindparam("context"), messages.c.id == bindparam("message"))
    .scalar_subquery()
    .label("position"),
    contexts.c.message_count,
    contexts.c.deletion_version,
    contexts.c.last_position,
).where(contexts.c.id == bindparam("context"))
_BEGIN_AFRESH = (
    update(contexts).where(contexts.c.id == bindparam("context")).values(fresh_from=contexts.c.last_position)
)


def insert_message(connection: Connection, context_id: int, new: NewMessage) -> Message:
    """Store a message at the end of its context and return it; one that is stored already is returned as it is."""
    text = storable(new.text)
    author = _storable_author(new.author)
    created_at = new.created_at.astimezone(UTC)
    held = encode_references(new.references) if new.references else NOTHING
    values = {
        "context": context_id,
        "role": new.role.value,
        "text": text,
        "attachments": [store_attachment(connection, context_id, each) for each in new.attachments] or None,
        "author_platform": author and author.platform,
        "author_id": author and author.id,
        "author_name": author and author.name,
        "created_at": created_at,
        "token_count": new.token_count,
        "token_encoding": new.token_encoding,
        "external_id": new.external_id,
        "event_id": new.event_id,
        "answers_turn_id": new.answers_turn_id,
        "own_text": None if new.own_text is None else storable(new.own_text),
        "said_by_others": held,
        "is_all_own": new.is_all_own,
    }
    connection.execute(_TAKE_POSITION, {"context": context_id})
    message_id = connection.execute(_insert(connection), values).scalar_one_or_none()
    if message_id is None:
        return _find_stored(connection, context_id, new)
    if new.references:
        insert_references(connection, context_id, message_id, new.references)
    return Message(
        message_id,
        new.role,
        text,
        new.attachments,
        author,
        created_at,
        new.token_count,
        new.external_id,
        references=decode_references(held) if new.references else (),
        is_all_own=new.is_all_own,
    )


def _find_stored(connection: Connection, context_id: int, new: NewMessage) -> Message:
    row = None
    if new.event_id is not None:
        row = connection.execute(_OF_EVENT, {"event": new.event_id}).one_or_none()
    elif new.answers_turn_id is not None:
        row = connection.execute(_OF_TURN, {"turn": new.answers_turn_id}).one_or_none()
    if row is None:
        raise StorageError(f"context {context_id} was deleted: get it anew with AgentContext.get_or_create")
    return read_messages(connection, row.context_id, [row])[0]


def find_answer(connection: Connection, turn_id: int) -> Message | None:
    """Return the message of a turn, with its attachments; None if it was deleted."""
    row = connection.execute(_OF_TURN, {"turn": turn_id}).one_or_none()
    return None if row is None else read_messages(connection, row.context_id, [row])[0]


def find_message(connection: Connection, context_id: int, message_id: int) -> Message | None:
    """Return a message of a context, with its attachments; None if it was deleted."""
    rows = connection.execute(BY_ID, {"context": context_id, "ids": [message_id]}).all()
    return read_messages(connection, context_id, rows)[0] if rows else None


def select_messages(context_id: int) -> Select[Any]:
    """Return the query of a context's messages, without an order."""
    return select(*COLUMNS).where(messages.c.context_id == context_id)


def read_messages(
    connection: Connection, context_id: int, rows: Sequence[Row[*tuple[Any, ...]]], counter: TokenCounter | None = None
) -> list[Message]:
    """Return rows as messages, with their attachments; counts of another encoding than counter's are made again."""
    wanted = {each["sha256"] for row in rows if row.attachments for each in row.attachments if "sha256" in each}
    data = read_blobs(connection, context_id, wanted) if wanted else {}
    return [read_message(row, data, counter) for row in rows]


def read_messages_of_events(connection: Connection, context_id: int, event_ids: Sequence[int]) -> list[Message]:
    """Return the messages that events brought, in the order of the history."""
    rows = connection.execute(_OF_EVENTS, {"context": context_id, "events": event_ids}).all()
    return read_messages(connection, context_id, rows)


def read_shown(connection: Connection, context_id: int, ids: Collection[int]) -> dict[int, Message]:
    """Return messages by their ids; their files are named alone, without their bytes."""
    found: dict[int, Message] = {}
    for chunk in chunks(ids):
        rows = connection.execute(BY_ID, {"context": context_id, "ids": chunk}).all()
        found |= {row.id: read_message(row, None, None) for row in rows}
    return found


def read_period(
    connection: Connection, context_id: int, seconds: tuple[float, float] | None, limit: int, counter: TokenCounter
) -> list[Message]:
    """Return the newest messages that people and the assistant said in a time, newest first.

    Args:
        seconds: From when (included) until when (not included), since the epoch; None for at any time.
    """
    query = select_messages(context_id).where(messages.c.role.in_([Role.USER.value, Role.ASSISTANT.value]))
    since, until = seconds or (-math.inf, math.inf)
    if math.isfinite(since):
        query = query.where(messages.c.created_at >= datetime.fromtimestamp(since, UTC))
    if math.isfinite(until):
        query = query.where(messages.c.created_at < datetime.fromtimestamp(until, UTC))
    rows = connection.execute(query.order_by(messages.c.position.desc()).limit(limit)).all()
    return read_messages(connection, context_id, rows, counter)


def find_position(connection: Connection, context_id: int, message_id: int | None) -> int | None:
    """Return where a message stands in its context; None if it is not there."""
    sought = {"context": context_id, "message": message_id}
    position: int | None = connection.execute(_POSITION, sought).scalar_one_or_none()
    return position


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


def find_window(connection: Connection, context_id: int, message_id: int | None) -> Bounds:
    """Return between which positions the conversation before a message lies."""
    sought = {"context": context_id, "message": message_id}
    row = connection.execute(_WINDOW, sought).one_or_none()
    return Bounds(0, None, None, 0, 0) if row is None else Bounds(*row)


def find_people(connection: Connection, context_id: int) -> frozenset[Author]:
    """Return the people who have lately spoken in a context; one who has changed their name, under each.

    It looks back further than any window, so that what a window looks like seldom changes with who speaks.
    """
    return frozenset(Author(*row) for row in connection.execute(_PEOPLE, {"context": context_id}).all())


def told_apart(people: Iterable[Author]) -> frozenset[tuple[str | None, ...]]:
    """Return what tells people apart: their accounts; their names where they have none."""
    return frozenset((each.platform, each.id, each.name if each.id is None else None) for each in people)


def is_group(connection: Connection, context_id: int) -> bool:
    """Return whether more than one person has lately spoken in a context."""
    return len(told_apart(find_people(connection, context_id))) > 1


def begin_afresh(connection: Connection, context_id: int) -> None:
    """Begin a fresh conversation: what was said before is found by searching, and not shown unasked."""
    connection.execute(_BEGIN_AFRESH, {"context": context_id})


def delete_rows(connection: Connection, context_id: int, message_ids: Iterable[int] | None = None) -> int:
    """Delete messages of a context, all of them by default; `sweep_files` sees to their files.

    Returns how many messages there were.
    """
    count = 0
    last_said = -1
    digests: set[str] = set()
    message_ids = None if message_ids is None else list(message_ids)
    forget_words(connection, context_id, message_ids)
    for condition in _conditions(context_id, message_ids):
        kept = select(messages.c.attachments).where(condition, messages.c.attachments.is_not(None))
        for attachments in connection.execute(kept).scalars():
            digests.update(each["sha256"] for each in attachments if "sha256" in each)
        said = select(func.max(messages.c.position)).where(condition, MESSAGE_IS_OF_A_PERSON)
        last_said = max(last_said, connection.execute(said).scalar() or -1)
        count += connection.execute(delete(messages).where(condition)).rowcount
    if count:
        change = update(contexts).where(contexts.c.id == context_id)
        connection.execute(change.values(deletion_version=contexts.c.deletion_version + 1))
        if message_ids is not None:  # what answered them may stay, and whose words they were is not known any more
            is_later = func.coalesce(contexts.c.untrusted_at, -1) < last_said
            connection.execute(change.where(is_later).values(untrusted_at=last_said))
    loosen_files(connection, context_id, digests)
    return count


def _conditions(context_id: int, message_ids: Iterable[int] | None) -> Iterator[ColumnElement[bool]]:
    of_context = messages.c.context_id == context_id
    if message_ids is None:
        yield of_context
        return
    for chunk in chunks({number for number in message_ids if 0 < number <= LARGEST_ID}):
        yield and_(messages.c.context_id + 0 == context_id, messages.c.id.in_(chunk))


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


def _storable_author(author: Author | None) -> Author | None:
    return author and _author(*(value and storable(value) for value in (author.platform, author.id, author.name)))


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
