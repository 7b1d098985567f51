"""Which passages of one long text have most to do with a question."""

import re
from collections.abc import Iterator
from functools import lru_cache
from threading import Lock
from typing import Final

import numpy as np
from cachetools import LRUCache, cached

from botservice.search import languages
from botservice.search.query import Query, parse
from botservice.search.tokens import tokenize
from botservice.search.weights import DEFAULT
from botservice.search.word_forms import form_keys, related_keys
from botservice.search.word_places import WordPlaces

# Where a text may be cut, the best first: after a line, after a sentence, between words.
_ENDS: Final = re.compile("\n+|(?<=[.!?:;])\\s+|(?<=[\u3002\uff01\uff1f\uff1b\u061f\u0964])")
_GUESSED: Final = 2_000  # characters that tell the language of a text
_REMEMBERED: Final = 500_000  # characters of texts: their words take some 20 bytes for each
_FROM_NEIGHBOUR: Final = np.float32(0.2)  # what a passage gains from the score of the one before or after it


def split_passages(text: str, longest: int) -> list[tuple[int, int]]:
    """Split a text into passages of whole sentences or lines.

    Args:
        longest: Characters of a passage; a longer sentence is cut between words, or anywhere if it has no spaces.

    Returns:
        Where each passage begins and ends, in order; there is only whitespace between them.
    """
    passages: list[tuple[int, int]] = []
    for start, end in _sentences(text, longest):
        if passages and end - passages[-1][0] <= longest:
            passages[-1] = passages[-1][0], end
        else:
            passages.append((start, end))
    return passages


def _sentences(text: str, longest: int) -> Iterator[tuple[int, int]]:
    start = 0
    for match in [*_ENDS.finditer(text), None]:
        end = len(text) if match is None else match.start()
        while end - start > longest:
            space = text.rfind(" ", start + longest // 2, start + longest)
            middle = start + longest if space < 0 else space
            yield start, middle
            start = middle if space < 0 else middle + 1
        if text[start:end].strip():
            yield start, end
        start = end if match is None else match.end()


class _Words:
    """Where the words of a text stand, by passage.

    Attributes:
        passages: Where each passage begins and ends.
        places: The passages of each word.
        language: The text's (index into languages.CODES).
    """

    def __init__(self, text: str, longest: int) -> None:
        self.passages = split_passages(text, longest)
        tokens = [tokenize(text[start:end]) for start, end in self.passages]
        few = sum(1 for _, end in self.passages if end <= _GUESSED)
        self.language = max(languages.guess([token for each in tokens[: few + 1] for token in each]), 0)
        self.places = WordPlaces(tokens)


@cached(
    LRUCache(_REMEMBERED, getsizeof=lambda words: words.passages[-1][1] if words.passages else 0),
    key=lambda text, longest: (hash(text), len(text), longest),
    lock=Lock(),
)
def _words_of(text: str, longest: int) -> _Words:
    """Return the words of a text; those of the last ones are remembered, because one chat finds the same again."""
    return _Words(text, longest)


@lru_cache(maxsize=32)
def _parsed(asked: str, language: int) -> Query:
    return parse(asked, chat_languages=(language,), now=None, weights=DEFAULT)


def rank_passages(text: str, asked: str, longest: int) -> list[tuple[int, int]]:
    """Rank the passages of a text by the words of a question that they have, best first.

    After those that have any come those next to the best one, the nearest first. A word counts by its rarity within the
    text. An index of a chat knows more signals, and building one for each long message takes ten times as long.

    Args:
        longest: Characters of a passage.
    """
    words = _words_of(text, longest)
    passages, query = words.passages, _parsed(asked, words.language)
    has = np.zeros((len(passages), len(query.words)), np.float32)
    for place, word in enumerate(query.words):
        has[words.places.having(related_keys(word, query.spoken), query.spoken), place] = DEFAULT.related
        has[words.places.having(form_keys(word, query.spoken), query.spoken), place] = 1
    having = np.count_nonzero(has, axis=0)
    weights = np.array(list(query.words.values()), np.float32)
    own_score = has @ (weights * np.log1p((len(passages) - having + 0.5) / (having + 0.5)))
    score = own_score.copy()
    score[1:] += _FROM_NEIGHBOUR * own_score[:-1]
    score[:-1] += _FROM_NEIGHBOUR * own_score[1:]
    found = [int(number) for number in np.argsort(-score, kind="stable") if own_score[number] > 0]
    best = found[0] if found else 0
    others = sorted(set(range(len(passages))).difference(found), key=lambda number: abs(number - best))
    return [passages[number] for number in (*found, *others)]
