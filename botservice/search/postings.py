"""Which message has which word how often: an inverted index in numpy arrays.

A few messages go into a small writable tail; many are set aside, and sorted in before the next reading.
"""

from array import array
from bisect import bisect
from collections import Counter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botservice.search.arrays import count_each

_MERGE_AT: Final = 4096
_ASIDE_AT: Final = 1024
_COMPACT_AT: Final = 64

Positions = NDArray[np.int32]
Counts = NDArray[np.float32]
Entries = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.uint8]]  # words, positions, counts


class Postings:
    """Word id to (positions, counts). A position appears once per word; they are in order."""

    def __init__(self) -> None:
        self._starts = np.zeros(1, np.int64)
        self._positions = np.zeros(0, np.int32)
        self._counts = np.zeros(0, np.uint8)
        self._aside: list[Entries] = []
        self._tail: dict[int, tuple[array[int], array[int]]] = {}
        self._tail_size = 0

    def __len__(self) -> int:
        return len(self._positions) + self._tail_size

    @property
    def size_bytes(self) -> int:
        """Estimated bytes."""
        arrays = self._starts.nbytes + self._positions.nbytes + self._counts.nbytes
        arrays += sum(column.nbytes for entries in self._aside for column in entries)
        return arrays + 350 * len(self._tail) + 40 * self._tail_size

    @property
    def _most_in_tail(self) -> int:
        return max(_MERGE_AT, len(self._positions) // 8)

    def add(self, words: NDArray[np.int32], positions: NDArray[np.int32]) -> None:
        """Add occurrences: words[i] stands in the message at positions[i]."""
        if len(words) <= _ASIDE_AT:
            for position in dict.fromkeys(positions.tolist()):
                self.add_one(words[positions == position].tolist(), position)
            return
        keys, counts = count_each(words.astype(np.int64) << 32 | positions)
        entries: Entries = (
            (keys >> 32).astype(np.int32),
            (keys & 0xFFFFFFFF).astype(np.int32),
            np.minimum(counts, 255).astype(np.uint8),
        )
        self._aside.append(entries)

    def add_one(self, words: list[int], position: int) -> None:
        """Add the words of one short message."""
        entries = Counter(words)
        for word, count in entries.items():
            known = self._tail.get(word)
            if known is None:
                known = self._tail[word] = array("i"), array("B")
            where, many = known
            place = bisect(where, position) if where and where[-1] > position else len(where)
            where.insert(place, position)
            many.insert(place, min(count, 255))
        self._tail_size += len(entries)
        if self._tail_size > self._most_in_tail:
            self._merge()

    def _merge(self) -> None:
        """Put what is set aside and the tail into the arrays."""
        tail = list(self._tail.items())
        in_tail: Entries = (
            np.repeat(np.array([word for word, _ in tail], np.int32), [len(where) for _, (where, _) in tail]),
            np.array([position for _, (where, _) in tail for position in where], np.int32),
            np.array([count for _, (_, many) in tail for count in many], np.uint8),
        )
        parts = [(self._words(), self._positions, self._counts), *self._aside, in_tail]
        words, positions, counts = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        order = np.argsort(words.astype(np.int64) << 32 | positions, kind="stable")
        self._positions, self._counts = positions[order], counts[order]
        self._set_starts(words[order])
        self._aside, self._tail, self._tail_size = [], {}, 0

    def _settle(self) -> None:
        if self._aside:
            self._merge()

    def compact(self) -> None:
        """Put everything into the arrays: many chats at rest take less room then, and less of the garbage collector."""
        if self._aside or self._tail_size > _COMPACT_AT:
            self._merge()

    def _words(self) -> NDArray[np.int32]:
        """Return the word of each entry."""
        return np.repeat(np.arange(len(self._starts) - 1, dtype=np.int32), np.diff(self._starts))

    def _set_starts(self, words: NDArray[np.int32]) -> None:
        """Note where each word begins in words, which are in order."""
        # Unlike bincount, searchsorted leaves the interpreter to other threads.
        last = int(words[-1]) if len(words) else 0
        self._starts = np.searchsorted(words, np.arange(last + 2)).astype(np.int64)

    def discard(self, positions: NDArray[np.int32]) -> None:
        """Forget all that stands in the messages at positions."""
        self._settle()
        gone = set(positions.tolist())
        for word, (where, many) in list(self._tail.items()):
            if not gone.isdisjoint(where):
                kept = [(position, count) for position, count in zip(where, many, strict=True) if position not in gone]
                self._tail[word] = array("i", [where for where, _ in kept]), array("B", [count for _, count in kept])
        keep = ~np.isin(self._positions, positions)
        if not keep.all():
            self._set_starts(self._words()[keep])
            self._positions, self._counts = self._positions[keep], self._counts[keep]

    def count(self, word: int) -> int:
        """Return how many messages have word."""
        self._settle()
        base = int(self._starts[word + 1] - self._starts[word]) if word + 1 < len(self._starts) else 0
        return base + len(self._tail.get(word, ([],))[0])

    def places_of(self, word: int) -> Positions:
        """Return where word stands, in no order."""
        self._settle()
        found = self._positions[:0]
        if word + 1 < len(self._starts):
            found = self._positions[self._starts.item(word) : self._starts.item(word + 1)]
        tail = self._tail.get(word)
        return found if tail is None else np.concatenate([found, np.array(tail[0], np.int32)])

    def get(self, word: int) -> tuple[Positions, Counts]:
        """Return where word stands and how often."""
        self._settle()
        base = slice(0, 0)
        if word + 1 < len(self._starts):
            base = slice(int(self._starts[word]), int(self._starts[word + 1]))
        positions, counts = self._positions[base], self._counts[base]
        tail = self._tail.get(word)
        if tail is not None and tail[0]:
            is_after = not len(positions) or tail[0][0] > positions[-1]
            positions = np.concatenate([positions, np.array(tail[0], np.int32)])
            counts = np.concatenate([counts, np.array(tail[1], np.uint8)])
            if not is_after:  # a message was changed
                order = positions.argsort()
                positions, counts = positions[order], counts[order]
        return positions, counts.astype(np.float32)
