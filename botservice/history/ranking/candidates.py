"""Which messages of a very long chat are worth ranking: by the words of a question, there and in the talk around."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botservice.history.ranking.arrays import largest, scaled
from botservice.history.ranking.context import with_those_around
from botservice.history.ranking.evidence import MAX_WORDS, NOWHERE, Chat, Scores, count_having, rarity
from botservice.history.ranking.query import Query
from botservice.history.ranking.weights import Weights
from botservice.history.ranking.words.forms import form_keys, related_keys

Positions = NDArray[np.int64]

_LEAST: Final = float(np.finfo(np.float32).tiny)


@dataclass(frozen=True, slots=True)
class WantedWord:
    """A word of a question, as a very long chat is asked for it.

    Attributes:
        weight: How much it counts before rarity.
        forms: The keys of its inflections, itself among them.
        others: The keys of words that may stand for it.
        share: How much one of others is worth against the word itself.
    """

    word: str
    weight: float
    forms: frozenset[str]
    others: frozenset[str]
    share: float


@dataclass(frozen=True, slots=True)
class FoundWord:
    """Where a wanted word stands: positions from 0, ascending."""

    wanted: WantedWord
    forms: Positions
    others: Positions


def want_words(chat: Chat, query: Query, weights: Weights, hidden: NDArray[np.int64] = NOWHERE) -> list[WantedWord]:
    """Return what to ask for; chat is the newest part of the chat, whose words tell what a misspelt one may be.

    Args:
        hidden: Where the question itself stands in it.
    """
    words = sorted(query.words.items(), key=lambda item: -item[1] * _worth(chat, item[0], query, hidden))[:MAX_WORDS]
    wanted = []
    for word, weight in words:
        forms, related = form_keys(word, query.spoken), related_keys(word, query.spoken)
        known = {form for form in chat.vocabulary.having(forms) if count_having(chat, [form], hidden)}
        alike = {number for number, _ in chat.vocabulary.alike(word)} - known if not (known or related) else set()
        others = related.union(chat.vocabulary.words(alike))
        share = weights.misspelt if alike else weights.related
        wanted.append(WantedWord(word, weight, forms, others - forms, share))
    return wanted


def _worth(chat: Chat, word: str, query: Query, hidden: NDArray[np.int64]) -> float:
    having = count_having(chat, chat.vocabulary.having(form_keys(word, query.spoken)), hidden)
    return rarity(max(len(chat.columns), having), having)


def choose(
    found: Sequence[FoundWord], size: int, weights: Weights, *, most: int, said_within: Sequence[range] = ()
) -> Positions:
    """Return the positions of the best messages of a chat of size, ascending, with those around them.

    Args:
        most: How many of them, those around them not counted.
        said_within: Positions of the times that are asked for.
    """
    own, around = np.zeros(size, np.float32), np.zeros(size, np.float32)
    for word in found:
        count = len(word.forms) or len(word.others)
        if count:
            gain = np.float32(word.wanted.weight * rarity(size, count))
            own += gain * _strength(word, size)
            around += gain * _near(word, size, weights)
    score = scaled(own) + np.float32(weights.window) * scaled(around)
    for inside in said_within:
        score[inside.start : inside.stop] *= np.float32(1 + weights.date)
        score[inside.start : inside.stop] += np.float32(weights.date_alone)
    return with_those_around(_best(score, most), size, weights.reach)


def _strength(word: FoundWord, size: int) -> Scores:
    strength = np.zeros(size, np.float32)
    strength[word.others] = word.wanted.share
    strength[word.forms] = 1
    return strength


def _near(word: FoundWord, size: int, weights: Weights) -> Scores:
    """Return how much of a word stands in each message or near it; what is stronger is written last."""
    near = np.zeros(size, np.float32)
    for places, share in ((word.others, word.wanted.share), (word.forms, 1.0)):
        for step in range(weights.reach, 0, -1):
            strength = share * weights.onward**step
            near[places[places >= step] - step] = strength
            near[places[places < size - step] + step] = strength
        near[places] = share
    return near


def _best(score: Scores, most: int) -> Positions:
    """Return the positions of the best scores above 0, at most so many; the newer of equals."""
    least = max(largest(score, min(most, len(score))), _LEAST)
    above, equal = np.flatnonzero(score > least), np.flatnonzero(score == least)
    newest: Positions = np.concatenate([equal[max(0, len(equal) - (most - len(above))) :], above])
    return newest
