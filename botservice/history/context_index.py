"""The index of one chat in memory, and how it keeps up with what is stored: a page at a time."""

import threading
from dataclasses import dataclass, field, replace
from typing import Any

from botservice.history.documents import documents_of, read_documents
from botservice.history.queries import list_between
from botservice.history.recent import RecentMessages
from botservice.history.search_queries import read_vectors
from botservice.history.search_values import Question
from botservice.history.vectors import VectorPage
from botservice.search.documents import Document
from botservice.search.index import SearchIndex
from botservice.search.query import split_questions
from botservice.search.scoring import Ranking, merge_rankings
from botservice.storage.database import Connection, Row

PAGE = 500  # messages that are taken in at once: the readers of a storage are few, and others wait for them
_COMPACT_AT = 20  # messages taken in at once


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
class ContextIndex:
    """The index of one context and what it has seen of it; to be touched under its lock."""

    context_id: int
    index: SearchIndex = field(default_factory=SearchIndex)
    deletion_version: int = 0
    comparison: _Comparison | None = None
    last_position: int = 0
    vector_model: str | None = None
    last_vector: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    def catch_up(
        self, connection: Connection, state: Row[*tuple[Any, ...]], model_key: str | None, recent: RecentMessages
    ) -> bool:
        """Take in at most a page of what is new since state was read; return whether that was all."""
        started = self.comparison.version if self.comparison is not None else self.deletion_version
        if state.deletion_version < started:
            return False  # this view still shows what is deleted since: look again
        last = state.last_position
        if self.deletion_version < state.deletion_version and not self._compare(connection, state):
            return False
        if self.last_position < last and not self._take_page(connection, last, recent):
            return False
        return model_key is None or self._take_vectors(connection, model_key)

    def find(self, question: Question) -> Ranking:
        """Rank for all of a question; of several in one text, for each of them as well, so that none starves."""
        found = self._rank(question)
        parts = split_questions(question.text)
        if len(parts) > 1:
            asked = (replace(question, text=part) for part in parts)
            found = merge_rankings([found, *map(self._rank, asked)], question.k)
        return found

    def _rank(self, question: Question) -> Ranking:
        return self.index.search(
            question.text,
            k=question.k,
            asker=question.asker,
            exclude=question.exclude,
            shown=question.shown,
            said_within=question.said_within,
            now=question.asked_at,
            query_vector=question.vector,
            is_each_once=question.is_each_once,
        )

    def _take_page(self, connection: Connection, last: int, recent: RecentMessages) -> bool:
        """Take in what is new up to a position, but a page at most; return whether that was all."""
        documents, end = self._read_page(connection, last, recent)
        self.index.add(documents)
        self.last_position = last if end is None else end
        if end is not None:
            return False
        if len(documents) > _COMPACT_AT:
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
        comparison = self.comparison = self.comparison or _Comparison(state.deletion_version)
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
