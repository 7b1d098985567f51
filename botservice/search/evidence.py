"""Where the words of a question stand: the same word, a form of it, a word that looks like it."""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botservice.search.arrays import each_once
from botservice.search.columns import Columns
from botservice.search.documents import AuthorNumbers
from botservice.search.postings import Postings
from botservice.search.query import Query
from botservice.search.vocabulary import Vocabulary
from botservice.search.weights import Weights
from botservice.search.word_forms import form_keys, related_keys

Scores = NDArray[np.float32]
Places = NDArray[np.int32]

_MOST: Final = 48  # pieces of words: a Chinese question of thirty characters has as many, with their pairs
_WHOLE: Final = 3  # a whole word counts as so many
_SPACELESS: Final = "\u3041"  # from here on, scripts whose words are taken in pieces
_OFTEN: Final = 3  # messages that have a word, the question among them: what only looks like it adds nothing
_FEW: Final = 16  # one place in so many: sorting them takes less than going through all
NOWHERE: Final = np.zeros(0, np.int64)


@dataclass(frozen=True, slots=True)
class ChatEvidence:
    """The parts of an index that scoring reads."""

    columns: Columns
    vocabulary: Vocabulary
    postings: Postings
    people: AuthorNumbers


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where one word of a question stands.

    Attributes:
        gain: What the word is worth: its weight and its rarity in this chat.
        places: Positions of messages, once each, ascending.
        counts: How often each has the word, its inflections a little less.
        others: How much a word there that may stand for it is worth against it; None where there is none.
    """

    gain: float
    places: NDArray[np.integer[Any]]
    counts: Scores
    others: Scores | None = None


def rarity(messages: int, having: int) -> float:
    """Return the inverse document frequency, as BM25 has it: never below 0."""
    return math.log(1 + (messages - having + 0.5) / (having + 0.5))


def find_evidence(
    chat: ChatEvidence, query: Query, weights: Weights, hidden: NDArray[np.int64] = NOWHERE
) -> tuple[list[Evidence], float]:
    """Find the evidence of each word of a question that the chat knows in some form.

    Args:
        hidden: Positions of messages that are none: the question's own, where it is stored already.

    Returns:
        The evidence, and what all words would be worth together, those included that the chat does not have.
    """
    found, possible = [], 0.0
    size = len(chat.columns)
    for word, weight in _telling(chat, query, hidden):
        share = weight * (weights.name_in_text if chat.people.named(word) else 1)
        evidence = _of_word(chat, word, query.spoken, share, weights, hidden)
        possible += share * rarity(size, 0) if evidence is None else evidence.gain
        if evidence is not None:
            found.append(evidence)
    return found, possible


def _telling(chat: ChatEvidence, query: Query, hidden: NDArray[np.int64]) -> list[tuple[str, float]]:
    """Return the words of a question with their weights; of a very long one only those that tell most here."""
    words = list(query.words.items())
    if len(words) * _WHOLE <= _MOST:
        return words

    def worth(word: str) -> float:
        frequency = _count_having(chat, chat.vocabulary.having(form_keys(word, query.spoken)), hidden)
        return query.words[word] * rarity(len(chat.columns), frequency) if frequency else 0

    left, chosen = _MOST, set()
    for word in sorted(query.words, key=worth, reverse=True):
        left -= 1 if word[0] >= _SPACELESS else _WHOLE
        if left < 0:
            break
        chosen.add(word)
    return [(word, weight) for word, weight in query.words.items() if word in chosen]


def _count_having(chat: ChatEvidence, forms: Collection[int], hidden: NDArray[np.int64]) -> int:
    """Return how often messages have one of forms, hidden ones left out."""
    if not len(hidden):
        return sum(map(chat.postings.count, forms))
    return sum(int(np.isin(chat.postings.get(form)[0], hidden, invert=True).sum()) for form in forms)


def _of_word(
    chat: ChatEvidence, word: str, spoken: tuple[int, ...], share: float, weights: Weights, hidden: NDArray[np.int64]
) -> Evidence | None:
    other_keys = related_keys(word, spoken)
    forms = chat.vocabulary.having(form_keys(word, spoken))
    related = chat.vocabulary.having(other_keys) - forms if other_keys else set()
    alike = []
    if sum(map(chat.postings.count, forms)) < _OFTEN:
        alike = [(number, likeness**2) for number, likeness in chat.vocabulary.alike(word) if number not in forms]
    has_alike = has_related = None
    places: NDArray[np.integer[Any]]
    if len(forms) == 1 and not (alike or related):
        places, counts = _counted_once(chat, word, min(forms), weights, hidden)
        having = len(places)
    else:
        counted, *standing = _counted(chat, word, forms, weights)
        if alike:
            has_alike = _greatest(chat, alike[::-1], standing)
        if related:
            has_related = _greatest(chat, [(number, 1.0) for number in related], standing)
        places = _all_but(hidden, standing, len(chat.columns))
        counts = counted[places]
        having = int(np.count_nonzero(counts))
    if not len(places):
        return None
    having_related, others = 0, None
    if has_related is not None:
        has_related = has_related[places]
        having_related = int(np.count_nonzero(has_related))
    frequency = having or having_related or len(places)
    size = len(chat.columns)
    worth = rarity(size, frequency)
    if has_alike is not None:
        # A word that neither the chat nor a list has is probably misspelt: what it looks like stands for it.
        others = (weights.alike if having or other_keys else weights.misspelt) * has_alike[places]
    if has_related is not None:
        has_related *= weights.related * min(1.0, rarity(size, having_related) / worth)
        others = has_related if others is None else np.maximum(others, has_related)
    return Evidence(share * worth, places, counts, others)


def _counted_once(
    chat: ChatEvidence, word: str, form: int, weights: Weights, hidden: NDArray[np.int64]
) -> tuple[NDArray[np.int32], Scores]:
    """Return where the only form of a word stands, and how often; an inflection a little less."""
    places, counts = chat.postings.get(form)
    for place in hidden.tolist():
        if len(places) and places.item(-1) == place:
            places, counts = places[:-1], counts[:-1]
        else:
            is_seen = places != place
            places, counts = places[is_seen], counts[is_seen]
    return places, counts if form == chat.vocabulary.find(word) else weights.inflected * counts


def _counted(chat: ChatEvidence, word: str, forms: set[int], weights: Weights) -> tuple[Scores, *tuple[Places, ...]]:
    """Return how often each message has a word, its inflections a little less; and where each of them stands."""
    same = chat.vocabulary.find(word)
    found = np.zeros(len(chat.columns), np.float32)
    standing = []
    for form in sorted(forms):
        where, counts = chat.postings.get(form)
        found[where] += counts if form == same else weights.inflected * counts
        standing.append(where)
    return found, *standing


def _greatest(chat: ChatEvidence, words: list[tuple[int, float]], standing: list[Places]) -> Scores:
    """Return the greatest value of the words that each message has, which come in the order of their values.

    Where they stand is added to standing.
    """
    found = np.zeros(len(chat.columns), np.float32)
    parts = [chat.postings.places_of(number) for number, _ in words]
    places = np.concatenate(parts)
    found[places] = np.repeat(np.array([value for _, value in words], np.float32), [len(part) for part in parts])
    standing.append(places)
    return found


def _all_but(hidden: NDArray[np.int64], standing: list[Places], size: int) -> NDArray[np.integer[Any]]:
    """Return all places of standing but hidden ones, once each, ascending."""
    places: NDArray[np.integer[Any]] = np.concatenate(standing) if standing else NOWHERE
    if len(places) * _FEW < size:
        places = each_once(places)
        for place in hidden.tolist():
            places = places[places != place]
        return places
    is_there = np.zeros(size, np.bool_)
    is_there[places] = True
    is_there[hidden] = False
    return is_there.nonzero()[0]
