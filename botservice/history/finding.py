"""Finding what was said: one index per chat, in memory, brought up to date from storage at every search."""

import contextlib
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from sqlalchemy import bindparam, select

from botservice.history.context_index import ContextIndex
from botservice.history.long_chats import DEFAULT_LONG_CHATS, LongChats, rank, search_long_chat
from botservice.history.neighbours import with_neighbours
from botservice.history.question_vectors import QuestionVectors
from botservice.history.questions import Question, SearchHit
from botservice.history.recent import Recent, RecentMessages
from botservice.history.rows import BY_ID, read_messages
from botservice.history.word_blocks import WordBlock, write_stretch
from botservice.llm.tokens import TokenCounter
from botservice.search.query import split_questions
from botservice.search.scoring import Ranking, merge_rankings
from botservice.storage.database import Connection, Row, Storage
from botservice.storage.readers import READ_ERRORS, leave_to_thread
from botservice.storage.tables.conversations import contexts

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")

DEFAULT_LIMIT_BYTES = 256 * 1024 * 1024
_ENTRY_BYTES = 1_000

_STATE = select(contexts.c.deletion_version, contexts.c.last_position).where(contexts.c.id == bindparam("context"))


class SearchIndexes:
    """The indexes of one storage's contexts; the least recently used go when they take too many bytes.

    Attributes:
        question_vectors: Gives questions their meaning; None if words have to do.
    """

    _of_storage: ClassVar["weakref.WeakKeyDictionary[Storage, SearchIndexes]"] = weakref.WeakKeyDictionary()

    def __init__(
        self,
        *,
        limit_bytes: int = DEFAULT_LIMIT_BYTES,
        long_chats: LongChats = DEFAULT_LONG_CHATS,
        recent: RecentMessages | None = None,
    ) -> None:
        self.question_vectors: QuestionVectors | None = None
        self._recent = recent or RecentMessages()
        self._limit_bytes = limit_bytes
        self._long_chats = long_chats
        self._full: dict[tuple[int, int], WordBlock] = {}
        self._indexes: OrderedDict[int, ContextIndex] = OrderedDict()
        self._sizes: dict[int, int] = {}
        self._size = 0
        self._guard = threading.Lock()

    @classmethod
    def of(cls, storage: Storage) -> "SearchIndexes":
        """Return the indexes that belong to storage."""
        known = cls._of_storage.get(storage)
        if known is None:
            known = cls._of_storage.setdefault(storage, cls(recent=RecentMessages.of(storage)))
        return known

    def __len__(self) -> int:
        return len(self._indexes)

    @property
    def size_bytes(self) -> int:
        """Estimated bytes of all indexes."""
        return self._size

    def is_quick(self, context_id: int) -> bool:
        """Return whether a context is likely searched in a few milliseconds, by its words alone."""
        entry = self._indexes.get(context_id)
        return self.question_vectors is None and entry is not None and entry.is_quick

    async def vector_of(self, storage: Storage, context_id: int, text: str) -> "NDArray[Any] | None":
        """Return the meaning of a question to a context; None if there is nothing to compare it with, or no time."""
        question_vectors = self.question_vectors
        if question_vectors is None:
            return None
        asked = await self.read(storage, lambda connection: self._without_names(connection, context_id, text))
        return await question_vectors.vector_of(asked) if asked else None

    async def read(self, storage: Storage, query: Callable[[Connection], T | None]) -> T:
        """Return what query returns once it is not None: that asks for one more go, after other readers."""
        # On Postgres, where a view is shared, others would wait for it.
        while (result := await storage.read(query, is_short=storage.is_sqlite)) is None:
            while self._full:
                _, stretch = self._full.popitem()
                await storage.write(partial(write_stretch, stretch=stretch))
        return result

    def search(
        self, connection: Connection, context_id: int, question: Question, counter: TokenCounter | None = None
    ) -> list[SearchHit] | None:
        """Return the k messages of a context that answer a question best, best first; None: ask once more.

        It holds the thread that reads no longer than one page takes; an event loop, a few milliseconds.
        """
        found = self._search(connection, context_id, question, counter)
        return None if found is None else found[0]

    def search_with_neighbours(
        self, connection: Connection, context_id: int, question: Question, counter: TokenCounter
    ) -> list[SearchHit] | None:
        """Return what search does, with what makes each message readable."""
        found = self._search(connection, context_id, question, counter)
        if found is None:
            return None
        hits, recent = found
        shown = {*question.shown, *question.exclude}
        return with_neighbours(connection, context_id, hits, shown=shown, counter=counter, recent=recent)

    def _search(
        self, connection: Connection, context_id: int, question: Question, counter: TokenCounter | None
    ) -> tuple[list[SearchHit], Recent | None] | None:
        with self._caught_up(connection, context_id, question.text) as (entry, state):
            if entry is None:
                return [], None
            if state is None:
                return None
            found = entry.found_for(question)
            if found is None:
                started = time.thread_time()  # not what others took meanwhile
                found = self._find(connection, entry, question)
                entry.took(time.thread_time() - started)
                entry.remember(question, found)
        version, last, encoding = state.deletion_version, state.last_position, None if counter is None else counter.name
        recent = self._recent.catch_up(connection, context_id, version=version, last=last, encoding=encoding)
        if recent is not None and not recent.positions.keys() >= {number for number, _ in found}:
            recent = self._recent.reach_back(connection, context_id, recent)
        return _read_hits(connection, context_id, found, counter, recent), recent

    def _find(self, connection: Connection, entry: ContextIndex, question: Question) -> Ranking:
        """Rank for all of a question; of several in one text, for each of them as well, so that none starves."""
        found = self._rank(connection, entry, question)
        parts = split_questions(question.text)
        if len(parts) == 1:
            return found
        asked = (replace(question, text=part) for part in parts)
        return merge_rankings([found, *(self._rank(connection, entry, part) for part in asked)], question.k)

    def _rank(self, connection: Connection, entry: ContextIndex, question: Question) -> Ranking:
        if entry.is_long:
            return search_long_chat(
                connection,
                entry.context_id,
                entry.index,
                question,
                last_position=entry.last_position,
                candidates=self._long_chats.candidates,
                model_key=self._model_key,
            )
        return rank(entry.index, question)

    @property
    def _model_key(self) -> str | None:
        return self.question_vectors.model_key if self.question_vectors is not None else None

    def _without_names(self, connection: Connection, context_id: int, text: str) -> str | None:
        """Return what to embed for a question; nothing where no message has a vector; None: ask once more."""
        with self._caught_up(connection, context_id, text) as (entry, state):
            if entry is None or (state is not None and not (entry.is_long or entry.index.has_vectors)):
                return ""
            return None if state is None else entry.index.without_names(text)

    @contextlib.contextmanager
    def _caught_up(
        self, connection: Connection, context_id: int, asked: str
    ) -> Iterator[tuple[ContextIndex | None, Row[*tuple[Any, ...]] | None]]:
        """Hold a context's index, with the state that it has caught up with.

        The state is None if there is more to take in; both are None if the context is gone.
        """
        state = connection.execute(_STATE, {"context": context_id}).one_or_none()
        if state is None:
            self.forget(context_id)
            yield None, None
            return
        with self._guard:
            entry = self._indexes.get(context_id)
            if entry is None:
                entry = self._indexes[context_id] = ContextIndex(context_id)
            self._indexes.move_to_end(context_id)
        if not (entry.is_at_hand(state, self._model_key, asked) and entry.lock.acquire(blocking=False)):
            leave_to_thread(connection)
            entry.lock.acquire()
        try:
            is_current = entry.catch_up(connection, state, self._model_key, self._long_chats, self._recent)
            if entry.full is not None:
                self._full[entry.context_id, entry.full.first_position] = entry.full
            yield entry, state if is_current else None
            size = entry.index.size_bytes + _ENTRY_BYTES
        except READ_ERRORS:
            raise  # nothing was taken in: the index is as it was
        except BaseException:
            self.forget(context_id)  # it may be half of what it was to be
            raise
        finally:
            entry.lock.release()
        self._make_room(context_id, entry, size)

    def forget(self, context_id: int) -> None:
        """Let go of a context's index; the next search makes it anew."""
        with self._guard:
            self._indexes.pop(context_id, None)
            self._size -= self._sizes.pop(context_id, 0)

    def _make_room(self, context_id: int, entry: ContextIndex, size: int) -> None:
        with self._guard:
            if self._indexes.get(context_id) is not entry:
                return
            self._size += size - self._sizes.get(context_id, 0)
            self._sizes[context_id] = size
            while len(self._indexes) > 1 and self._size > self._limit_bytes:
                oldest, _ = self._indexes.popitem(last=False)
                self._size -= self._sizes.pop(oldest, 0)


def _read_hits(
    connection: Connection, context_id: int, found: Ranking, counter: TokenCounter | None, recent: Recent | None
) -> list[SearchHit]:
    known = {} if recent is None else recent.of_ids(number for number, _ in found)
    missing = [number for number, _ in found if number not in known]
    if missing:
        rows = connection.execute(BY_ID, {"context": context_id, "ids": missing}).all()
        read = zip(rows, read_messages(connection, context_id, rows, counter), strict=True)
        known |= {row.id: (row.position, message) for row, message in read}
    there = ((*known[number], score) for number, score in found if number in known)
    coverage, by_meaning = found.coverage, found.by_meaning
    return [
        SearchHit(message, score, position=position, coverage=coverage, by_meaning=by_meaning)
        for position, message, score in there
    ]
