"""One row per message: id, time, role, author, length, flags; in numpy arrays that grow."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_FIELDS: Final = {
    "ids": np.int64, "times": np.float64, "lengths": np.float32, "authors": np.int32, "is_user": np.bool_,
    "is_question": np.bool_, "has_time": np.bool_, "has_number": np.bool_,
     "is_alive": np.bool_, "texts": np.int64,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """What is kept of one message besides its words.

    Attributes:
        length: Tokens.
        has_time, has_number: Whether it could answer "when" or "how many".
        text: A hash of its normalised text: equal for messages that say the same.
    """

    id: int
    time: float
    length: int
    author: int
    is_user: bool
    is_question: bool
    has_time: bool
    has_number: bool
    text: int


class Columns:
    """Rows in conversation order. A row's position never changes."""

    def __init__(self) -> None:
        self._arrays: dict[str, NDArray[Any]] = {name: np.zeros(16, kind) for name, kind in _FIELDS.items()}
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def size_bytes(self) -> int:
        """Estimated bytes."""
        return sum(array.nbytes for array in self._arrays.values())

    def extend(self, rows: Sequence[Row]) -> None:
        """Append rows."""
        need = self._size + len(rows)
        if need > len(self._arrays["ids"]):
            room = max(need, 2 * self._size)
            self._arrays = {name: np.resize(array, room) for name, array in self._arrays.items()}
        for position, row in enumerate(rows, self._size):
            self.put(position, row)
        self._size = need

    def put(self, position: int, row: Row) -> None:
        """Write a row over another."""
        arrays = self._arrays
        arrays["ids"][position], arrays["times"][position], arrays["lengths"][position] = row.id, row.time, row.length
        arrays["authors"][position], arrays["is_user"][position] = row.author, row.is_user
        arrays["is_question"][position], arrays["texts"][position] = row.is_question, row.text
        arrays["has_time"][position], arrays["has_number"][position] = row.has_time, row.has_number
        arrays["is_alive"][position] = True

    def kill(self, positions: NDArray[np.int32]) -> None:
        """Mark rows as removed."""
        self._arrays["is_alive"][positions] = False
        self._arrays["lengths"][positions] = 0

    def __getattr__(self, name: str) -> NDArray[Any]:
        try:
            return self._arrays[name][: self._size]
        except KeyError:
            raise AttributeError(name) from None
