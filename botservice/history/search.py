"""Finding what was said: one index per chat, in memory, brought up to date from storage at every search."""

import threading
import weakref
from collections import OrderedDict
from collections.abc import Collection
from dataclasses import dataclass, field

from sqlalchemy import Connection, Row, select

from botservice.history.ranking import Document, SearchIndex
from botservice.history.rows import read_messages, select_messages
from botservice.history.selectors import CONVERSATION
from botservice.llm.tokens import TokenCounter
from botservice.messages import Author, Message, Role
from botservice.storage import Storage
from botservice.storage.tables import contexts, messages

DEFAULT_LIMIT_BYTES = 256 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A message that was found.

    Attributes:
        score: Larger is better; comparable within one search only.
    """

    message: Message
    score: float


@dataclass(slots=True)
class _ContextIndex:
    """The index of one context and what it has seen."""

    deletion_version: int
    index: SearchIndex = field(default_factory=SearchIndex)
    last_position: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)


class SearchIndexes:
    """The indexes of one storage's contexts; the least recently used go when they take too many bytes."""

    _of_storage: "weakref.WeakKeyDictionary[Storage, SearchIndexes]" = weakref.WeakKeyDictionary()

    def __init__(self, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._indexes: OrderedDict[int, _ContextIndex] = OrderedDict()
        self._sizes: dict[int, int] = {}
        self._guard = threading.Lock()

    @classmethod
    def of(cls, storage: Storage) -> "SearchIndexes":
        """Return the indexes that belong to storage."""
        return cls._of_storage.setdefault(storage, cls())

    def search(
        self,
        connection: Connection,
        context_id: int,
        text: str,
        *,
        k: int,
        asker: Author | None = None,
        exclude: Collection[int] = (),
        counter: TokenCounter | None = None,
    ) -> list[SearchHit]:
        """Return the k messages of a context that answer text best, best first. Runs in a reader's thread."""
        version = connection.execute(
            select(contexts.c.deletion_version).where(contexts.c.id == context_id)
        ).scalar_one_or_none()
        if version is None:
            return []
        entry = self._entry(context_id, version)
        with entry.lock:
            self._bring_up_to_date(connection, context_id, entry)
            found = entry.index.search(text, k=k, asker=asker, exclude=exclude)
            size = entry.index.size_bytes
        self._make_room(context_id, size)
        return _read_hits(connection, context_id, found, counter)

    def _entry(self, context_id: int, deletion_version: int) -> _ContextIndex:
        with self._guard:
            entry = self._indexes.get(context_id)
            if entry is None or entry.deletion_version < deletion_version:
                entry = self._indexes[context_id] = _ContextIndex(deletion_version)
            self._indexes.move_to_end(context_id)
            return entry

    def _bring_up_to_date(self, connection: Connection, context_id: int, entry: _ContextIndex) -> None:
        query = (
            select_messages(context_id)
            .where(messages.c.position > entry.last_position)
            .order_by(messages.c.position)
        )
        rows = connection.execute(query).all()
        if rows:
            entry.index.add([_document(row) for row in rows if Role(row.role) in CONVERSATION])
            entry.last_position = rows[-1].position

    def _make_room(self, context_id: int, size: int) -> None:
        with self._guard:
            self._sizes[context_id] = size
            while len(self._indexes) > 1 and sum(self._sizes.values()) > self._limit_bytes:
                oldest, _ = self._indexes.popitem(last=False)
                self._sizes.pop(oldest, None)


def _document(row: "Row[tuple[object, ...]]") -> Document:
    names = [each["name"] for each in row.attachments or () if each["name"]]
    author_key = f"{row.author_platform}:{row.author_id}" if row.author_id else None
    return Document(
        id=row.id,
        role=Role(row.role),
        text="\n".join([row.text, *names]),
        author_name=row.author_name,
        author_key=author_key,
        created_at=row.created_at,
    )


def _read_hits(
    connection: Connection, context_id: int, found: list[tuple[int, float]], counter: TokenCounter | None
) -> list[SearchHit]:
    if not found:
        return []
    query = select_messages(context_id).where(messages.c.id.in_([message_id for message_id, _ in found]))
    by_id = {each.id: each for each in read_messages(connection, context_id, connection.execute(query).all(), counter)}
    return [SearchHit(by_id[message_id], score) for message_id, score in found if message_id in by_id]
