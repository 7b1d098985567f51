"""Which passages of one long text have most to do with a question."""

import re
from collections.abc import Iterator
from threading import Lock
from typing import Final

import numpy as np
from cachetools import LRUCache, cached

from botservice.history.ranking.query import parse
from botservice.history.ranking.weights import DEFAULT
from botservice.history.ranking.words import languages
from botservice.history.ranking.words.forms import form_keys, is_inflected, related_keys
from botservice.history.ranking.words.tokens import fold, tokenize

# Where a text may be cut, the best first: after a line, after a sentence, between words.
_ENDS: Final = re.compile("\n+|(?<=[.!?:;])\\s+|(?<=[\u3002\uff01\uff1f\uff1b\u061f\u0964])")
_GUESSED: Final = 2_000  # characters that tell the language of a text
_REMEMBERED: Final = 512  # texts, by their hashes
_BESIDE: Final = np.float32(0.2)  # what a passage gains from the score of the one before or after it


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


@cached(LRUCache(_REMEMBERED), key=lambda text, asked, longest: (hash(text), len(text), asked, longest), lock=Lock())
def rank_passages(text: str, asked: str, longest: int) -> list[tuple[int, int]]:
    """Rank the passages of a text by the words of a question that they have, best first.

    After those that have any come those beside the best one, the nearest first. A word counts by its rarity within the
    text. An index of a chat knows more signals, and building one for each long message takes ten times as long. The
    steps of a turn ask the same of the same messages, so that it is remembered: each prompt with long replies took
    43 ms of CPU instead of 11.

    Args:
        longest: Characters of a passage.
    """
    passages = split_passages(text, longest)
    language = languages.guess(tokenize(text[:_GUESSED]))
    query = parse(asked, chat_languages=(max(language, 0),), now=None, weights=DEFAULT)
    worth: dict[str, list[tuple[int, float]]] = {}
    for place, word in enumerate(query.words):
        own = form_keys(word, query.spoken)
        for key in own:
            worth.setdefault(key, []).append((place, 1.0))
        for key in related_keys(word, query.spoken):
            worth.setdefault(key, []).append((place, DEFAULT.related))
    has = np.zeros((len(passages), len(query.words)), np.float32)
    known: dict[str, list[tuple[int, float]]] = {}
    for row, (start, end) in zip(has, passages, strict=True):
        for token in set(tokenize(text[start:end])):
            if token not in known:
                known[token] = [each for key in _keys_of(token, query.spoken) for each in worth.get(key, ())]
            for place, share in known[token]:
                row[place] = max(row[place], share)
    having = np.count_nonzero(has, axis=0)
    weights = np.array(list(query.words.values()), np.float32)
    own_score = has @ (weights * np.log1p((len(passages) - having + 0.5) / (having + 0.5)))
    score = own_score.copy()
    score[1:] += _BESIDE * own_score[:-1]
    score[:-1] += _BESIDE * own_score[1:]
    found = [int(number) for number in np.argsort(-score, kind="stable") if own_score[number] > 0]
    best = found[0] if found else 0
    beside = sorted(set(range(len(passages))).difference(found), key=lambda number: abs(number - best))
    return [passages[number] for number in (*found, *beside)]


def _keys_of(token: str, spoken: tuple[int, ...]) -> set[str]:
    keys = {fold(token)}
    return keys.union(languages.stem(token, language) for language in spoken) if is_inflected(token) else keys
