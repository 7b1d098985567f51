"""What a message gains from the talk around it: an answer seldom repeats the words of its question."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from botservice.history.ranking.arrays import each_once
from botservice.history.ranking.columns import Columns
from botservice.history.ranking.evidence import Evidence, Scores
from botservice.history.ranking.weights import Weights

_TALK_SECONDS: Final = 6 * 3600
_SPARSE: Final = 25  # below one message in this many, places are cheaper to follow than whole arrays


def with_those_around(places: NDArray[np.int64], size: int, reach: int) -> NDArray[np.int64]:
    """Return places in a chat of size and all that are within reach of one, once each, ascending."""
    around = each_once((places[:, None] + np.arange(-reach, reach + 1)).ravel())
    inside: NDArray[np.int64] = around[(around >= 0) & (around < size)]
    return inside


class Talk:
    """Which messages follow each other in one talk, and how much of a word reaches from one to the next."""

    def __init__(self, columns: Columns, weights: Weights) -> None:
        self._weights, times = weights, columns.column("time")
        self._linked: NDArray[np.bool_] = np.abs(times[1:] - times[:-1]) < _TALK_SECONDS
        if columns.follows is not None:
            self._linked &= columns.follows
        self._asked: NDArray[np.bool_] = columns.column("is_question")[:-1]
        self._onward = np.zeros(len(columns), np.float32)
        self._onward[1:] = self._linked * np.where(self._asked, weights.onward_from_question, weights.onward)
        self._backward = np.zeros(len(columns), np.float32)
        self._backward[:-1] = self._linked * weights.backward

    def around(self, evidence: list[Evidence]) -> Scores:
        """Return for each message how much of a question stands in it or near it.

        Each word counts once, where it is nearest: the sum over words finds the stretch of talk that has all of
        them, where a sum over messages would find the one that repeats a frequent word.
        """
        total = np.zeros(len(self._onward), np.float32)
        for part in evidence:
            near = np.zeros(len(self._onward), np.float32)
            near[part.places] = np.minimum(part.strength, 1)
            if len(part.places) * _SPARSE < len(near):
                self._spread(near, part.places)
            else:
                self._spread_all(near)
            total += part.gain * near
        return total

    def near(self, strength: Scores) -> Scores:
        """Return the greatest strength that stands in a message or reaches it."""
        near = strength.copy()
        self._spread_all(near)
        return near

    def _spread(self, near: Scores, start: NDArray[np.int32]) -> None:
        """Let the strength of the messages at start reach those around them."""
        own = near[start]
        for step, reach in ((1, self._onward), (-1, self._backward)):
            places, strength = start, own
            for _ in range(self._weights.reach):
                places = places + step
                inside = (places >= 0) & (places < len(near))
                places, strength = places[inside], strength[inside]
                strength = strength * reach[places]
                near[places] = np.maximum(near[places], strength)

    def _spread_all(self, near: Scores) -> None:
        """Do the same for a word that many messages have: there, whole arrays are faster."""
        onward, backward = near.copy(), near.copy()
        for _ in range(self._weights.reach):
            onward[1:] = onward[:-1] * self._onward[1:]
            onward[0] = 0
            backward[:-1] = backward[1:] * self._backward[:-1]
            backward[-1] = 0
            np.maximum(near, onward, out=near)
            np.maximum(near, backward, out=near)

    def from_neighbours(self, own: Scores) -> Scores:
        """Return what a message gains from the scores of its neighbours, most from a question before it."""
        gained = np.zeros_like(own)
        before = self._weights.previous + self._weights.after_question * self._asked
        gained[1:] += before * own[:-1] * self._linked
        gained[:-1] += self._weights.next * own[1:] * self._linked
        return gained
