"""Finding what was said: one index per chat, in memory, brought up to date from storage at every search."""

import contextlib
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from botservice.core.messages import Author, Message
from botservice.history.context_index import ContextIndex
from botservice.history.queries import find_state, list_at, read_by_id
from botservice.history.recent import Kept, Recent, RecentMessages
from botservice.history.rows import read_message, read_messages
from botservice.history.search_values import Question, SearchHit
from botservice.history.vectors import QuestionVectors
from botservice.history.window import CONVERSATION
from botservice.llm.tokens import TokenCounter
from botservice.search.documents import is_question
from botservice.search.scoring import Ranking
from botservice.storage.database import Connection, Row, SQLAlchemyError, Storage

if TYPE_CHECKING:
    from numpy.typing import NDArray

T = TypeVar("T")

DEFAULT_LIMIT_BYTES = 256 * 1024 * 1024
_ENTRY_BYTES = 1_000


class SearchIndexes:
    """The indexes of one storage's contexts; the least recently used go when they take too many bytes.

    Attributes:
        question_vectors: Gives questions their meaning; None if words have to do.
    """

    _of_storage: ClassVar["weakref.WeakKeyDictionary[Storage, SearchIndexes]"] = weakref.WeakKeyDictionary()

    def __init__(self, *, limit_bytes: int = DEFAULT_LIMIT_BYTES, recent: RecentMessages | None = None) -> None:
        self.question_vectors: QuestionVectors | None = None
        self._recent = recent or RecentMessages()
        self._limit_bytes = limit_bytes
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

    async def vector_of(self, storage: Storage, context_id: int, text: str) -> "NDArray[Any] | None":
        """Return the meaning of a question to a context; None if there is nothing to compare it with, or no time."""
        question_vectors = self.question_vectors
        if question_vectors is None:
            return None
        asked = await self.read(storage, lambda connection: self._without_names(connection, context_id, text))
        return await question_vectors.vector_of(asked) if asked else None

    async def read(self, storage: Storage, query: Callable[[Connection], T | None]) -> T:
        """Return what query returns once it is not None: that asks for one more go, after other readers."""
        while True:
            result = await storage.read(query)
            if result is not None:
                return result

    def search(
        self, connection: Connection, context_id: int, question: Question, counter: TokenCounter | None = None
    ) -> list[SearchHit] | None:
        """Return the k messages of a context that answer a question best, best first; None: ask once more.

        It holds the thread that reads no longer than one page takes.
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
        with self._caught_up(connection, context_id) as (entry, state):
            if entry is None:
                return [], None
            if state is None:
                return None
            found = entry.find(question)
        version, last, encoding = state.deletion_version, state.last_position, None if counter is None else counter.name
        recent = self._recent.catch_up(connection, context_id, version=version, last=last, encoding=encoding)
        if recent is not None and not recent.positions.keys() >= {number for number, _ in found}:
            recent = self._recent.reach_back(connection, context_id, recent)
        return _read_hits(connection, context_id, found, counter, recent), recent

    @property
    def _model_key(self) -> str | None:
        return self.question_vectors.model_key if self.question_vectors is not None else None

    def _without_names(self, connection: Connection, context_id: int, text: str) -> str | None:
        """Return what to embed for a question; nothing where no message has a vector; None: ask once more."""
        with self._caught_up(connection, context_id) as (entry, state):
            if entry is None or (state is not None and not entry.index.has_vectors):
                return ""
            return None if state is None else entry.index.without_names(text)

    @contextlib.contextmanager
    def _caught_up(
        self, connection: Connection, context_id: int
    ) -> Iterator[tuple[ContextIndex | None, Row[*tuple[Any, ...]] | None]]:
        """Hold a context's index, with the state that it has caught up with.

        The state is None if there is more to take in; both are None if the context is gone.
        """
        state = find_state(connection, context_id)
        if state is None:
            self.forget(context_id)
            yield None, None
            return
        with self._guard:
            entry = self._indexes.get(context_id)
            if entry is None:
                entry = self._indexes[context_id] = ContextIndex(context_id)
            self._indexes.move_to_end(context_id)
        try:
            with entry.lock:
                is_current = entry.catch_up(connection, state, self._model_key, self._recent)
                yield entry, state if is_current else None
                size = entry.index.size_bytes + _ENTRY_BYTES
        except SQLAlchemyError:
            raise  # nothing was taken in: the index is as it was
        except BaseException:
            self.forget(context_id)  # it may be half of what it was to be
            raise
        self._make_room(context_id, entry, size)

    def forget(self, context_id: int) -> None:
        """Let go of a context's index; the next search makes it again."""
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
        known |= read_by_id(connection, context_id, missing, counter)
    there = ((*known[number], score) for number, score in found if number in known)
    coverage, by_meaning = found.coverage, found.by_meaning
    return [
        SearchHit(message, score, position=position, coverage=coverage, by_meaning=by_meaning)
        for position, message, score in there
    ]


_SHORT: Final = 40  # characters: what is longer says by itself what it is about
_LONGEST: Final = 600  # characters: a longer neighbour costs more of the prompt than it explains
_ONE_TALK: Final = timedelta(hours=6)
_NOBODY: Final = Author()
_NEAR: Final = 4  # positions: what stands between two that belong together are notes, or gaps of what was deleted


def with_neighbours(
    connection: Connection,
    context_id: int,
    hits: Sequence[SearchHit],
    *,
    shown: Collection[int | None],
    counter: TokenCounter | None = None,
    recent: Recent | None = None,
) -> list[SearchHit]:
    """Return hits with the question before a short answer, and the answer after a question, where it is not shown yet.

    Args:
        shown: Ids of the messages that stand in the prompt anyway.
        recent: What is known of the chat without reading.
    """
    shown = {*shown, *(hit.message.id for hit in hits)}
    neighbours = _find_neighbours(connection, context_id, hits, counter, recent)
    found = []
    for hit in hits:
        neighbour = neighbours.get(hit.message.id)
        if neighbour is not None and neighbour.id not in shown:
            shown.add(neighbour.id)
            found.append(replace(hit, neighbour=neighbour))
        else:
            found.append(hit)
    return found


def _find_neighbours(
    connection: Connection,
    context_id: int,
    found: Sequence[SearchHit],
    counter: TokenCounter | None,
    recent: Recent | None,
) -> dict[int | None, Message]:
    """Return for each message that needs one the message that makes it readable, by its id."""
    left = [(hit, step) for hit in found if (step := _step(hit.message))]
    neighbours: list[tuple[SearchHit, Kept]] = []
    for far in range(1, _NEAR):
        if not left:
            break
        wanted = {hit.position + step * far for hit, step in left}
        at = _said_at(connection, context_id, wanted, recent)
        there = [(hit, step, at.get(hit.position + step * far)) for hit, step in left]
        neighbours += [
            (hit, each) for hit, step, each in there if each is not None and _belongs(each, hit.message, step)
        ]
        left = [(hit, step) for hit, step, each in there if each is None]
    rows = [each for _, each in neighbours if not isinstance(each, Message)]
    read = {each.id: each for each in read_messages(connection, context_id, rows, counter)} if rows else {}
    return {hit.message.id: each if isinstance(each, Message) else read[each.id] for hit, each in neighbours}


def _said_at(connection: Connection, context_id: int, positions: set[int], recent: Recent | None) -> dict[int, Kept]:
    """Return what people and the assistant said at some positions."""
    after, at = (0, {}) if recent is None else (recent.after, recent.at)
    unknown = sorted(positions) if recent is None else sorted(each for each in positions if 0 < each <= after)
    found = {each: at[each] for each in positions if each in at and at[each].role in CONVERSATION}
    if unknown:
        rows = list_at(connection, context_id, unknown)
        found |= {row.position: row for row in rows if row.role in CONVERSATION}
    return found


def _step(message: Message) -> int:
    """Return where the message that belongs to one is: after a question, before a short answer; 0 for nowhere."""
    said = message.full_text
    if is_question(said):
        return 1
    return -1 if len(said) <= _SHORT else 0


def _belongs(kept: Kept, message: Message, step: int) -> bool:
    neighbour = kept if isinstance(kept, Message) else read_message(kept, None, None)
    said = neighbour.full_text
    return (
        0 < len(said) <= _LONGEST
        and is_question(said) is (step < 0)
        and abs(neighbour.created_at - message.created_at) <= _ONE_TALK
        and (neighbour.role is not message.role or (neighbour.author or _NOBODY) != (message.author or _NOBODY))
    )
