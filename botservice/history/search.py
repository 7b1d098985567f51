"""Finding what was said: one index per chat, in memory, brought up to date from storage at every search."""

import contextlib
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar, TypeVar

from numpy.typing import NDArray
from sqlalchemy import Connection, Row, bindparam, select

from botservice.history.question_vectors import QuestionVectors
from botservice.history.ranking import Document, SearchIndex
from botservice.history.ranking.people import author_key
from botservice.history.rows import read_messages, select_messages
from botservice.history.searchable import searchable_text
from botservice.history.vectors import read_vectors
from botservice.llm.tokens import TokenCounter
from botservice.messages import Author, Message, Role
from botservice.storage import Storage
from botservice.storage.tables import contexts, messages

T = TypeVar("T")

DEFAULT_LIMIT_BYTES = 256 * 1024 * 1024
PAGE = 500  # messages that are taken in at once: the readers of a storage are few, and others wait for them
_ENTRY_BYTES = 1_000
_COMPACT_AT = 20  # messages taken in at once

_STATE = select(contexts.c.deletion_version, contexts.c.last_position).where(contexts.c.id == bindparam("context"))
_MESSAGES = select(
    messages.c.id,
    messages.c.position,
    messages.c.role,
    messages.c.text,
    messages.c.attachments,
    messages.c.author_platform,
    messages.c.author_id,
    messages.c.author_name,
    messages.c.created_at,
).where(
    messages.c.context_id == bindparam("context"),
    messages.c.position > bindparam("after"),
    messages.c.role.in_([Role.USER.value, Role.ASSISTANT.value]),
)
_PAGE_OF_MESSAGES = _MESSAGES.order_by(messages.c.position).limit(PAGE)
_PAGE_OF_SEEN = _PAGE_OF_MESSAGES.where(messages.c.position <= bindparam("last"))


@dataclass(frozen=True, slots=True)
class SearchHit:
    """A message that was found.

    Attributes:
        score: Larger is better; comparable within one search only.
        neighbour: The question that it answers, or its answer, where it says little by itself.
    """

    message: Message
    score: float
    neighbour: Message | None = None

    @property
    def messages(self) -> list[Message]:
        """The message, and its neighbour where it has one."""
        return [self.message] if self.neighbour is None else [self.message, self.neighbour]


@dataclass(frozen=True, slots=True)
class Question:
    """What to look for.

    Attributes:
        asker: Whose "I" and "my" stand in text.
        asked_at: What "yesterday" counts from.
        exclude: Ids of messages that are not to be found.
        vector: Its meaning, where an embedder gave one.
    """

    text: str
    k: int
    asked_at: datetime
    asker: Author | None = None
    exclude: Collection[int] = ()
    vector: NDArray[Any] | None = None


@dataclass(slots=True)
class _Comparison:
    """How far an index is compared with what its context still has: a page at a time, as all reading is.

    Attributes:
        version: The deletion version that it started at. What goes meanwhile is a matter for the next one.
        last_position: Where it has come to.
        kept: The ids of the messages that are still there.
    """

    version: int
    last_position: int = 0
    kept: set[int] = field(default_factory=set)


@dataclass(slots=True)
class _ContextIndex:
    """The index of one context and what it has seen of it; to be touched under its lock."""

    index: SearchIndex = field(default_factory=SearchIndex)
    deletion_version: int = 0
    comparison: _Comparison | None = None
    last_position: int = 0
    vector_model: str | None = None
    last_vector: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def catch_up(
        self, connection: Connection, context_id: int, state: Row[*tuple[Any, ...]], model_key: str | None
    ) -> bool:
        """Take in at most a page of what is new since state was read; return whether that was all."""
        started = self.comparison.version if self.comparison is not None else self.deletion_version
        if state.deletion_version < started:
            return False  # this view still shows what is deleted since: look again
        if self.deletion_version < state.deletion_version and not self._compare(connection, context_id, state):
            return False
        if self.last_position < state.last_position:
            rows = connection.execute(_PAGE_OF_MESSAGES, {"context": context_id, "after": self.last_position}).all()
            self.index.add(list(_documents(rows)))
            if len(rows) == PAGE:
                self.last_position = rows[-1].position
                return False
            self.last_position = state.last_position
            if len(rows) > _COMPACT_AT:
                self.index.compact()
        return model_key is None or self._take_vectors(connection, context_id, model_key)

    def _compare(self, connection: Connection, context_id: int, state: Row[*tuple[Any, ...]]) -> bool:
        """Look through a page for what was changed; after the last one forget what was deleted. Return whether done.

        What was deleted since the first page is left to the next comparison.
        """
        comparison = self.comparison = self.comparison or _Comparison(state.deletion_version)
        # A reader with a newer view may have been here first: what this view does not show yet is not gone.
        seen = {"context": context_id, "after": comparison.last_position, "last": self.last_position}
        rows = connection.execute(_PAGE_OF_SEEN, seen).all()
        for document in _documents(rows):
            comparison.kept.add(document.id)
            if not self.index.holds(document):
                self.index.update(document)
        if len(rows) == PAGE:
            comparison.last_position = rows[-1].position
            return False
        self.index.remove([number for number in self.index.ids if number not in comparison.kept])
        self.deletion_version, self.comparison = comparison.version, None
        return bool(self.deletion_version == state.deletion_version)

    def _take_vectors(self, connection: Connection, context_id: int, model_key: str) -> bool:
        if self.vector_model != model_key:
            self.vector_model, self.last_vector = model_key, 0
        page = read_vectors(connection, context_id, model_key, after=self.last_vector, limit=PAGE)
        if page is None:
            return True
        self.index.set_vectors(page.message_ids, page.matrix)
        self.last_vector = page.last_id
        return len(page.message_ids) < PAGE


class SearchIndexes:
    """The indexes of one storage's contexts; the least recently used go when they take too many bytes.

    Attributes:
        question_vectors: Gives questions their meaning; None where words have to do.
    """

    _of_storage: ClassVar["weakref.WeakKeyDictionary[Storage, SearchIndexes]"] = weakref.WeakKeyDictionary()

    def __init__(self, *, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.question_vectors: QuestionVectors | None = None
        self._limit_bytes = limit_bytes
        self._indexes: OrderedDict[int, _ContextIndex] = OrderedDict()
        self._sizes: dict[int, int] = {}
        self._size = 0
        self._guard = threading.Lock()

    @classmethod
    def of(cls, storage: Storage) -> "SearchIndexes":
        """Return the indexes that belong to storage."""
        known = cls._of_storage.get(storage)
        return cls._of_storage.setdefault(storage, cls()) if known is None else known

    def __len__(self) -> int:
        return len(self._indexes)

    @property
    def size_bytes(self) -> int:
        """Estimated bytes of all indexes."""
        return self._size

    async def vector_of(self, storage: Storage, context_id: int, text: str) -> NDArray[Any] | None:
        """Return the meaning of a question to a context; None where there is nothing to compare it with, or no time."""
        question_vectors = self.question_vectors
        if question_vectors is None:
            return None
        asked = await self.read(storage, lambda connection: self._without_names(connection, context_id, text))
        return await question_vectors.vector_of(asked) if asked else None

    async def read(self, storage: Storage, query: Callable[[Connection], T | None]) -> T:
        """Return what query returns once it is not None: that asks for one more go, after other readers."""
        while (result := await storage.read(query)) is None:
            pass
        return result

    def search(
        self,
        connection: Connection,
        context_id: int,
        question: Question,
        counter: TokenCounter | None = None,
    ) -> list[SearchHit] | None:
        """Return the k messages of a context that answer a question best, best first; None: ask once more.

        Runs in a reader's thread, and holds it no longer than one page takes.
        """
        with self._caught_up(connection, context_id) as (entry, is_current):
            if entry is None:
                return []
            if not is_current:
                return None
            found = entry.index.search(
                question.text,
                k=question.k,
                asker=question.asker,
                exclude=question.exclude,
                now=question.asked_at,
                query_vector=question.vector,
            )
        return _read_hits(connection, context_id, found, counter)

    def _without_names(self, connection: Connection, context_id: int, text: str) -> str | None:
        """Return what to embed for a question; nothing where no message has a vector; None: ask once more."""
        with self._caught_up(connection, context_id) as (entry, is_current):
            if entry is None or (is_current and not entry.index.has_vectors):
                return ""
            return entry.index.without_names(text) if is_current else None

    @contextlib.contextmanager
    def _caught_up(self, connection: Connection, context_id: int) -> Iterator[tuple[_ContextIndex | None, bool]]:
        """Hold a context's index, and say whether it has seen everything; None where the context is gone."""
        state = connection.execute(_STATE, {"context": context_id}).one_or_none()
        if state is None:
            self._drop(context_id)
            yield None, True
            return
        model_key = self.question_vectors.model_key if self.question_vectors is not None else None
        with self._guard:
            entry = self._indexes.setdefault(context_id, _ContextIndex())
            self._indexes.move_to_end(context_id)
        with entry.lock:
            try:
                yield entry, entry.catch_up(connection, context_id, state, model_key)
                size = entry.index.size_bytes + _ENTRY_BYTES
            except BaseException:
                self._drop(context_id)  # it may be half of what it was to be
                raise
        self._make_room(context_id, entry, size)

    def _drop(self, context_id: int) -> None:
        with self._guard:
            self._indexes.pop(context_id, None)
            self._size -= self._sizes.pop(context_id, 0)

    def _make_room(self, context_id: int, entry: _ContextIndex, size: int) -> None:
        with self._guard:
            if self._indexes.get(context_id) is not entry:
                return
            self._size += size - self._sizes.get(context_id, 0)
            self._sizes[context_id] = size
            while len(self._indexes) > 1 and self._size > self._limit_bytes:
                oldest, _ = self._indexes.popitem(last=False)
                self._size -= self._sizes.pop(oldest, 0)


def _documents(rows: Iterable[Row[*tuple[Any, ...]]]) -> Iterator[Document]:
    for number, _, role_name, text, attachments, platform, author_id, author_name, created_at in rows:
        role = Role.USER if role_name == Role.USER else Role.ASSISTANT
        searchable = searchable_text(role, text, [each.get("name") for each in attachments] if attachments else ())
        if searchable:
            key = author_key(Author(platform, author_id, author_name)) if author_id else None
            yield Document(number, role, searchable, author_name, key, created_at)


def _read_hits(
    connection: Connection, context_id: int, found: list[tuple[int, float]], counter: TokenCounter | None
) -> list[SearchHit]:
    if not found:
        return []
    query = select_messages(context_id).where(messages.c.id.in_([message_id for message_id, _ in found]))
    by_id = {each.id: each for each in read_messages(connection, context_id, connection.execute(query).all(), counter)}
    return [SearchHit(by_id[message_id], score) for message_id, score in found if message_id in by_id]
