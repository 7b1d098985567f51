"""Which messages of a long chat are worth ranking: by the words of a question, there and in the talk around."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botservice.search.arrays import each_once, highest, scaled
from botservice.search.evidence import (
    NOWHERE,
    ChatEvidence,
    Evidence,
    Scores,
    choose_words,
    count_having,
    rarity,
    strength_of,
)
from botservice.search.query import Query
from botservice.search.weights import Weights
from botservice.search.word_forms import form_keys, related_keys

Positions = NDArray[np.int64]

_BITS: Final = 2
_WIDTH: Final = 1 << _BITS  # messages of a stretch
_BESIDE: Final = np.float32(0.6)  # what is left of a word from one stretch to the next: half of it in many chats
_SHORTLIST: Final = 8  # messages for each one that is wanted


def _find_likely(
    evidence: Sequence[Evidence],
    lengths: Scores,
    average: float,
    weights: Weights,
    *,
    most: int,
    worth: tuple[Scores, Scores] | None = None,
) -> tuple[Positions, Scores]:
    """Return where messages stand that likely rank best, ascending, and roughly what each and the talk around it have.

    Args:
        lengths: How many words each message of the chat has.
        average: How many they have on average.
        most: How many messages are wanted of them.
        worth: What the words of each message are multiplied by, and what it is worth without; None for much the same.
    """
    size = len(lengths)
    own, around = np.zeros(size, np.float32), np.zeros((size >> _BITS) + 3, np.float32)
    for part in evidence:
        strength = strength_of(part, lengths, average, weights)
        np.add.at(own, part.places, np.float32(part.gain) * strength)  # quicker than +=
        near = np.zeros_like(around)
        np.maximum.at(near, (part.places >> _BITS) + 1, np.float32(part.gain) * np.minimum(strength, 1))
        beside = np.maximum(near[:-2], near[2:])
        beside *= _BESIDE
        around[1:-1] += np.maximum(near[1:-1], beside)
    top = np.float32(own.max(initial=0) or 1)
    content = np.repeat(scaled(around[1:-1]) * (top * np.float32(weights.window)), _WIDTH)[:size]
    content += own
    likely = content if worth is None else content * worth[0] + worth[1] * top
    places = np.sort(highest(likely, _SHORTLIST * most))
    return places, content[places] * (1 / top)


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


def want_words(
    chat: ChatEvidence, query: Query, weights: Weights, hidden: NDArray[np.int64] = NOWHERE
) -> list[WantedWord]:
    """Return what to ask for; chat is the newest part of the chat, whose words tell what a misspelt one may be.

    Args:
        hidden: Where the question itself stands in it.
    """
    words = choose_words(query, lambda word: query.words[word] * _worth(chat, word, query, hidden))
    wanted = []
    for word, weight in words:
        forms, related = form_keys(word, query.spoken), related_keys(word, query.spoken)
        known = {form for form in chat.vocabulary.having(forms) if count_having(chat, [form], hidden)}
        alike = {number for number, _ in chat.vocabulary.alike(word)} - known if not (known or related) else set()
        others = related.union(chat.vocabulary.words(alike))
        share = weights.misspelt if alike else weights.related
        wanted.append(WantedWord(word, weight, forms, others - forms, share))
    return wanted


def _worth(chat: ChatEvidence, word: str, query: Query, hidden: NDArray[np.int64]) -> float:
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
    worth = (factor, alone) if said_within else None
    places, content = _find_likely(evidence, lengths, 1.0, weights, most=most, worth=worth)
    chosen = places[highest(content * factor[places] + alone[places], most)]
    return with_those_around(chosen, size, weights.reach)


def _evidence_of(word: FoundWord, size: int) -> Evidence:
    places = each_once(np.concatenate([word.forms, word.others]))
    counts = np.isin(places, word.forms).astype(np.float32)
    others = np.float32(word.wanted.share) * np.isin(places, word.others)
    return Evidence(word.wanted.weight * rarity(size, len(word.forms) or len(word.others)), places, counts, others)


def with_those_around(places: NDArray[np.int64], size: int, reach: int) -> NDArray[np.int64]:
    """Return places in a chat of size and all that are within reach of one, once each, ascending."""
    is_near = np.zeros(size + 2 * reach, np.bool_)
    is_near[(places[:, None] + np.arange(2 * reach + 1)).ravel()] = True
    return is_near[reach : reach + size].nonzero()[0]
