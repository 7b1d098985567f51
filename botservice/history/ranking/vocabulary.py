"""The words of one chat: ids, the forms that belong together, and the words that look alike."""

from collections.abc import Collection, Iterable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botservice.history.ranking import languages
from botservice.history.ranking.grams import GramIndex
from botservice.history.ranking.inflections import is_inflected
from botservice.history.ranking.tokens import fold

_BATCH: Final = 4096
_BYTES_PER_WORD: Final = 330  # measured with tracemalloc: string, two dict entries, list cells, votes, grams


class _Ids(dict[str, int]):
    """Word to id; an unknown word gets the next id."""

    __slots__ = ("words",)

    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self.words)
        self.words.append(word)
        return number


class Vocabulary:
    """Words of one chat, append-only."""

    def __init__(self) -> None:
        self._ids = _Ids()
        self._groups: dict[str, list[int]] = {}
        self._votes = np.zeros((0, len(languages.CODES)), np.uint8)
        self._stemmed = np.zeros(0, np.uint32)
        self._counts = np.zeros(len(languages.CODES), np.int64)
        self._last = 0
        self._grams = GramIndex()

    def __len__(self) -> int:
        return len(self._ids.words)

    @property
    def size_bytes(self) -> int:
        """Estimated bytes."""
        return len(self) * _BYTES_PER_WORD

    def find(self, word: str) -> int | None:
        """Return the id of word, or None where the chat does not have it."""
        return self._ids.get(word)

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Return the ids of tokens; new words are learned."""
        ids = self._ids
        return [ids[token] for token in tokens]

    @property
    def languages(self) -> tuple[int, ...]:
        """The languages that a fair share of the messages is in, most frequent first; English where none is known."""
        total = int(self._counts.sum())
        if total == 0:
            return (0,)
        order = np.argsort(-self._counts, kind="stable")[:3]
        return tuple(int(code) for code in order if self._counts[code] * 12 >= total)

    def learn(self, tokens: NDArray[np.int32], starts: NDArray[np.int64]) -> None:
        """Learn stems from encoded messages: tokens end to end, starts the offset of each one that is not empty."""
        self._grow()
        for first in range(0, len(starts), _BATCH):
            batch = starts[first : first + _BATCH]
            end = int(starts[first + _BATCH]) if first + _BATCH < len(starts) else len(tokens)
            part = tokens[batch[0] : end]
            offsets = batch - batch[0]
            found = languages.choose(np.add.reduceat(self._votes[part], offsets, axis=0, dtype=np.int64))
            self._counts += np.bincount(found[found >= 0], minlength=len(languages.CODES))
            found = self._carried_on(found)
            spoken = np.repeat(found, np.diff(np.append(offsets, len(part))))
            new = (self._stemmed[part] >> spoken.astype(np.uint32)) & 1 == 0
            pairs = np.unique(part[new].astype(np.int64) * 32 + spoken[new])
            for language in np.unique(pairs & 31).tolist():
                self._learn_stems((pairs[pairs & 31 == language] >> 5).tolist(), language)

    def _carried_on(self, found: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the languages of messages, each unclear one taken for that of the last clear one before it."""
        known = np.concatenate([[self._last], found])
        latest = np.maximum.accumulate(np.where(known >= 0, np.arange(len(known)), 0))
        carried: NDArray[np.int64] = known[latest][1:]
        self._last = int(carried[-1])
        return carried

    def _grow(self) -> None:
        words, known = self._ids.words, len(self._stemmed)
        if known == len(words):
            return
        for number in range(known, len(words)):
            self._groups.setdefault(fold(words[number]), []).append(number)
        rows = np.array([languages.vote(word) for word in words[known:]], np.uint8)
        self._votes = np.concatenate([self._votes, rows])
        self._stemmed = np.concatenate([self._stemmed, np.zeros(len(rows), np.uint32)])

    def _learn_stems(self, numbers: list[int], language: int) -> None:
        self._stemmed[numbers] |= np.uint32(1 << language)
        inflected = [number for number in numbers if is_inflected(self._ids.words[number])]
        words = [self._ids.words[number] for number in inflected]
        for number, word, stem in zip(inflected, words, languages.stem_all(words, language), strict=True):
            if stem != word:
                group = self._groups.setdefault(stem, [])
                if number not in group:
                    group.append(number)

    def having(self, keys: Collection[str]) -> set[int]:
        """Return the ids of the words that are known under one of keys, as form_keys makes them."""
        return {number for key in keys for number in self._groups.get(key, ())}

    def alike(self, word: str) -> list[tuple[int, float]]:
        """Return words that look like word, with a likeness in (0, 1], best first."""
        self._grams.extend(self._ids.words)
        return self._grams.find(word)
