"""The statements of knowledge_sources, knowledge_documents and knowledge_passages."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from sqlalchemy import bindparam, delete, func, insert, or_, select, update
from sqlalchemy.exc import IntegrityError

from botservice.core.errors import KnowledgeError
from botservice.core.messages import storable
from botservice.knowledge.passages import Passage, digest_of
from botservice.storage.database import Connection
from botservice.storage.statements import chunks, select_among
from botservice.storage.tables.knowledge import knowledge_documents, knowledge_passages, knowledge_sources

SENT: Final = "chat"  # the location of a file that was sent to the bot


@dataclass(frozen=True, slots=True)
class KnowledgeSource:
    """A folder, a file or a web page that was added.

    Attributes:
        location: Its path on this machine, or its address.
        readers: Who may read it: "all", or chats; none for owners alone.
        version: Counts the changes of its passages.
        read_at: When it was read last; None for never.
    """

    id: int
    name: str
    location: str
    readers: tuple[str, ...]
    version: int
    read_at: datetime | None


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as it is stored.

    Attributes:
        stamp: Its size and time when it was read.
        problem: Why it could not be read, or None.
    """

    id: int
    path: str
    title: str
    stamp: str
    digest: bytes
    problem: str | None


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """A passage with the document that it is from."""

    id: int
    source: str
    path: str
    title: str
    heading: str
    page: int | None
    text: str


@dataclass(frozen=True, slots=True)
class SourceCounts:
    """How much of a source is stored.

    Attributes:
        unread: How many documents could not be read.
    """

    documents: int
    unread: int
    passages: int


_SOURCES = select(*knowledge_sources.c["id", "name", "location", "readers", "version", "read_at"])
_PASSAGES = (
    select(
        knowledge_passages.c.id,
        knowledge_sources.c.name,
        *knowledge_documents.c["path", "title"],
        *knowledge_passages.c["heading", "page", "text"],
    )
    .join(knowledge_documents, knowledge_documents.c.id == knowledge_passages.c.document_id)
    .join(knowledge_sources)
)


def list_sources(connection: Connection) -> list[KnowledgeSource]:
    """Return every source, in the order in which they were added."""
    return [
        KnowledgeSource(row.id, row.name, row.location, tuple(row.readers), row.version, row.read_at)
        for row in connection.execute(_SOURCES.order_by(knowledge_sources.c.id))
    ]


def find_source(connection: Connection, name: str) -> KnowledgeSource | None:
    """Return the source of a name, or None."""
    return next((each for each in list_sources(connection) if each.name == name), None)


def put_source(
    connection: Connection, name: str, location: str, readers: Collection[str], now: datetime
) -> KnowledgeSource:
    """Add a source, or change the name and the readers of the one at that location.

    Raises:
        KnowledgeError: another location has the name.
    """
    known = list_sources(connection)
    named = next((each for each in known if each.name == name), None)
    if named is not None and named.location != location:
        raise KnowledgeError(f"{name} is {named.location}: give another --name, or remove it first")
    here = named or next((each for each in known if each.location == location != SENT), None)
    if here is None:
        values = {"name": name, "location": location, "readers": list(readers), "added_at": now}
        savepoint = connection.begin_nested()
        try:
            with savepoint:
                connection.execute(insert(knowledge_sources).values(values))
        except IntegrityError:  # another process added it at the same moment
            return put_source(connection, name, location, readers, now)
    elif (here.name, here.readers) == (name, tuple(readers)):
        return here
    else:
        _change_sources(connection, [here.id], name=name, readers=list(readers))
    found = find_source(connection, name)
    assert found is not None, "it was put there"  # noqa: S101 - an invariant
    return found


def delete_source(connection: Connection, name: str) -> bool:
    """Delete a source with its documents, passages and vectors; return whether there was one."""
    return connection.execute(delete(knowledge_sources).where(knowledge_sources.c.name == name)).rowcount > 0


def move_reader(connection: Connection, old: str, new: str) -> None:
    """Let a chat read under its new address what it could read under its old one."""
    for source in list_sources(connection):
        if old in source.readers:
            readers = list(dict.fromkeys(new if each == old else each for each in source.readers))
            _change_sources(connection, [source.id], readers=readers)


def list_documents(connection: Connection, source_id: int) -> list[StoredDocument]:
    """Return the documents of a source."""
    columns = knowledge_documents.c["id", "path", "title", "stamp", "digest", "problem"]
    query = select(*columns).where(knowledge_documents.c.source_id == source_id)
    return [StoredDocument(*row) for row in connection.execute(query.order_by(knowledge_documents.c.path))]


def put_document(
    connection: Connection,
    source_id: int,
    path: str,
    *,
    title: str,
    stamp: str,
    digest: bytes,
    found: Sequence[Passage],
    problem: str | None = None,
) -> None:
    """Store a document as it is now.

    A passage whose heading and words are as they were keeps its row, and so its vector.

    Raises:
        KnowledgeError: the source was removed meanwhile.
    """
    # Two processes that read one source at once wait for each other here.
    locked = select(knowledge_sources.c.id).where(knowledge_sources.c.id == source_id).with_for_update()
    if connection.execute(locked).scalar_one_or_none() is None:
        raise KnowledgeError(f"{path}: its source was removed while it was read")
    values = {"title": storable(title), "stamp": stamp, "digest": digest, "problem": problem}
    here = (knowledge_documents.c.source_id == source_id, knowledge_documents.c.path == path)
    number = connection.execute(select(knowledge_documents.c.id).where(*here)).scalar_one_or_none()
    if number is None:
        row = insert(knowledge_documents).values(source_id=source_id, path=path, **values)
        number = connection.execute(row.returning(knowledge_documents.c.id)).scalar_one()
    else:
        connection.execute(update(knowledge_documents).where(knowledge_documents.c.id == number).values(values))
    _put_passages(connection, number, found)
    _change_sources(connection, [source_id])


def note_stamp(connection: Connection, document_id: int, stamp: str) -> None:
    """Store that a document was touched and reads as before."""
    connection.execute(update(knowledge_documents).where(knowledge_documents.c.id == document_id).values(stamp=stamp))


def _put_passages(connection: Connection, document_id: int, found: Sequence[Passage]) -> None:
    query = select(*knowledge_passages.c["digest", "id"]).where(knowledge_passages.c.document_id == document_id)
    known: dict[bytes, list[int]] = {}
    for digest, number in connection.execute(query):
        known.setdefault(bytes(digest), []).append(number)
    new, kept = [], []
    for position, passage in enumerate(found):
        numbers = known.get(digest_of(passage))
        if numbers:
            kept.append({"number": numbers.pop(), "position": position, "page": passage.page})
            continue
        new.append(
            {
                "document_id": document_id,
                "position": position,
                "page": passage.page,
                "heading": storable(passage.heading),
                "text": storable(passage.text),
                "digest": digest_of(passage),
            }
        )
    gone = [number for numbers in known.values() for number in numbers]
    for chunk in chunks(gone):
        connection.execute(delete(knowledge_passages).where(knowledge_passages.c.id.in_(chunk)))
    if kept:
        moved = update(knowledge_passages).where(knowledge_passages.c.id == bindparam("number"))
        connection.execute(moved.values(position=bindparam("position"), page=bindparam("page")), kept)
    if new:
        connection.execute(insert(knowledge_passages), new)


def delete_documents(connection: Connection, source_id: int, ids: Collection[int]) -> None:
    """Delete documents of a source."""
    for chunk in chunks(ids):
        connection.execute(
            delete(knowledge_documents).where(
                knowledge_documents.c.source_id == source_id, knowledge_documents.c.id.in_(chunk)
            )
        )
    _change_sources(connection, [source_id])


def note_read(connection: Connection, source_id: int, now: datetime) -> None:
    """Store when a source was read last."""
    connection.execute(update(knowledge_sources).where(knowledge_sources.c.id == source_id).values(read_at=now))


def count_source(connection: Connection, source_id: int) -> SourceCounts:
    """Return how much of a source is stored."""
    of_source = knowledge_documents.c.source_id == source_id
    files = (
        select(func.count(), func.count(knowledge_documents.c.problem))
        .select_from(knowledge_documents)
        .where(of_source)
    )
    total, unread = connection.execute(files).one()
    pieces = select(func.count()).select_from(knowledge_passages).join(knowledge_documents).where(of_source)
    return SourceCounts(total, unread, connection.execute(pieces).scalar_one())


def list_passage_ids(connection: Connection, source_ids: Collection[int]) -> list[int]:
    """Return the ids of the passages of knowledge_sources, document by document."""
    query = (
        select(knowledge_passages.c.id)
        .join(knowledge_documents, knowledge_documents.c.id == knowledge_passages.c.document_id)
        .where(knowledge_documents.c.source_id.in_(source_ids))
        .order_by(knowledge_documents.c.id, knowledge_passages.c.position)
    )
    return list(connection.execute(query).scalars())


def list_passages(connection: Connection, ids: Iterable[int]) -> list[StoredPassage]:
    """Return passages, in the order of their ids."""
    query = _PASSAGES.order_by(knowledge_passages.c.id)
    return [StoredPassage(*row) for row in select_among(connection, query, knowledge_passages.c.id, ids)]


def list_vectors(connection: Connection, ids: Iterable[int], model: str) -> list[tuple[int, bytes]]:
    """Return the vectors of a model that passages have."""
    query = select(*knowledge_passages.c["id", "vector"]).where(knowledge_passages.c.model == model)
    rows = select_among(connection, query, knowledge_passages.c.id, ids)
    return [(row.id, bytes(row.vector)) for row in rows]


def list_without_vector(connection: Connection, model: str, limit: int) -> list[StoredPassage]:
    """Return passages that have no vector of a model."""
    is_missing = or_(knowledge_passages.c.model.is_(None), knowledge_passages.c.model != model)
    return [StoredPassage(*row) for row in connection.execute(_PASSAGES.where(is_missing).limit(limit))]


def put_vectors(connection: Connection, model: str, vectors: Iterable[tuple[int, bytes]]) -> None:
    """Store the vectors of passages; those that are gone meanwhile are left out."""
    rows = [{"number": number, "data": data} for number, data in vectors]
    change = update(knowledge_passages).where(knowledge_passages.c.id == bindparam("number"))
    connection.execute(change.values(model=model, vector=bindparam("data")), rows)
    ids = [row["number"] for row in rows]
    query = (
        select(knowledge_documents.c.source_id)
        .join(knowledge_passages)
        .where(knowledge_passages.c.id.in_(ids))
        .distinct()
    )
    _change_sources(connection, list(connection.execute(query).scalars()))


def _change_sources(connection: Connection, source_ids: Collection[int], **values: Any) -> None:
    """Store changes of sources, and that what is in them has changed."""
    change = update(knowledge_sources).where(knowledge_sources.c.id.in_(source_ids))
    connection.execute(change.values(version=knowledge_sources.c.version + 1, **values))
