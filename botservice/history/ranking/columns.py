"""One row per message: id, time, author, length, what it could answer; in numpy arrays that grow."""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

_KINDS: Final = {
    "id": np.int64,
    "position": np.int32,
    "time": np.float64,
    "length": np.float32,
    "author": np.int32,
    "is_user": np.bool_,
    "is_question": np.bool_,
    "has_time": np.bool_,
    "has_number": np.bool_,
    "text": np.int64,
    "said": np.int64,
    "source": np.int64,
}
_FIRST_ROOM: Final = 16


class Rows(NamedTuple):
    """What is kept of messages besides their words, a list for each field.

    Attributes:
        position: The message's number in its context.
        time: Seconds since the epoch.
        length: Tokens.
        author: A number of People; 0 for nobody.
        has_time, has_number: Whether it could answer "when" or "how many".
        text: A hash of its normalised text, equal for messages that say the same.
        said: A hash that is equal for messages of one author that differ in order, case, signs or weak words at most.
        source: A hash of its text as it is, to see whether it was changed.
    """

    id: list[int]
    position: list[int]
    time: list[float]
    length: list[int]
    author: list[int]
    is_user: list[bool]
    is_question: list[bool]
    has_time: list[bool]
    has_number: list[bool]
    text: list[int]
    said: list[int]
    source: list[int]


class Columns:
    """Rows in conversation order. A row's position never changes; a removed one stays as a gap.

    Attributes:
        follows: Of a part of a conversation, whether each row but the first came right after the one before it.
    """

    def __init__(self) -> None:
        self.follows: NDArray[np.bool_] | None = None
        self._arrays: dict[str, NDArray[Any]] = {name: np.zeros(_FIRST_ROOM, kind) for name, kind in _KINDS.items()}
        self._alive = np.zeros(_FIRST_ROOM, np.bool_)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def size_bytes(self) -> int:
        """Estimated bytes."""
        return self._alive.nbytes + sum(array.nbytes for array in self._arrays.values())

    def part(self, places: NDArray[np.int64]) -> "Columns":
        """Return some rows, ascending, as columns of their own."""
        found = Columns()
        found._arrays = {name: array[places] for name, array in self._arrays.items()}
        found._alive, found._size = self._alive[places], len(places)
        found.follows = np.diff(places) == 1
        return found

    def extend(self, rows: Rows) -> None:
        """Append rows."""
        end = self._size + len(rows.id)
        if end > len(self._alive):
            room = max(end, self._size + self._size // 2)
            self._arrays = {name: np.resize(array, room) for name, array in self._arrays.items()}
            self._alive = np.resize(self._alive, room)
        for array, values in zip(self._arrays.values(), rows, strict=True):
            array[self._size : end] = values
        self._alive[self._size : end] = True
        self._size = end

    def put(self, position: int, row: Rows) -> None:
        """Write one row over another."""
        for array, values in zip(self._arrays.values(), row, strict=True):
            array[position : position + 1] = values

    def remove(self, positions: NDArray[np.int32]) -> None:
        """Mark rows as removed."""
        self._alive[positions] = False
        self._arrays["length"][positions] = 0

    def column(self, name: str) -> NDArray[Any]:
        """Return one field of all rows; do not write to it."""
        return self._arrays[name][: self._size]

    @property
    def is_alive(self) -> NDArray[np.bool_]:
        """Whether each row is still there."""
        return self._alive[: self._size]
