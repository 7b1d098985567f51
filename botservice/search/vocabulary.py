"""The words of one chat: ids, the forms that belong together, and the words that look alike."""

from collections.abc import Collection
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botservice.search import languages
from botservice.search.arrays import each_once, first_of_each
from botservice.search.grams import GramIndex
from botservice.search.tokens import fold
from botservice.search.word_forms import is_inflected

# Measured with tracemalloc: a string, its entry in a dict, and what points to it.
_BYTES_PER_WORD: Final = 200
_BYTES_PER_STEM: Final = 260


class Vocabulary:
    """Words of one chat, append-only."""

    def __init__(self) -> None:
        # Word to id, in the order of the ids. A plain dict of plain values, and no list next to it: the garbage
        # collector walks through neither, however many chats are held.
        self._ids: dict[str, int] = {}
        self._groups: dict[str, tuple[int, ...]] = {}  # tuples: the garbage collector does not walk through them
        self._rows = np.zeros(0, np.int32)
        self._stemmed = np.zeros(0, np.uint32)
        self._counts = [0] * len(languages.CODES)
        self._last = 0
        self._grams = GramIndex()

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def size_bytes(self) -> int:
        """Estimated bytes."""
        return len(self) * _BYTES_PER_WORD + len(self._groups) * _BYTES_PER_STEM + self._grams.size_bytes

    def compact(self) -> None:
        """Sort all words in, so that there is room for others."""
        self._grams.extend(self._ids)
        self._grams.compact()

    def find(self, word: str) -> int | None:
        """Return the id of word, or None if the chat does not have it."""
        return self._ids.get(word)

    def encode(self, tokens: list[str]) -> NDArray[np.int32]:
        """Return the ids of tokens; new words are learned."""
        ids = self._ids
        self._grow([token for token in dict.fromkeys(tokens) if token not in ids])
        return np.fromiter(map(ids.__getitem__, tokens), np.int32, len(tokens))

    def take(self, tokens: list[str]) -> list[int]:
        """Return the ids of a short message's tokens; new words and stems are learned, as by encode and learn."""
        ids = self._ids
        self._grow([token for token in dict.fromkeys(tokens) if token not in ids])
        if not tokens:
            return []
        [language] = self._carried_on([languages.guess(tokens)])
        numbers = [ids[token] for token in tokens]
        new = {n: token for n, token in zip(numbers, tokens, strict=True) if not self._stemmed.item(n) >> language & 1}
        if new:
            self._learn_stems(list(new), list(new.values()), language)
        return numbers

    @property
    def languages(self) -> tuple[int, ...]:
        """The languages that a fair share of the messages is in, most frequent first; English where none is known."""
        total, counts = sum(self._counts), self._counts
        if total == 0:
            return (0,)
        order = sorted(range(len(counts)), key=counts.__getitem__, reverse=True)[:3]
        return tuple(code for code in order if code == order[0] or counts[code] * 12 >= total)

    def learn(self, words: list[str], tokens: NDArray[np.int32], lengths: NDArray[np.int64]) -> None:
        """Learn stems from messages, end to end.

        Args:
            words: Their tokens.
            tokens: The same, encoded.
            lengths: How many of them each message has, without those that are empty.
        """
        matrix = languages.vote_matrix()
        if not len(lengths):
            return
        starts = lengths.cumsum() - lengths
        found = languages.choose(np.add.reduceat(matrix[self._rows[tokens]], starts, axis=0, dtype=np.int64))
        spoken = np.repeat(np.array(self._carried_on(found.tolist()), np.uint32), lengths)
        (new,) = ((self._stemmed[tokens] >> spoken) & 1 == 0).nonzero()
        if not len(new):
            return
        pairs = tokens[new].astype(np.int64) * 32 + spoken[new]
        first = first_of_each(pairs)
        pairs, places = pairs[first], new[first]
        for language in each_once(pairs & 31).tolist():
            chosen = pairs & 31 == language
            self._learn_stems((pairs[chosen] >> 5).tolist(), [words[i] for i in places[chosen].tolist()], language)

    def _carried_on(self, found: list[int]) -> list[int]:
        """Return the languages of messages, each unclear one taken for that of the last clear one before it."""
        spoken = []
        for language in found:
            if language >= 0:
                self._last = language
                self._counts[language] += 1
            spoken.append(self._last)
        return spoken

    def _grow(self, words: list[str]) -> None:
        if not words:
            return
        for number, word in enumerate(words, len(self._ids)):
            if not word.isascii() and (folded := fold(word)) != word:
                self._groups[folded] = (*self._groups.get(folded, ()), number)
        self._ids.update(zip(words, range(len(self._ids), len(self._ids) + len(words)), strict=True))
        first = len(self._ids) - len(words)
        if len(self._ids) > len(self._rows):
            more = max(len(self._ids), first + first // 2) - len(self._rows)
            self._rows = np.concatenate([self._rows, np.zeros(more, np.int32)])
            self._stemmed = np.concatenate([self._stemmed, np.zeros(more, np.uint32)])
        self._rows[first : len(self._ids)] = languages.vote_rows(words)

    def _learn_stems(self, numbers: list[int], words: list[str], language: int) -> None:
        self._stemmed[numbers] |= np.uint32(1 << language)
        inflected = [place for place, word in enumerate(words) if is_inflected(word)]
        numbers, words = [numbers[place] for place in inflected], [words[place] for place in inflected]
        for number, word, stem in zip(numbers, words, languages.stem_all(words, language), strict=True):
            if stem != word:
                group = self._groups.get(stem, ())
                if number not in group:
                    self._groups[stem] = (*group, number)

    def having(self, keys: Collection[str]) -> set[int]:
        """Return the ids of the words that are known under one of keys, as form_keys makes them."""
        ids, groups = self._ids, self._groups
        found = {ids[key] for key in keys if key in ids}
        return found.union(*(groups[key] for key in keys if key in groups))

    def alike(self, word: str) -> list[tuple[int, float]]:
        """Return words that look like word, with a likeness in (0, 1], best first."""
        self._grams.extend(self._ids)
        return self._grams.find(word)
