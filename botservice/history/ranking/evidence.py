"""Where the words of a question stand: the same word, a form of it, a word that looks like it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botservice.history.ranking.columns import Columns
from botservice.history.ranking.people import People
from botservice.history.ranking.postings import Postings
from botservice.history.ranking.query import Query
from botservice.history.ranking.vocabulary import Vocabulary
from botservice.history.ranking.weights import Weights
from botservice.history.ranking.words.forms import form_keys, related_keys

Scores = NDArray[np.float32]

MAX_WORDS: Final = 16
NOWHERE: Final = np.zeros(0, np.int32)


@dataclass(frozen=True, slots=True)
class Census:
    """How frequent the words of a question are in a whole chat, of which an index has a part.

    Attributes:
        size: The messages of the chat.
        having: How many of them have a word, or a form of it.
        having_others: How many have a word that may stand for it.
    """

    size: int
    having: Mapping[str, int]
    having_others: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Chat:
    """The parts of an index that scoring reads."""

    columns: Columns
    vocabulary: Vocabulary
    postings: Postings
    people: People
    census: Census | None = None


@dataclass(frozen=True, slots=True)
class Evidence:
    """Where one word of a question stands.

    Attributes:
        gain: What the word is worth: its weight and its rarity in this chat.
        places: Positions of messages, once each, ascending.
        strength: How much of the word each has: 1 for once in a message of average length.
    """

    gain: float
    places: NDArray[np.int32]
    strength: Scores


def rarity(messages: int, having: int) -> float:
    """Return the inverse document frequency, as BM25 has it: never below 0."""
    return float(np.log(1 + (messages - having + 0.5) / (having + 0.5)))


def find_evidence(chat: Chat, query: Query, weights: Weights, hidden: NDArray[np.int32] = NOWHERE) -> list[Evidence]:
    """Return the evidence of each word of a question that the chat knows in some form.

    Args:
        hidden: Positions of messages that are none: the question's own, where it is stored already.
    """
    lengths = chat.columns.column("length")
    average = float(lengths.mean()) or 1.0
    norm = (weights.k1 * (1 - weights.b + weights.b * lengths / average)).astype(np.float32)
    found = []
    for word, weight in _telling(chat, query, hidden):
        share = weight * (weights.name_in_text if chat.people.named(word) else 1)
        evidence = _of_word(chat, word, query.spoken, share, norm, weights, hidden)
        if len(evidence.places):
            found.append(evidence)
    return found


def _telling(chat: Chat, query: Query, hidden: NDArray[np.int32]) -> list[tuple[str, float]]:
    """Return the words of a question with their weights; of a very long one only those that tell most here."""
    words = list(query.words.items())
    if len(words) <= MAX_WORDS:
        return words
    worth = []
    for word, weight in words:
        frequency = count_having(chat, chat.vocabulary.having(form_keys(word, query.spoken)), hidden)
        worth.append(weight * rarity(len(chat.columns), frequency) if frequency else 0)
    best = sorted(range(len(words)), key=lambda place: -worth[place])[:MAX_WORDS]
    return [words[place] for place in sorted(best)]


def count_having(chat: Chat, forms: Collection[int], hidden: NDArray[np.int32]) -> int:
    """Return how often messages have one of forms, hidden ones left out."""
    if not len(hidden):
        return sum(map(chat.postings.count, forms))
    return sum(int(np.isin(chat.postings.get(form)[0], hidden, invert=True).sum()) for form in forms)


def _of_word(
    chat: Chat,
    word: str,
    spoken: tuple[int, ...],
    share: float,
    norm: Scores,
    weights: Weights,
    hidden: NDArray[np.int32],
) -> Evidence:
    keys, other_keys = form_keys(word, spoken), related_keys(word, spoken)
    forms = chat.vocabulary.having(keys)
    strength = _counted(chat, word, forms, norm, weights)
    alike = _alike(chat, word, forms, hidden, len(norm))
    related = _related(chat, chat.vocabulary.having(other_keys) - forms, hidden, len(norm))
    strength[hidden] = 0
    having, having_related = int(np.count_nonzero(strength)), 0 if related is None else int(np.count_nonzero(related))
    frequency = having or having_related or (0 if alike is None else int(np.count_nonzero(alike)))
    size = len(norm)
    if chat.census is not None:
        size, frequency = (
            chat.census.size,
            chat.census.having.get(word) or chat.census.having_others.get(word) or frequency,
        )
        having_related = chat.census.having_others.get(word) or having_related
    worth = rarity(size, frequency)
    if alike is not None:
        # A word that neither the chat nor a list has is probably misspelt: what it looks like stands for it.
        alike *= weights.alike if having or other_keys else weights.misspelt
        np.maximum(strength, alike, out=strength)
    if related is not None:
        related *= weights.related * min(1.0, rarity(size, having_related) / worth)
        np.maximum(strength, related, out=strength)
    places = np.flatnonzero(strength).astype(np.int32)
    return Evidence(share * worth, places, strength[places])


def _counted(chat: Chat, word: str, forms: set[int], norm: Scores, weights: Weights) -> Scores:
    """Return BM25 without rarity for a word and its inflections together."""
    same = chat.vocabulary.find(word)
    strength = np.zeros(len(norm), np.float32)
    for form in sorted(forms):
        places, counts = chat.postings.get(form)
        strength[places] += counts if form == same else weights.inflected * counts
    has = np.flatnonzero(strength > 0)
    strength[has] *= (weights.k1 + 1) / (strength[has] + norm[has])
    return strength


def _alike(chat: Chat, word: str, forms: set[int], hidden: NDArray[np.int32], size: int) -> Scores | None:
    """Return how like a word the likest one of each message is; None where no word is."""
    found = [(number, likeness) for number, likeness in chat.vocabulary.alike(word) if number not in forms]
    if not found:
        return None
    likest = np.zeros(size, np.float32)
    for number, likeness in found:
        places, _ = chat.postings.get(number)
        likest[places] = np.maximum(likest[places], likeness**2)
    likest[hidden] = 0
    return likest


def _related(chat: Chat, numbers: set[int], hidden: NDArray[np.int32], size: int) -> Scores | None:
    """Return which messages have a word that may stand for another; None where none has."""
    if not numbers:
        return None
    has = np.zeros(size, np.float32)
    for number in numbers:
        places, _ = chat.postings.get(number)
        has[places] = 1
    has[hidden] = 0
    return has
