"""Finding equal numbers, without keeping other threads waiting."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", bound=np.generic)


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


def _differs(ordered: NDArray[Number]) -> NDArray[np.bool_]:
    """Return whether each value differs from the one before it."""
    differs = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=differs[1:])
    return differs
