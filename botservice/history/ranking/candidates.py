"""Which messages of a long chat are worth ranking: by the words of a question, there and in the talk around."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botservice.history.ranking.arrays import each_once, highest, scaled
from botservice.history.ranking.context import with_those_around
from botservice.history.ranking.evidence import (
    MAX_WORDS,
    NOWHERE,
    Chat,
    Evidence,
    Scores,
    count_having,
    rarity,
    strength_of,
)
from botservice.history.ranking.query import Query
from botservice.history.ranking.weights import Weights
from botservice.history.ranking.words.forms import form_keys, related_keys

Positions = NDArray[np.int64]

_BITS: Final = 2
_WIDTH: Final = 1 << _BITS  # messages of a stretch
_BESIDE: Final = np.float32(0.9)  # what is left of a word from one stretch to the next
_PLACES: Final = 4_000  # of each word, at least
_PLACES_OF: Final = 10  # one message in so many
_STRETCHES: Final = 4  # for each message that is wanted


@dataclass(frozen=True, slots=True)
class Chances:
    """What tells, besides where its words stand, how likely each message of a chat is among the best.

    Attributes:
        lengths: How many words it has.
        average: How many they have on average.
        factor: What its words are multiplied by; 0 for what is not to be found.
        alone: What it is worth without them; None for nothing.
        is_even: Whether the factors of two stretches are much the same.
    """

    lengths: Scores
    average: float
    factor: Scores
    alone: Scores | None
    is_even: bool


def choose(found: Sequence[Evidence], chances: Chances, weights: Weights, *, most: int) -> tuple[Positions, bool]:
    """Return the places of so many messages that are likely best, and whether all others are worth nothing.

    It looks at stretches of a few messages each for the talk around them, which takes a tenth of the time.
    """
    factor, alone = chances.factor, chances.alone
    size = len(factor)
    own, around = np.zeros(size, np.float32), np.zeros((size >> _BITS) + 3, np.float32)
    for part in (_newest(each, max(_PLACES, size // _PLACES_OF)) for each in found):
        strength = strength_of(part, chances.lengths, chances.average, weights)
        own[part.places] += np.float32(part.gain) * strength
        near = np.zeros_like(around)
        near[(part.places >> _BITS) + 1] = np.float32(part.gain) * np.minimum(strength, 1)
        beside = np.maximum(near[:-2], near[2:])
        beside *= _BESIDE
        around[1:-1] += np.maximum(near[1:-1], beside)
    around = scaled(around[1:-1]) * np.float32(weights.window)
    likely = around if chances.is_even else around * _best_in_stretches(factor)
    if alone is not None:
        likely = likely + _best_in_stretches(alone)
    stretches = highest(likely, _STRETCHES * most)
    places = ((stretches << _BITS)[:, None] + np.arange(_WIDTH)).ravel()
    places = places[places < size]
    score = own[places] / (own.max(initial=0) or 1) + around[places >> _BITS]
    score *= factor[places]
    if alone is not None:
        score += alone[places]
    chosen = places[highest(score, most)]
    return chosen, len(stretches) < _STRETCHES * most and len(chosen) < most


def _newest(part: Evidence, count: int) -> Evidence:
    """Return so many of the places of a word: of one that stands nearly everywhere, the others tell nothing."""
    if len(part.places) <= count:
        return part
    others = None if part.others is None else part.others[-count:]
    return Evidence(part.gain, part.places[-count:], part.counts[-count:], others)


def _best_in_stretches(values: Scores) -> Scores:
    """Return the largest value of each stretch."""
    padded = np.zeros(((len(values) >> _BITS) + 1) * _WIDTH, np.float32)
    padded[: len(values)] = values
    best = padded[::_WIDTH].copy()
    for place in range(1, _WIDTH):
        np.maximum(best, padded[place::_WIDTH], out=best)
    return best


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


def choose_positions(
    found: Sequence[FoundWord], size: int, weights: Weights, *, most: int, said_within: Sequence[range] = ()
) -> Positions:
    """Return the positions of the best messages of a very long chat of size, ascending, with those around them.

    Args:
        most: How many of them, those around them not counted.
        said_within: Positions of the times that are asked for.
    """
    factor, alone = np.ones(size, np.float32), np.zeros(size, np.float32)
    for inside in said_within:
        factor[inside.start : inside.stop] *= np.float32(1 + weights.date)
        alone[inside.start : inside.stop] += np.float32(weights.date_alone)
    lengths = np.broadcast_to(np.float32(1), size)  # they are not written down
    evidence = [_evidence_of(word, size) for word in found if len(word.forms) or len(word.others)]
    chosen, _ = choose(evidence, Chances(lengths, 1.0, factor, alone, not said_within), weights, most=most)
    return with_those_around(chosen, size, weights.reach)


def _evidence_of(word: FoundWord, size: int) -> Evidence:
    places = each_once(np.concatenate([word.forms, word.others]))
    counts = np.isin(places, word.forms).astype(np.float32)
    others = np.float32(word.wanted.share) * np.isin(places, word.others)
    return Evidence(word.wanted.weight * rarity(size, len(word.forms) or len(word.others)), places, counts, others)
