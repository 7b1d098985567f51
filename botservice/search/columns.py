"""One row per message: id, time, author, length, what it could answer; in numpy arrays that grow."""

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from botservice.search.weights import Weights

_TALK_SECONDS: Final = 6 * 3600
_KINDS: Final = {
    "id": np.int64,
    "time": np.float64,
    "length": np.float32,
    "author": np.int32,
    "is_user": np.bool_,
    "is_question": np.bool_,
    "has_time": np.bool_,
    "text": np.int64,
    "said": np.int64,
    "source": np.int64,
}
_LINKS: Final = {"onward": np.float32, "backward": np.float32, "before": np.float64, "after": np.float32}
_WORKED_OUT: Final = {"standing": np.float32, "speaker": np.int32, **_LINKS}
_FIRST_ROOM: Final = 16


class MessageRows(NamedTuple):
    """What is kept of messages besides their words, a list for each field.

    Attributes:
        time: Seconds since the epoch.
        length: Tokens.
        author: A number of People; 0 for nobody.
        has_time: Whether it could answer "when".
        text: A hash of its normalised text, equal for messages that say the same.
        said: A hash that is equal for messages of one author that differ in order, case, signs or weak words at most.
        source: A hash of its text as it is, to see whether it was changed.
    """

    id: list[int]
    time: list[float]
    length: list[int]
    author: list[int]
    is_user: list[bool]
    is_question: list[bool]
    has_time: list[bool]
    text: list[int]
    said: list[int]
    source: list[int]


class Columns:
    """Rows in conversation order. A row's position never changes; a removed one stays as a gap.

    What scoring takes of a row for every question is worked out when it comes: "standing", what it is worth by itself;
    "speaker", who said it, -1 for a question; "onward" and "before", what of a word and of a score reaches it from the
    row before, if they are one talk; "backward" and "after", what of its own reaches that one. Of a word less does,
    unless they are of two people.
    """

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        kinds = {**_KINDS, **_WORKED_OUT}
        self._arrays: dict[str, NDArray[Any]] = {name: np.zeros(_FIRST_ROOM, kind) for name, kind in kinds.items()}
        self._alive = np.zeros(_FIRST_ROOM, np.bool_)
        self._size = self._words = 0

    def __len__(self) -> int:
        return self._size

    @property
    def size_bytes(self) -> int:
        """Estimated bytes."""
        return self._alive.nbytes + sum(array.nbytes for array in self._arrays.values())

    def extend(self, rows: MessageRows) -> None:
        """Append rows."""
        end = self._size + len(rows.id)
        if end > len(self._alive):
            room = max(end, self._size + self._size // 2)
            self._arrays = {name: np.resize(array, room) for name, array in self._arrays.items()}
            self._alive = np.resize(self._alive, room)
        self._alive[self._size : end] = True
        self._size, first = end, self._size
        self._words += sum(rows.length)
        if len(rows.id) == 1:
            values: Any
            for name, values in zip(_KINDS, rows, strict=True):
                self._arrays[name][first] = values[0]
            self._work_out_one(first)
            return
        for name, values in zip(_KINDS, rows, strict=True):
            self._arrays[name][first:end] = values
        self._work_out(first, end)

    def put(self, position: int, row: MessageRows) -> None:
        """Write one row over another."""
        self._words += row.length[0] - int(self._arrays["length"][position])
        for name, values in zip(_KINDS, row, strict=True):
            self._arrays[name][position : position + 1] = values
        self._work_out(position, min(position + 2, self._size))

    def _work_out(self, first: int, end: int) -> None:
        arrays, weights = self._arrays, self._weights
        standing = np.ones(end - first, np.float32)
        standing += weights.user * arrays["is_user"][first:end]
        standing -= weights.question * arrays["is_question"][first:end]
        arrays["standing"][first:end] = standing
        speakers = arrays["author"][first:end] * 2 + arrays["is_user"][first:end]
        arrays["speaker"][first:end] = np.where(arrays["is_question"][first:end], -1, speakers)
        first = max(first, 1)
        times, after_question = arrays["time"][first - 1 : end], arrays["is_question"][first - 1 : end - 1]
        is_linked = np.abs(times[1:] - times[:-1]) < _TALK_SECONDS
        author, is_user = arrays["author"][first - 1 : end], arrays["is_user"][first - 1 : end]
        is_shared = is_user[1:] & is_user[:-1] & (author[1:] != author[:-1])
        reach = is_linked * np.where(is_shared, 1, weights.unshared)
        arrays["onward"][first:end] = reach * np.where(after_question, weights.onward_from_question, weights.onward)
        arrays["before"][first:end] = is_linked * (weights.previous + weights.after_question * after_question)
        arrays["backward"][first:end] = reach * weights.backward
        arrays["after"][first:end] = is_linked * weights.next

    def _work_out_one(self, place: int) -> None:
        """Do what _work_out does for one row, in a tenth of its time: a turn brings two."""
        arrays, weights = self._arrays, self._weights
        is_question, is_user = arrays["is_question"].item(place), arrays["is_user"].item(place)
        arrays["standing"][place] = float(np.float32(1 + weights.user * is_user)) - weights.question * is_question
        arrays["speaker"][place] = -1 if is_question else 2 * arrays["author"].item(place) + is_user
        if place:
            times, after_question = arrays["time"], arrays["is_question"].item(place - 1)
            is_linked = abs(times.item(place) - times.item(place - 1)) < _TALK_SECONDS
            is_shared = is_user and arrays["is_user"].item(place - 1)
            is_shared = is_shared and arrays["author"].item(place) != arrays["author"].item(place - 1)
            reach = is_linked * (1 if is_shared else weights.unshared)
            onward = weights.onward_from_question if after_question else weights.onward
            arrays["onward"][place], arrays["backward"][place] = reach * onward, reach * weights.backward
            arrays["before"][place] = is_linked * (weights.previous + weights.after_question * after_question)
            arrays["after"][place] = is_linked * weights.next

    def remove(self, positions: NDArray[np.int32]) -> None:
        """Mark rows as removed."""
        self._alive[positions] = False
        self._words -= int(self._arrays["length"][positions].sum())
        self._arrays["length"][positions] = 0

    def column(self, name: str) -> NDArray[Any]:
        """Return one field of all rows; do not write to it."""
        return self._arrays[name][: self._size]

    @property
    def mean_length(self) -> float:
        """The mean of all lengths; a removed row is one of length 0, and there is one row at least."""
        return self._words / self._size

    @property
    def is_alive(self) -> NDArray[np.bool_]:
        """Whether each row is still there."""
        return self._alive[: self._size]
