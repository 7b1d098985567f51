"""Finding equal and largest numbers, without keeping other threads waiting."""

from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", bound=np.generic)

_PARTS: Final = 16


def each_once(values: NDArray[Number]) -> NDArray[Number]:
    """Return values in order, each once: as numpy.unique, which keeps all other threads waiting while it hashes.

    Besides, numpy.unique loads a part of numpy that takes a third of a second at its first use.
    """
    ordered = np.sort(values)
    return ordered[_differs(ordered)]


def count_each(values: NDArray[Number]) -> tuple[NDArray[Number], NDArray[np.int64]]:
    """Return values in order, each once, and how often each is there."""
    ordered = np.sort(values)
    (bounds,) = np.concatenate([_differs(ordered), [True]]).nonzero()  # the last one is the end
    return ordered[bounds[:-1]], bounds[1:] - bounds[:-1]


def first_of_each(values: NDArray[Number]) -> NDArray[np.int64]:
    """Return where each of values stands first, in the order of values."""
    order = np.argsort(values, kind="stable")
    return order[_differs(values[order])]


def scaled(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return scores with 1 for the largest; as they are where none is above 0."""
    top = float(scores.max(initial=0))
    return scores / np.float32(top) if top > 0 else scores


def largest(values: NDArray[np.float32], place: int) -> float:
    """Return the value at a place, from 1, where the largest comes first; there are as many."""
    # Partitioning takes long over many values: first those above the largest of as many parts, which are no more.
    size = len(values) // _PARTS
    if size >= place:
        least = largest(values[: size * _PARTS].reshape(_PARTS, size).max(axis=0), place)
        values = values[values > np.float32(least)]
        if len(values) < place:
            return least
    return float(np.partition(values, len(values) - place)[len(values) - place])


def highest(values: NDArray[np.float32], count: int) -> NDArray[np.int64]:
    """Return where the largest count of values above 0 stand, in no order; of equals the last."""
    least = largest(values, count) if len(values) > count else 0.0
    (above,) = (values > np.float32(least)).nonzero()
    if least <= 0 or len(above) == count:
        return above
    (equal,) = (values == np.float32(least)).nonzero()
    return np.concatenate([above, equal[len(above) - count :]])


def _differs(ordered: NDArray[Number]) -> NDArray[np.bool_]:
    """Return whether each value differs from the one before it."""
    differs = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=differs[1:])
    return differs
