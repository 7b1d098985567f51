"""The index of passages: what is in it, and what is found for a question."""

from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import numpy as np

from botservice.core.messages import Role
from botservice.knowledge.queries import StoredPassage
from botservice.search.documents import Document
from botservice.search.index import SearchIndex
from botservice.search.scoring import Ranking
from botservice.search.weights import Weights

# A passage stands for itself: nobody says it to anybody, and it answers nothing that stands before it.
_WEIGHTS: Final = Weights(
    window=0, least_around=9, previous=0, next=0, after_question=0, dense_window=0, author=0, author_alone=0, asker=0,
    listener=0, user=0, question=0, date=0, date_alone=0, when=0,
)  # fmt: skip
_BEGINNING: Final = datetime(2000, 1, 1, tzinfo=UTC)
_KEPT_AS: Final = np.dtype("<f2")


class PassageIndex:
    """Ranks passages as messages are ranked, without what belongs to talk. One thread at a time may use it."""

    def __init__(self) -> None:
        self._index = SearchIndex(_WEIGHTS)

    def __len__(self) -> int:
        return len(self._index)

    @property
    def ids(self) -> Collection[int]:
        """The ids of all passages in it."""
        return self._index.ids

    def update(self, ids: Sequence[int], new: Sequence[StoredPassage], vectors: Sequence[tuple[int, bytes]]) -> None:
        """Hold the passages with ids from now on.

        Args:
            new: Those that it does not hold yet.
            vectors: What passages mean, as `put_vectors` stored it.
        """
        self._index.remove(set(self._index.ids).difference(ids))
        self._index.add([_document(each) for each in new])
        if new:
            self._index.compact()
        if vectors:
            width = len(vectors[0][1])
            alike = [(number, data) for number, data in vectors if len(data) == width]
            matrix = np.frombuffer(b"".join(data for _, data in alike), _KEPT_AS).reshape(len(alike), -1)
            self._index.set_vectors([number for number, _ in alike], matrix)

    def search(self, question: str, *, k: int, query_vector: Any = None) -> Ranking:
        """Return at most k ids with their scores, best first."""
        return self._index.search(question, k=k, query_vector=query_vector)


def _document(passage: StoredPassage) -> Document:
    """Return a passage as search sees it: nobody said it, and passages of one document stand together."""
    text = f"{passage.title}\n{passage.heading}\n{passage.text}"
    at = _BEGINNING + timedelta(minutes=passage.id)
    return Document(passage.id, Role.USER, text, None, None, at)
