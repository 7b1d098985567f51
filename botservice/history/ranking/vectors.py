"""Vectors of messages, where an embedder gives them."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


class Vectors:
    """One unit vector per message that has one, as half floats: search ranks, and half the bytes rank the same."""

    def __init__(self) -> None:
        self._rows: dict[int, int] = {}
        self._places = np.zeros(0, np.int32)
        self._matrix = np.zeros((0, 0), np.float16)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def size_bytes(self) -> int:
        """Estimated bytes."""
        return self._matrix.nbytes + self._places.nbytes + 110 * len(self._rows)

    def put(self, places: NDArray[np.int32], matrix: NDArray[np.float32]) -> None:
        """Set the vectors of the messages at places; a matrix of another width replaces all that is there."""
        if matrix.shape[1] != self._matrix.shape[1]:
            self._rows, self._size = {}, 0
            self._matrix, self._places = np.zeros((0, matrix.shape[1]), np.float16), np.zeros(0, np.int32)
        norms = np.linalg.norm(matrix, axis=1, keepdims=True)
        unit = np.nan_to_num(matrix / np.where(norms > 0, norms, 1)).astype(np.float16)
        need = self._size + len(places)
        if need > len(self._matrix):
            room = max(need, self._size + self._size // 2)
            self._matrix = np.concatenate(
                [self._matrix, np.zeros((room - len(self._matrix), unit.shape[1]), np.float16)]
            )
            self._places = np.concatenate([self._places, np.zeros(room - len(self._places), np.int32)])
        for place, vector in zip(places.tolist(), unit, strict=True):
            row = self._rows.get(place)
            if row is None:
                row = self._rows[place] = self._size
                self._size += 1
            self._matrix[row], self._places[row] = vector, place

    def discard(self, places: NDArray[np.int32]) -> None:
        """Forget the vectors of the messages at places."""
        for place in places.tolist():
            row = self._rows.pop(place, None)
            if row is None:
                continue
            last = self._size - 1
            if row != last:
                self._matrix[row], self._places[row] = self._matrix[last], self._places[last]
                self._rows[int(self._places[last])] = row
            self._size = last

    def similarities(self, query: NDArray[Any], size: int) -> NDArray[np.float32] | None:
        """Return the cosine to query of each of size messages, nan where a message has no vector; None without any."""
        vector = np.asarray(query, np.float32).ravel()
        norm = float(np.linalg.norm(vector))
        if self._size == 0 or len(vector) != self._matrix.shape[1] or not np.isfinite(norm) or norm == 0:
            return None
        found = np.full(size, np.nan, np.float32)
        found[self._places[: self._size]] = self._matrix[: self._size].astype(np.float32) @ (vector / norm)
        return found
