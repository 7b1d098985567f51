"""Searching a very long chat: its words tell the database which messages are worth ranking, and those are ranked."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botservice.core.messages import Role
from botservice.history.documents import read_documents
from botservice.history.queries import find_time, list_at
from botservice.history.search_queries import read_blocks, read_vectors_of
from botservice.history.search_values import Question
from botservice.history.vectors import VectorPage
from botservice.search.arrays import each_once
from botservice.search.blocks import LONGEST_STRETCH, block_of, key_of, unpack
from botservice.search.candidates import FoundWord, Positions, choose_positions
from botservice.search.dates import DateSpan
from botservice.search.documents import Document
from botservice.search.evidence import Census
from botservice.search.index import SearchIndex
from botservice.search.scoring import Ranking
from botservice.search.weights import DEFAULT
from botservice.storage.database import Connection
from botservice.storage.statements import chunks

_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_SPANS: Final = 2


@dataclass(frozen=True, slots=True)
class LongChats:
    """From when on a chat is very long, and how it is divided.

    Attributes:
        messages: A chat with more of them is held in part.
        stretch: Positions whose words are written down at once, at most 65,536.
        candidates: Messages that are ranked for a question, each with those around it.
    """

    messages: int = 200_000
    stretch: int = 16_384
    candidates: int = 100

    def __post_init__(self) -> None:
        if not 0 < self.stretch <= min(LONGEST_STRETCH, self.messages):
            raise ValueError(f"stretch must be from 1 to {min(LONGEST_STRETCH, self.messages)}, not {self.stretch}")


DEFAULT_LONG_CHATS: Final = LongChats()


def search_long_chat(
    connection: Connection,
    context_id: int,
    newest: SearchIndex,
    question: Question,
    *,
    last_position: int,
    candidates: int,
    model_key: str | None,
) -> Ranking:
    """Return the ids of messages with their scores, best first, where all that is not in newest is written down."""
    found = _find_words(connection, context_id, newest, question)
    if question.said_within is not None:
        wanted = _positions_of(connection, context_id, DateSpan(*question.said_within), last_position)
        found = [_inside(each, wanted) for each in found]
    wanted_times = newest.spans_of(question.text, question.asked_at)
    inside = [_positions_of(connection, context_id, span, last_position) for span in wanted_times[:_MOST_SPANS]]
    chosen = choose_positions(found, last_position + 1, DEFAULT, most=candidates, said_within=inside)
    if not len(chosen):
        return Ranking()
    index = _index_of(connection, context_id, chosen)
    if question.vector is not None and model_key is not None:
        page = VectorPage.of(read_vectors_of(connection, context_id, model_key, index.ids))
        if page is not None:
            index.set_vectors(page.message_ids, page.matrix)
    having = {each.wanted.word: len(each.forms) for each in found}
    having_others = {each.wanted.word: len(each.others) for each in found}
    return rank(index, question, Census(last_position, having, having_others))


def rank(index: SearchIndex, question: Question, census: Census | None = None) -> Ranking:
    """Return the ids of an index's messages with their scores for a question, best first."""
    return index.search(
        question.text,
        k=question.k,
        asker=question.asker,
        exclude=question.exclude,
        shown=question.shown,
        said_within=question.said_within,
        now=question.asked_at,
        query_vector=question.vector,
        is_each_once=question.is_each_once,
        census=census,
    )


def _find_words(connection: Connection, context_id: int, newest: SearchIndex, question: Question) -> list[FoundWord]:
    wanted = newest.want_words(question.text, question.asked_at, question.exclude)
    asked = newest.positions_at(question.exclude)
    written = _IndexedWords(connection, context_id, {key for each in wanted for key in each.forms | each.others})
    return [
        FoundWord(
            each,
            forms=_without(asked, written.positions_of(each.forms), newest.positions_of(each.forms)),
            others=_without(asked, written.positions_of(each.others), newest.positions_of(each.others)),
        )
        for each in wanted
    ]


def _inside(word: FoundWord, wanted: range) -> FoundWord:
    forms, others = (
        positions[(positions >= wanted.start) & (positions < wanted.stop)] for positions in (word.forms, word.others)
    )
    return replace(word, forms=forms, others=others)


def _without(gone: Positions, *parts: Positions) -> Positions:
    positions = np.concatenate(parts)
    return positions[np.isin(positions, gone, invert=True)] if len(gone) else positions


class _IndexedWords:
    """Where some words stand, by what is written down."""

    def __init__(self, connection: Connection, context_id: int, words: Collection[str]) -> None:
        sought: dict[int, set[int]] = defaultdict(set)
        for word in words:
            sought[block_of(key_of(word))].add(key_of(word))
        self._found: dict[int, list[Positions]] = defaultdict(list)
        for numbers in chunks(sought):
            for first, number, data in read_blocks(connection, context_id, numbers):
                for key, offsets in unpack(data, sought[number]).items():
                    self._found[key].append(offsets.astype(np.int64) + first)

    def positions_of(self, words: Collection[str]) -> Positions:
        """Return the positions of the messages that have one of words, ascending."""
        parts = [part for key in {key_of(word) for word in words} for part in self._found.get(key, ())]
        return each_once(np.concatenate(parts)) if parts else np.zeros(0, np.int64)


def _positions_of(connection: Connection, context_id: int, span: DateSpan, last_position: int) -> range:
    """Return where the messages of a time stand; a chat's messages are in the order of their times, nearly always."""
    return range(
        _first_since(connection, context_id, span.start, last_position),
        _first_since(connection, context_id, span.end, last_position),
    )


def _first_since(connection: Connection, context_id: int, seconds: float, last_position: int) -> int:
    first, end = 1, last_position + 1
    while first < end:
        middle = (first + end) // 2
        found = find_time(connection, context_id, middle)
        if found is not None and found.timestamp() < seconds:
            first = middle + 1
        else:
            end = middle
    return first


def _index_of(connection: Connection, context_id: int, chosen: Positions) -> SearchIndex:
    """Return an index of the messages at chosen positions, in which only those next to each other are one talk."""
    rows = list_at(connection, context_id, chosen.tolist())
    documents = list(read_documents(sorted(rows, key=lambda row: row.position)))
    gaps = chosen[1:][np.diff(chosen) > 1]
    index = SearchIndex()
    index.add(_parted(documents, gaps))
    index.remove([-int(gap) for gap in gaps])
    return index


def _parted(documents: Sequence[Document], gaps: NDArray[np.int64]) -> list[Document]:
    """Return documents with something between them, far from both in time, before each position of gaps."""
    parts = [Document(-int(gap), Role.ASSISTANT, "", None, None, _LONG_AGO, int(gap)) for gap in gaps]
    return sorted([*parts, *documents], key=lambda each: (each.position, each.id))
