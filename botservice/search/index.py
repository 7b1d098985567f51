"""The index of one chat: what is in it, and what is found for a question."""

import re
from collections.abc import Collection, Sequence
from datetime import datetime
from itertools import chain
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botservice.core.messages import Author, Role
from botservice.search.columns import Columns, MessageRows
from botservice.search.documents import AuthorNumbers, Document, is_question
from botservice.search.evidence import ChatEvidence
from botservice.search.grammar import TIMES
from botservice.search.postings import Postings
from botservice.search.query import MAX_CHARACTERS, parse
from botservice.search.scoring import Ranking, Request, rank
from botservice.search.tokens import tokenize
from botservice.search.vectors import Vectors
from botservice.search.vocabulary import Vocabulary
from botservice.search.weights import DEFAULT, Weights

_DIGIT: Final = re.compile(r"\d")
# Without them a sentence says the same. Every other word may be what it is about: "no meat", "from Rome".
_WEAK: Final = frozenset({"a", "an", "the", "and", "so", "ok", "okay", "please", "just", "also", "again", "oh", "well"})
_BATCH: Final = 1_000  # small, so that a thread that indexes leaves the interpreter to others
_FEW: Final = 8  # messages
_SHORT: Final = 2_000  # characters
_BASE_BYTES: Final = 4_000

_Occurrences = tuple[NDArray[np.int32], NDArray[np.int32]]  # words, and the positions that they stand at


def _fingerprint(tokens: list[str], text: str) -> int:
    """Return a number that is equal for texts that differ in case, spaces and punctuation at most."""
    return hash(tuple(tokens)) if tokens else hash(text.strip())


class SearchIndex:
    """Messages of one chat in conversation order. Not safe for use from two threads at once."""

    def __init__(self, weights: Weights = DEFAULT) -> None:
        self._weights = weights
        self._positions: dict[int, int] = {}
        self._columns = Columns(weights)
        self._vocabulary = Vocabulary()
        self._postings = Postings()
        self._people = AuthorNumbers()
        self._vectors = Vectors()

    def __len__(self) -> int:
        return len(self._positions)

    @property
    def size_bytes(self) -> int:
        """Estimated bytes in memory."""
        parts = (self._columns, self._vocabulary, self._postings, self._vectors)
        return _BASE_BYTES + 110 * len(self._positions) + sum(part.size_bytes for part in parts)

    @property
    def ids(self) -> Collection[int]:
        """The ids of all messages in it."""
        return self._positions.keys()

    def holds(self, document: Document) -> bool:
        """Return whether a message is in it with the same text."""
        position = self._positions.get(document.id)
        return position is not None and int(self._columns.column("source")[position]) == hash(document.text)

    @property
    def has_vectors(self) -> bool:
        """Whether any message has a vector."""
        return len(self._vectors) > 0

    def add(self, documents: Sequence[Document]) -> None:
        """Append documents, in conversation order; one that is known already is updated in its place."""
        latest = {document.id: document for document in documents}
        known = [latest.pop(number) for number in list(latest) if number in self._positions]
        self._append(list(latest.values()))
        for document in known:
            self.update(document)

    def compact(self) -> None:
        """Take less room, and have room for more; worth its time once after many messages were added."""
        self._postings.compact()
        self._vocabulary.compact()

    def _append(self, documents: list[Document]) -> None:
        if len(documents) <= _FEW and sum(len(each.text) for each in documents) <= _SHORT:
            for document in documents:
                self._append_one(document)
            return
        taken = [self._take(documents[first : first + _BATCH]) for first in range(0, len(documents), _BATCH)]
        if taken:
            self._postings.add(*(np.concatenate(parts) for parts in zip(*taken, strict=True)))

    def _append_one(self, document: Document) -> None:
        """Take in a short message: what a turn brings, for which a call of NumPy takes longer than its loops."""
        tokens = tokenize(document.text)
        place = self._positions[document.id] = len(self._columns)
        self._columns.extend(self._rows([document], [tokens]))
        self._postings.add_one(self._vocabulary.take(tokens), place)

    def _take(self, documents: list[Document]) -> _Occurrences:
        """Take in everything but the postings, which are sorted once for all batches; return what goes into them."""
        start = len(self._columns)
        texts = [tokenize(document.text) for document in documents]
        self._columns.extend(self._rows(documents, texts))
        self._positions.update((document.id, start + place) for place, document in enumerate(documents))
        return self._learn(texts, np.arange(start, start + len(documents), dtype=np.int32))

    def _rows(self, documents: list[Document], texts: list[list[str]]) -> MessageRows:
        """Return what is kept of documents next to their words; texts are their tokens."""
        has_digits = [_DIGIT.search(document.text) is not None for document in documents]
        return MessageRows(
            id=[document.id for document in documents],
            time=[document.created_at.timestamp() for document in documents],
            length=[len(tokens) for tokens in texts],
            author=[self._people.number(document) for document in documents],
            is_user=[document.role is Role.USER for document in documents],
            is_question=[is_question(document.text) for document in documents],
            has_time=[has or not TIMES.isdisjoint(tokens) for has, tokens in zip(has_digits, texts, strict=True)],
            text=[_fingerprint(tokens, each.text) for tokens, each in zip(texts, documents, strict=True)],
            said=[self._what_is_said(document, tokens) for document, tokens in zip(documents, texts, strict=True)],
            source=[hash(document.text) for document in documents],
        )

    def _what_is_said(self, document: Document, tokens: list[str]) -> int:
        text = document.text
        author = document.role, self._people.number(document)
        return hash((*author, is_question(text), document.has_files, frozenset(tokens) - _WEAK or text.strip()))

    def _learn(self, texts: list[list[str]], positions: NDArray[np.int32]) -> _Occurrences:
        lengths = np.array([len(tokens) for tokens in texts], np.int64)
        tokens = list(chain.from_iterable(texts))
        words = self._vocabulary.encode(tokens)
        self._vocabulary.learn(tokens, words, lengths[lengths > 0])
        return words, np.repeat(positions, lengths)

    def update(self, document: Document) -> None:
        """Replace what is known of a message; it keeps its place in the conversation and loses its vector."""
        position = self._positions.get(document.id)
        if position is None:
            self._append([document])
            return
        place = np.array([position], np.int32)
        self._postings.discard(place)
        self._vectors.discard(place)
        tokens = tokenize(document.text)
        self._columns.put(position, self._rows([document], [tokens]))
        self._postings.add(*self._learn([tokens], place))

    def remove(self, ids: Collection[int]) -> None:
        """Forget messages; unknown ids are ignored."""
        gone = [self._positions.pop(number) for number in ids if number in self._positions]
        if gone:
            places = np.array(gone, np.int32)
            self._postings.discard(places)
            self._vectors.discard(places)
            self._columns.remove(places)

    def set_vectors(self, ids: Sequence[int], matrix: NDArray[Any]) -> None:
        """Give messages their vectors, one row each; unknown ids are ignored, another width replaces all."""
        known = [(self._positions[number], row) for row, number in enumerate(ids) if number in self._positions]
        if known:
            places, rows = zip(*known, strict=True)
            self._vectors.put(np.array(places, np.int32), np.asarray(matrix, np.float32)[list(rows)])

    def search(  # noqa: PLR0913 - a question has many sides
        self,
        text: str,
        *,
        k: int,
        asker: Author | None = None,
        exclude: Collection[int] = (),
        shown: Collection[int] = (),
        said_within: tuple[float, float] | None = None,
        now: datetime | None = None,
        query_vector: NDArray[Any] | None = None,
        is_each_once: bool = False,
    ) -> Ranking:
        """Return at most k ids with their scores, best first; nothing for blank text.

        Args:
            asker: Who asks: "I" and "my" are theirs.
            exclude: Ids that are not to be found, and say nothing of what stands around them: the question itself.
            shown: Ids that are not to be found because they are seen anyway.
            said_within: From when (included) until when (not included) it was said, in seconds since the epoch.
            now: What "yesterday" and "last May" count from; without it they say nothing.
            query_vector: The question's vector, of the same model as those of set_vectors.
            is_each_once: Whether of messages of one author that say the same only the newest is returned.
        """
        if k < 1 or not text.strip() or not self._positions:
            return Ranking()
        query = parse(text, chat_languages=self._vocabulary.languages, now=now, weights=self._weights)
        request = Request(
            query=query,
            asker=asker,
            hidden=self._places_of(exclude),
            shown=self._places_of(shown),
            said_within=said_within,
            fingerprint=_fingerprint(query.tokens if len(text) <= MAX_CHARACTERS else tokenize(text), text),
            is_each_once=is_each_once,
            dense=None if query_vector is None else self._vectors.similarities(query_vector, len(self._columns)),
        )
        chat = ChatEvidence(self._columns, self._vocabulary, self._postings, self._people)
        return rank(chat, request, k=k, weights=self._weights)

    def _places_of(self, ids: Collection[int]) -> NDArray[np.int64]:
        return np.array([self._positions[number] for number in ids if number in self._positions], np.int64)

    def without_names(self, text: str) -> str:
        """Return text without the names of this chat's people, to be embedded as a question.

        A question that names a person is otherwise near to messages that address them.
        """
        kept = [word for word in text.split() if not any(self._people.named(token) for token in tokenize(word))]
        return " ".join(kept) or text
