"""Words that look alike, by the pairs of letters that they share: typos, inflections, parts of compounds."""

import unicodedata
from functools import lru_cache
from itertools import islice, pairwise
from operator import itemgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botservice.search.tokens import fold

_MIN_LENGTH: Final = 4
_MAX_LENGTH: Final = 32
_MIN_LIKENESS: Final = 0.5
_LEAST_SHARED: Final = 3  # pairs that two words of at least four letters share if they are that like
_MAX_FOUND: Final = 24
_MERGE_AT: Final = 4096  # pairs
_EDGE: Final = 2  # the code of what stands before and behind a word
_CODES: Final = 0x110000
_FROM_TO: Final = np.array([[0], [1]])  # what is behind a whole number is before the next one


def _is_fuzzy(word: str) -> bool:
    if _is_korean(word):
        return 2 <= len(word) <= _MAX_LENGTH // 3
    return _MIN_LENGTH <= len(word) <= _MAX_LENGTH and word[0] < "\u0e00" and word.isalpha()


def _is_korean(word: str) -> bool:
    return word[0] >= "\uac00" and min(word) >= "\uac00" and max(word) <= "\ud7a3"


def _letters(word: str) -> str:
    """Return the letters that words are compared by: a Korean syllable has two or three."""
    return unicodedata.normalize("NFD", word) if _is_korean(word) else fold(word)


def _grams(words: list[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the letter pairs of words, and the position of the word that each belongs to."""
    lengths = np.array([len(word) for word in words], np.int64) + 1
    joined = "".join([f"{chr(_EDGE)}{word}" for word in words]) + chr(_EDGE)
    codes = np.frombuffer(joined.encode("utf-32-le", "replace"), np.uint32).astype(np.int64)
    return codes[:-1] * _CODES + codes[1:], np.repeat(np.arange(len(words)), lengths)


@lru_cache(maxsize=64)
def _likeness(count: int) -> NDArray[np.float32]:
    """Return how like a word of so many pairs each one is, by how many they share (rows) and its own (columns)."""
    shared, lengths = np.arange(_MAX_LENGTH + 2, dtype=np.float32)[:, None], np.arange(_MAX_LENGTH + 2)
    shorter = np.clip(lengths, 1, count).astype(np.float32)
    within = np.where(shorter >= 6, 0.8 * shared / shorter, 0)
    return np.minimum(1, np.maximum(2 * shared / (lengths + count).astype(np.float32), within))


class _Pairs:
    """Letter pairs in order, and the word that each belongs to."""

    def __init__(self) -> None:
        self.grams = np.zeros(0, np.int64)
        self.owners = np.zeros(0, np.int32)

    def add(self, grams: NDArray[np.int64], owners: NDArray[np.int32]) -> None:
        """Sort more pairs in."""
        grams = np.concatenate([self.grams, grams])
        order = np.argsort(grams, kind="stable")
        self.grams, self.owners = grams[order], np.concatenate([self.owners, owners])[order]

    def owners_of(self, wanted: NDArray[np.int64]) -> list[NDArray[np.int32]]:
        """Return the words that have each of some pairs; nothing for a pair that none has."""
        if not len(self.grams):
            return []
        left, right = self.grams.searchsorted(wanted + _FROM_TO).tolist()
        return [self.owners[a:b] for a, b in zip(left, right, strict=True) if b > a]


class GramIndex:
    """Letter pairs of a growing list of words; the newest apart, so that a new word does not have all sorted again."""

    def __init__(self) -> None:
        self._seen = 0
        self._numbers = np.zeros(0, np.int64)
        self._lengths = np.zeros(0, np.int64)
        self._pairs, self._newest = _Pairs(), _Pairs()

    @property
    def size_bytes(self) -> int:
        """Estimated bytes."""
        pairs = sum(each.grams.nbytes + each.owners.nbytes for each in (self._pairs, self._newest))
        return self._numbers.nbytes + self._lengths.nbytes + pairs

    @property
    def _most_in_newest(self) -> int:
        return max(_MERGE_AT, len(self._pairs.grams) // 8)

    def extend(self, words: dict[str, int]) -> None:
        """Take in what words has grown by since the last call; its values are not looked at."""
        if len(words) == self._seen:
            return
        newest_first = islice(reversed(words), len(words) - self._seen)  # not through all that is known already
        new = {number: word for number, word in enumerate(list(newest_first)[::-1], self._seen) if _is_fuzzy(word)}
        self._seen = len(words)
        if not new:
            return
        folded = [_letters(word)[:_MAX_LENGTH] for word in new.values()]
        grams, owners = _grams(folded)
        self._newest.add(grams, (owners + len(self._numbers)).astype(np.int32))
        if len(self._newest.grams) > self._most_in_newest:
            self.compact()
        self._numbers = np.concatenate([self._numbers, np.array(list(new), np.int64)])
        self._lengths = np.concatenate([self._lengths, np.array([len(word) + 1 for word in folded])])

    def compact(self) -> None:
        """Sort the newest pairs in among the others."""
        if len(self._newest.grams):
            self._pairs.add(self._newest.grams, self._newest.owners)
            self._newest = _Pairs()

    def find(self, word: str) -> list[tuple[int, float]]:
        """Return ids of words like word, itself among them, with their likeness, best first; none for short words."""
        if not _is_fuzzy(word) or not len(self._numbers):
            return []
        codes = [_EDGE, *map(ord, _letters(word)), _EDGE]
        wanted = np.array([*{a * _CODES + b for a, b in pairwise(codes)}], np.int64)
        parts = [*self._pairs.owners_of(wanted), *self._newest.owners_of(wanted)]
        counts = np.bincount(np.concatenate(parts)) if parts else np.zeros(0, np.int64)
        (near,) = (counts >= _LEAST_SHARED).nonzero()
        if not len(near):
            return []
        likeness = _likeness(len(wanted))[counts[near], self._lengths[near]]
        (like,) = (likeness >= _MIN_LIKENESS).nonzero()
        found = zip(self._numbers[near[like]].tolist(), likeness[like].tolist(), strict=True)
        return sorted(found, key=itemgetter(1), reverse=True)[:_MAX_FOUND]
