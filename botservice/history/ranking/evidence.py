"""Where the words of a question stand: the same word, a form of it, a word that looks like it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from botservice.history.ranking.columns import Columns
from botservice.history.ranking.people import People
from botservice.history.ranking.postings import Postings
from botservice.history.ranking.query import Query
from botservice.history.ranking.related import related_to
from botservice.history.ranking.vocabulary import Vocabulary
from botservice.history.ranking.weights import Weights

Scores = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Chat:
    """The parts of an index that scoring reads."""

    columns: Columns
    vocabulary: Vocabulary
    postings: Postings
    people: People


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


def find_evidence(chat: Chat, query: Query, weights: Weights) -> list[Evidence]:
    """Return the evidence of each word of a question that the chat knows in some form."""
    columns = chat.columns
    average = float(columns.lengths.mean()) or 1.0
    norm = weights.k1 * (1 - weights.b + weights.b * columns.lengths / average)
    found = []
    for word, weight in query.words.items():
        share = weight * (weights.name_in_text if chat.people.named(word) else 1)
        evidence = _of_word(chat, word, query.spoken, share, norm, weights)
        if len(evidence.places):
            found.append(evidence)
    return found


def _of_word(
    chat: Chat, word: str, spoken: tuple[int, ...], share: float, norm: Scores, weights: Weights
) -> Evidence:
    same = chat.vocabulary.find(word)
    forms = chat.vocabulary.forms(word, spoken)
    strength = np.zeros(len(norm), np.float32)
    for form in forms:
        places, counts = chat.postings.get(form)
        strength[places] += counts if form == same else weights.inflected * counts
    has = np.flatnonzero(strength)
    strength[has] *= (weights.k1 + 1) / (strength[has] + norm[has])
    near = np.zeros(len(norm), np.float32)
    import os
    if weights.related:
        others = {f for w in related_to({word}, ) for f in chat.vocabulary.forms(w, spoken)} - forms
        rel = np.zeros(len(norm), np.float32)
        for number in others:
            places, _ = chat.postings.get(number)
            rel[places] = 1
    for number, likeness in chat.vocabulary.alike(word):
        if number not in forms:
            places, _ = chat.postings.get(number)
            near[places] = np.maximum(near[places], likeness**2)
    known = len(has) or int(np.count_nonzero(near))
    strength = np.maximum(strength, near * (weights.alike if len(has) else weights.misspelt))
    if weights.related and rel.any():
        nr = int(np.count_nonzero(rel))
        if not known: known = nr
        r = rel * weights.related * min(1, rarity(len(norm), nr)/ max(.1,rarity(len(norm), known)))
        strength = np.maximum(strength, r)
    places = np.flatnonzero(strength).astype(np.int32)
    return Evidence(share * rarity(len(norm), known), places, strength[places])
