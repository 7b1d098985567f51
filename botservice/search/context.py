"""What a message gains from the talk around it: an answer seldom repeats the words of its question."""

import numpy as np
from numpy.typing import NDArray

from botservice.search.columns import Columns
from botservice.search.evidence import Scores
from botservice.search.weights import Weights


def with_those_around(places: NDArray[np.int64], size: int, reach: int) -> NDArray[np.int64]:
    """Return places in a chat of size and all that are within reach of one, once each, ascending."""
    is_near = np.zeros(size + 2 * reach, np.bool_)
    is_near[(places[:, None] + np.arange(2 * reach + 1)).ravel()] = True
    return is_near[reach : reach + size].nonzero()[0]


class TalkLinks:
    """Which messages follow each other in one talk, and how much of a word reaches from one to the next."""

    def __init__(self, columns: Columns, weights: Weights) -> None:
        self._reach, self._before, self._after = weights.reach, columns.column("before"), columns.column("after")
        self._onward, self._backward = columns.column("onward"), columns.column("backward")

    def near(self, strength: Scores) -> Scores:
        """Return the greatest strength that stands in each message or reaches it; strength may have many rows.

        Each word counts once, where it is nearest: the sum over words finds the stretch of talk that has all of
        them, where a sum over messages would find the one that repeats a frequent word.
        """
        near, onward, backward = strength.copy(), strength, strength
        for step in range(1, self._reach + 1):
            onward = onward[..., :-1] * self._onward[step:]
            backward = backward[..., 1:] * self._backward[1 : len(self._backward) - step + 1]
            np.maximum(near[..., step:], onward, out=near[..., step:])
            np.maximum(near[..., :-step], backward, out=near[..., :-step])
        return near

    def from_neighbours(self, own: Scores) -> Scores:
        """Return what a message gains from the scores of its neighbours, most from a question before it."""
        gained = np.zeros_like(own)
        gained[1:] = self._before[1:] * own[:-1]
        gained[:-1] += self._after[1:] * own[1:]
        return gained
