"""Languages by their function words: which one a text is in, its stems, and which of its words carry no topic."""

import threading
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Final

import numpy as np
import Stemmer  # type: ignore[import-not-found]  # PyStemmer is compiled and ships no types
import stopwordsiso
from numpy.typing import NDArray

from botservice.search.grammar import FUNCTION_WORDS, TABLES
from botservice.search.tokens import fold

# Of languages written with spaces that both libraries know.
STEMMERS: Final[dict[str, str]] = TABLES["stemmers"]
CODES: Final = tuple(STEMMERS)
_SPACELESS: Final = ("ko", "ja", "zh", "th")
_CLEAR_VOTE: Final = 6
_CORE_VOTE: Final = 6
_LIST_VOTE: Final = 2
_local = threading.local()


@cache
def _votes() -> tuple[dict[str, int], NDArray[np.uint8]]:
    """Return the row of each function word, and in it how strongly the word speaks for each language.

    A word speaks less for a language the more languages share it. Row 0 is that of all other words.
    """
    found: dict[str, NDArray[np.uint8]] = {}
    for column, code in enumerate(CODES):
        core = FUNCTION_WORDS.get(code, frozenset())
        for word in stopwordsiso.stopwords(code) | core:
            row = found.setdefault(word, np.zeros(len(CODES), np.uint8))
            row[column] = _CORE_VOTE if word in core else _LIST_VOTE
    words = sorted(found)
    matrix = np.array([np.zeros(len(CODES)), *(found[word] for word in words)])
    shared = np.clip(np.count_nonzero(matrix, axis=1, keepdims=True), 1, 3)
    return {word: row for row, word in enumerate(words, 1)}, np.ceil(matrix / shared).astype(np.uint8)


def vote_rows(words: Iterable[str]) -> NDArray[np.int32]:
    """Return for each word its row of vote_matrix."""
    rows = _votes()[0]
    return np.array([rows.get(word, 0) for word in words], np.int32)


def vote_matrix() -> NDArray[np.uint8]:
    """Return votes: a row per function word, a column per language of CODES."""
    return _votes()[1]


def choose(votes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the language (index into CODES) of each row of summed votes; -1 where none is clear."""
    return np.where(votes.max(axis=1) < _CLEAR_VOTE, -1, votes.argmax(axis=1))


@cache
def _voices(word: str) -> tuple[tuple[int, int], ...]:
    """Return the languages that a function word speaks for, each with how strongly."""
    known, matrix = _votes()
    votes = matrix[known[word]].tolist()
    return tuple((language, vote) for language, vote in enumerate(votes) if vote)


def guess(words: list[str]) -> int:
    """Return the language (index into CODES) of a text by its words, or -1."""
    known = _votes()[0]
    votes = [0] * len(CODES)  # of a short text, NumPy would take longer
    for word in words:
        if word in known:
            for language, vote in _voices(word):
                votes[language] += vote
    best = max(votes)
    return votes.index(best) if best >= _CLEAR_VOTE else -1


def stem_all(words: list[str], language: int) -> list[str]:
    """Return the stems of words, without accents."""
    stemmers = _local.__dict__.setdefault("stemmers", {})
    stemmer = stemmers.get(language)
    if stemmer is None:
        # Without its cache: a vocabulary asks for each word once.
        stemmer = stemmers[language] = Stemmer.Stemmer(STEMMERS[CODES[language]], 0)
    return [fold(stem) for stem in stemmer.stemWords(words)]


def stem(word: str, language: int) -> str:
    """Return the stem of word, without accents."""
    return stem_all([word], language)[0]


@cache
def _function_words() -> frozenset[str]:
    return frozenset().union(*(FUNCTION_WORDS[code] for code in FUNCTION_WORDS if code in _SPACELESS))


@cache
def _light_words() -> frozenset[str]:
    return frozenset(word for code in _SPACELESS for word in stopwordsiso.stopwords(code) if len(word) > 1)


@lru_cache(maxsize=512)
def word_lists(languages: tuple[int, ...]) -> tuple[frozenset[str], frozenset[str]]:
    """Return the function words of some languages (indices into CODES) together, and the words that say little."""
    codes = [CODES[language] for language in languages]
    function = _function_words().union(*(FUNCTION_WORDS.get(code, frozenset()) for code in codes))
    light = _light_words().union(*(stopwordsiso.stopwords(code) for code in codes))
    # A language without a list of its own here drops what its library list says.
    for code in codes:
        if code not in FUNCTION_WORDS:
            function |= stopwordsiso.stopwords(code)
    return frozenset(function), frozenset(light)


def is_function_word(word: str, languages: tuple[int, ...]) -> bool:
    """Return whether word is grammar in one of the languages (indices into CODES)."""
    return word in word_lists(languages)[0]
