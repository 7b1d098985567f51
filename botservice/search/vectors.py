"""Vectors of messages, where an embedder gives them."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

_ROWS_AT_ONCE: Final = 512  # what stays in the processor's cache between two steps
_STEPS: Final = 127
_FEW: Final = 2  # vectors: of so few the mean says half as much about a chat
_LEAST: Final = 1e-6


class Vectors:
    """One unit vector per message that has one, each number as one of 255 steps of its row's largest.

    That ranks the same (measured: docs/search.md), takes half the bytes of half floats, and a tenth of their time.
    """

    def __init__(self) -> None:
        self._rows: dict[int, int] = {}
        self._places = np.zeros(0, np.int32)
        self._matrix = np.zeros((0, 0), np.int8)
        self._scales = np.zeros(0, np.float32)
        self._sum = np.zeros(0, np.float32)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def size_bytes(self) -> int:
        """Estimated bytes."""
        return self._matrix.nbytes + self._scales.nbytes + self._places.nbytes + 110 * len(self._rows)

    def put(self, places: NDArray[np.int32], matrix: NDArray[np.float32]) -> None:
        """Set the vectors of the messages at places; a matrix of another width replaces all that is there."""
        if matrix.shape[1] != self._matrix.shape[1]:
            self._rows, self._size = {}, 0
            self._matrix = np.zeros((0, matrix.shape[1]), np.int8)
            self._places, self._scales = np.zeros(0, np.int32), np.zeros(0, np.float32)
            self._sum = np.zeros(matrix.shape[1], np.float32)
        norms = np.linalg.norm(matrix, axis=1, keepdims=True)
        unit = np.nan_to_num(matrix / np.where(norms > 0, norms, 1))
        scales = np.maximum(np.abs(unit).max(axis=1), 1e-12) / _STEPS
        steps = np.rint(unit / scales[:, None]).astype(np.int8)
        self._reserve(self._size + len(places))
        for place, vector, scale in zip(places.tolist(), steps, scales, strict=True):
            row = self._rows.get(place)
            if row is None:
                row = self._rows[place] = self._size
                self._size += 1
            else:
                self._sum -= self._vector(row)
            self._matrix[row], self._scales[row], self._places[row] = vector, scale, place
            self._sum += self._vector(row)

    def _vector(self, row: int) -> NDArray[np.float32]:
        vector: NDArray[np.float32] = self._matrix[row].astype(np.float32) * self._scales[row]
        return vector

    def _reserve(self, need: int) -> None:
        if need > len(self._matrix):
            more = max(need, self._size + self._size // 2) - len(self._matrix)
            self._matrix = np.concatenate([self._matrix, np.zeros((more, self._matrix.shape[1]), np.int8)])
            self._scales = np.concatenate([self._scales, np.zeros(more, np.float32)])
            self._places = np.concatenate([self._places, np.zeros(more, np.int32)])

    def discard(self, places: NDArray[np.int32]) -> None:
        """Forget the vectors of the messages at places."""
        for place in places.tolist():
            row = self._rows.pop(place, None)
            if row is None:
                continue
            self._sum -= self._vector(row)
            last = self._size - 1
            if row != last:
                for column in (self._matrix, self._scales, self._places):
                    column[row] = column[last]
                self._rows[int(self._places[last])] = row
            self._size = last

    def similarities(self, query: NDArray[Any], size: int) -> NDArray[np.float32] | None:
        """Compare a question's vector with those of size messages.

        All texts of one chat have much in common, and some models put any two texts close to each other. So the mean
        of the chat's vectors is taken away from both: what is left is what tells its messages apart.

        Returns:
            The cosine for each message, nan where it has no vector; None if no message has one.
        """
        vector = np.asarray(query, np.float32).ravel()
        norm = float(np.linalg.norm(vector))
        if self._size == 0 or len(vector) != self._matrix.shape[1] or not np.isfinite(norm) or norm == 0:
            return None
        mean = self._sum / np.float32(self._size + _FEW)
        asked = (vector / norm).astype(np.float32) - mean
        both = np.stack([asked, mean], axis=1)
        products = np.empty((self._size, 2), np.float32)
        for first in range(0, self._size, _ROWS_AT_ONCE):
            rows = slice(first, min(first + _ROWS_AT_ONCE, self._size))
            products[rows] = self._matrix[rows].astype(np.float32) @ both
        products *= self._scales[: self._size, None]
        distances = np.sqrt(np.maximum(1 - 2 * products[:, 1] + mean @ mean, _LEAST))
        near = (products[:, 0] - mean @ asked) / (distances * max(float(np.linalg.norm(asked)), _LEAST))
        found = np.full(size, np.nan, np.float32)
        found[self._places[: self._size]] = near
        return found
