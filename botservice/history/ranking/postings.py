"""Which message has which word how often: an inverted index in numpy arrays, with a small writable tail."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

_MERGE_AT: Final = 4096

Positions = NDArray[np.int32]
Counts = NDArray[np.float32]


class Postings:
    """Word id to (positions, counts). A position appears once per word."""

    def __init__(self) -> None:
        self._starts = np.zeros(1, np.int64)
        self._positions = np.zeros(0, np.int32)
        self._counts = np.zeros(0, np.uint8)
        self._tail: dict[int, tuple[list[int], list[int]]] = {}
        self._tail_size = 0

    @property
    def size_bytes(self) -> int:
        """Estimated bytes."""
        arrays = self._starts.nbytes + self._positions.nbytes + self._counts.nbytes
        return arrays + 200 * len(self._tail) + 72 * self._tail_size

    def add(self, words: NDArray[np.int32], positions: NDArray[np.int32]) -> None:
        """Add occurrences: words[i] stands in the message at positions[i]."""
        keys, counts = np.unique(words.astype(np.int64) << 32 | positions, return_counts=True)
        entries = (keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32), np.minimum(counts, 255)
        if len(keys) > _MERGE_AT // 4:
            self._merge(*entries)
            return
        for word, position, count in zip(*(entry.tolist() for entry in entries), strict=True):
            where, many = self._tail.setdefault(word, ([], []))
            where.append(position)
            many.append(count)
        self._tail_size += len(keys)
        if self._tail_size > max(_MERGE_AT, len(self._positions) // 8):
            self._merge()

    def _merge(self, *more: NDArray[np.int32]) -> None:
        base = np.repeat(np.arange(len(self._starts) - 1, dtype=np.int32), np.diff(self._starts))
        tail_words = np.repeat(
            np.fromiter(self._tail, np.int32, len(self._tail)), [len(where) for where, _ in self._tail.values()] or [0][:0]
        ).astype(np.int32)
        tail_positions = np.array([p for where, _ in self._tail.values() for p in where], np.int32)
        tail_counts = np.array([c for _, many in self._tail.values() for c in many], np.uint8)
        new = more or (np.zeros(0, np.int32),) * 3
        words = np.concatenate([base, tail_words, new[0]])
        self._keep(
            words,
            np.concatenate([self._positions, tail_positions, new[1]]),
            np.concatenate([self._counts, tail_counts, new[2].astype(np.uint8)]),
        )

    def _keep(self, words: NDArray[np.int32], positions: Positions, counts: NDArray[np.uint8]) -> None:
        order = np.argsort(words, kind="stable")
        self._positions, self._counts = positions[order].astype(np.int32), counts[order]
        self._starts = np.concatenate([[0], np.cumsum(np.bincount(words, minlength=1))]).astype(np.int64)
        self._tail, self._tail_size = {}, 0

    def discard(self, positions: NDArray[np.int32]) -> None:
        """Forget all that stands in the messages at positions."""
        self._merge()
        words = np.repeat(np.arange(len(self._starts) - 1, dtype=np.int32), np.diff(self._starts))
        keep = ~np.isin(self._positions, positions)
        self._keep(words[keep], self._positions[keep], self._counts[keep])

    def get(self, word: int) -> tuple[Positions, Counts]:
        """Return where word stands and how often."""
        base = slice(0, 0)
        if word + 1 < len(self._starts):
            base = slice(int(self._starts[word]), int(self._starts[word + 1]))
        positions, counts = self._positions[base], self._counts[base].astype(np.float32)
        tail = self._tail.get(word)
        if tail is None:
            return positions, counts
        return (
            np.concatenate([positions, np.array(tail[0], np.int32)]),
            np.concatenate([counts, np.array(tail[1], np.float32)]),
        )
