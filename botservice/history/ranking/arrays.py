"""Arithmetic that leaves the interpreter to other threads."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar("Number", bound=np.generic)


def each_once(values: NDArray[Number]) -> NDArray[Number]:
    """Return values in order, each once: as numpy.unique, which keeps all other threads waiting while it hashes."""
    ordered = np.sort(values)
    is_first = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_first[1:])
    return ordered[is_first]
