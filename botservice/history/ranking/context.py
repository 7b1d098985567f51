"""What a message gains from the talk around it: an answer seldom repeats the words of its question."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from botservice.history.ranking.columns import Columns
from botservice.history.ranking.evidence import Evidence, Scores
from botservice.history.ranking.weights import Weights

_TALK_SECONDS: Final = 6 * 3600


def links(columns: Columns) -> NDArray[np.bool_]:
    """Return for each message but the first whether it continues the talk of the one before it."""
    return np.abs(np.diff(columns.times)) < _TALK_SECONDS


def around(evidence: list[Evidence], columns: Columns, weights: Weights) -> Scores:
    """Return for each message how much of the question stands in it or near it.

    Each word counts once, with its nearest place: the sum over words finds the stretch of talk that has all of them,
    where a sum over messages would find the one that repeats a frequent word.
    """
    size = len(columns)
    linked = links(columns)
    onward = np.zeros(size, np.float32)
    onward[1:] = linked * np.where(columns.is_question[:-1], weights.onward_from_question, weights.onward)
    backward = np.zeros(size, np.float32)
    backward[:-1] = linked * weights.backward
    total = np.zeros(size, np.float32)
    for part in evidence:
        near = np.zeros(size, np.float32)
        near[part.places] = np.minimum(part.strength, 1)
        for step, reach in ((1, onward), (-1, backward)):
            places, strength = part.places, near[part.places]
            for _ in range(int(weights.reach)):
                places = places + step
                keep = (places >= 0) & (places < size)
                places, strength = places[keep], strength[keep]
                strength = strength * reach[places]
                near[places] = np.maximum(near[places], strength)
        total += part.gain * near
    return total


def from_neighbours(own: Scores, columns: Columns, weights: Weights) -> Scores:
    """Return what a message gains from the scores of the messages just before and after it."""
    gained = np.zeros_like(own)
    linked = links(columns)
    if len(linked):
        before = weights.previous + weights.after_question * columns.is_question[:-1]
        gained[1:] += before * own[:-1] * linked
        gained[:-1] += weights.next * own[1:] * linked
    if len(linked) > 1:
        linked_twice = linked[1:] & linked[:-1]
        gained[2:] += weights.further * own[:-2] * linked_twice
        gained[:-2] += weights.further * own[2:] * linked_twice
    return gained
