"""The index of one chat in memory, and how it keeps up with what is stored: a page at a time."""

import math
import threading
from dataclasses import dataclass, field
from typing import Any

from botservice.history.documents import documents_of, read_documents
from botservice.history.long_chats import LongChats
from botservice.history.queries import list_between
from botservice.history.recent import RecentMessages
from botservice.history.search_queries import WordBlock, find_stretches, read_vectors
from botservice.history.search_values import Question
from botservice.history.vectors import VectorPage
from botservice.search.documents import Document
from botservice.search.index import SearchIndex
from botservice.search.scoring import Ranking
from botservice.storage.database import Connection, Row
from botservice.storage.readers import leave_to_thread

PAGE = 500  # messages that are taken in at once: the readers of a storage are few, and others wait for them
_COMPACT_AT = 20  # messages taken in at once
_SECONDS_AT_HAND = 0.006  # that a search takes: about as long as a thread keeps the interpreter from the event loop
_FORGOTTEN = 0.8  # what counts of how long a search took, for each that came after it
_BYTES_AT_HAND = 4_000  # of text that is taken in
_LONGEST_AT_HAND = 500  # characters of a question: a longer one may take much longer than the last ones


@dataclass(slots=True)
class _Comparison:
    """How far an index is compared with what its context still has: a page at a time, as all reading is.

    Attributes:
        version: The deletion version that it started at. What goes meanwhile is a matter for the next one.
        last_position: Where it has come to.
        kept: The ids of the messages that are still there.
    """

    version: int
    last_position: int
    kept: set[int] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class _Answered:
    """A question with what was found, ids and scores, and the state of the index that this holds for."""

    question: Question
    found: Ranking
    state: tuple[int, int, int]


@dataclass(slots=True)
class ContextIndex:
    """The index of one context and what it has seen of it; to be touched under its lock.

    Attributes:
        after: It holds messages of higher positions only: all of them, but of a very long chat a part.
        is_long: Whether it is of a very long chat: then older messages are found by the words written down.
        making: The last position of a stretch that is taken in to be written down; None if that is done.
        full: That stretch, once it is.
        answered: The last question: every step of a turn asks the same again.
        seconds: What a search lately took at most.
    """

    context_id: int
    index: SearchIndex = field(default_factory=SearchIndex)
    deletion_version: int = 0
    comparison: _Comparison | None = None
    after: int = 0
    last_position: int = 0
    is_long: bool = False
    making: int | None = None
    full: WordBlock | None = None
    vector_model: str | None = None
    last_vector: int = 0
    answered: _Answered | None = None
    seconds: float = math.inf
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_quick(self) -> bool:
        """Whether it has taken in a chat, and searching that takes a few milliseconds."""
        return self.seconds < _SECONDS_AT_HAND and self.last_position > 0 and not self.is_long

    def is_at_hand(self, state: Row[*tuple[Any, ...]], model_key: str | None, asked: str) -> bool:
        """Return whether a search takes a few milliseconds: it has nearly all messages, and the last ones did."""
        return (
            self.is_quick
            and len(asked) <= _LONGEST_AT_HAND
            and state.last_position - _COMPACT_AT <= self.last_position
            and self.deletion_version == state.deletion_version
            and self.vector_model == model_key
        )

    def took(self, seconds: float) -> None:
        """Note how long a search took."""
        known = self.seconds if self.seconds < math.inf else 0.0
        self.seconds = max(seconds, _FORGOTTEN * known)

    def catch_up(
        self,
        connection: Connection,
        state: Row[*tuple[Any, ...]],
        model_key: str | None,
        long_chats: LongChats,
        recent: RecentMessages,
    ) -> bool:
        """Take in at most a page of what is new since state was read; return whether that was all."""
        started = self.comparison.version if self.comparison is not None else self.deletion_version
        if state.deletion_version < started:
            return False  # this view still shows what is deleted since: look again
        last = state.last_position
        if last > long_chats.messages:
            last = self._choose_part(connection, last, long_chats.stretch)
        if self.deletion_version < state.deletion_version and not self._compare(connection, state):
            return False
        if self.last_position < last and not self._take_page(connection, last, recent):
            return False
        if self.making is not None:
            first = self.after + 1
            self.full = WordBlock(self.context_id, first, last, self.deletion_version, self.index.blocks(first))
            return False
        return self.is_long or model_key is None or self._take_vectors(connection, model_key)

    def found_for(self, question: Question) -> Ranking | None:
        """Return what was found for a question, if it was the last one and nothing has changed since."""
        known = self.answered
        is_same = known is not None and known.state == self._state and known.question == question
        return known.found if known is not None and is_same and known.question.vector is question.vector else None

    def remember(self, question: Question, found: Ranking) -> None:
        """Keep what was found for a question, until the next one."""
        self.answered = _Answered(question, found, self._state)

    @property
    def _state(self) -> tuple[int, int, int]:
        return self.last_position, self.deletion_version, self.last_vector

    def _choose_part(self, connection: Connection, last_position: int, size: int) -> int:
        """Turn to the first full stretch that is not written down, else to what comes after all; return its end."""
        written = find_stretches(connection, self.context_id)
        newest = last_position - last_position % size
        after = next((after for after in range(0, newest, size) if (after + 1, after + size) not in written), newest)
        if not self.is_long or after != self.after:
            self.index, self.comparison, self.deletion_version = SearchIndex(), None, 0
            self.is_long, self.after, self.last_position = True, after, after
        self.making, self.full = (after + size if after < newest else None), None
        return last_position if self.making is None else self.making

    def _take_page(self, connection: Connection, last: int, recent: RecentMessages) -> bool:
        """Take in what is new up to a position, but a page at most; return whether that was all."""
        if not (has_room := self.index.has_room):
            leave_to_thread(connection)
        documents, end = self._read_page(connection, last, recent)
        if sum(len(each.text.encode()) for each in documents) > _BYTES_AT_HAND:
            leave_to_thread(connection)
        self.index.add(documents)
        self.last_position = last if end is None else end
        if end is not None:
            return False
        if len(documents) > _COMPACT_AT or not has_room:
            self.index.compact()
        return True

    def _read_page(
        self, connection: Connection, last: int, recent: RecentMessages
    ) -> tuple[list[Document], int | None]:
        """Return what is new up to a position, and where it ends if that is a page and there may be more."""
        after, version = self.last_position, self.deletion_version
        known = recent.catch_up(connection, self.context_id, version=version, last=last)
        if known is not None and known.after <= after and last - after < PAGE:
            return list(documents_of(known.since(after))), None
        rows = list_between(connection, self.context_id, after, last, PAGE)
        end = rows[-1].position if len(rows) == PAGE else None
        recent.widen(self.context_id, rows, version=version, after=after, last=end or last)
        return list(read_documents(rows)), end

    def _compare(self, connection: Connection, state: Row[*tuple[Any, ...]]) -> bool:
        """Look through a page for what was changed; after the last one forget what was deleted. Return whether done.

        What was deleted since the first page is left to the next comparison.
        """
        comparison = self.comparison = self.comparison or _Comparison(state.deletion_version, self.after)
        # A reader with a newer view may have been here first: what this view does not show yet is not gone.
        rows = list_between(connection, self.context_id, comparison.last_position, self.last_position, PAGE)
        for document in read_documents(rows):
            comparison.kept.add(document.id)
            if not self.index.holds(document):
                self.index.update(document)
        if len(rows) == PAGE:
            comparison.last_position = rows[-1].position
            return False
        self.index.remove([number for number in self.index.ids if number not in comparison.kept])
        self.deletion_version, self.comparison = comparison.version, None
        return bool(self.deletion_version == state.deletion_version)

    def _take_vectors(self, connection: Connection, model_key: str) -> bool:
        if self.vector_model != model_key:
            self.vector_model, self.last_vector = model_key, 0
        page = VectorPage.of(read_vectors(connection, self.context_id, model_key, after=self.last_vector, limit=PAGE))
        if page is None:
            return True
        self.index.set_vectors(page.message_ids, page.matrix)
        self.last_vector = page.last_id
        return len(page.message_ids) < PAGE
