"""What one person said several times of what is asked: where it changed, the newer words hold."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botservice.search.documents import is_question
from botservice.search.languages import stem_all
from botservice.search.query import parse, split_questions
from botservice.search.tokens import fold, tokenize
from botservice.search.weights import DEFAULT
from botservice.search.word_forms import form_keys, is_inflected

# Two texts that share so much of the question's words, and at least so many of them, speak of the same thing. Of pairs
# of an old and a new value, nearly all do.
_SHARED: Final = 0.25
_FEWEST: Final = 2
_HALF: Final = 0.5  # of the question: one word is enough then, as in "who is my boss?"
_READ: Final = 2_000  # characters of a text
_SHORT: Final = 60  # characters: a question of so many says nothing besides


def find_earlier(asked: str, said: Sequence[str]) -> list[int | None]:
    """Find for each text the latest one before it that speaks of the same thing that is asked for.

    Args:
        said: Texts of one person, oldest first.
    """
    if len(said) < 2:
        return [None] * len(said)
    is_same = np.logical_or.reduce([_share(part, said) for part in split_questions(asked)])
    return [max(np.flatnonzero(is_same[place, :place]).tolist(), default=None) for place in range(len(said))]


def _share(asked: str, said: Sequence[str]) -> NDArray[np.bool_]:
    """Return of which texts each pair has enough of one question's words in common."""
    query = parse(asked, chat_languages=(0,), now=None, weights=DEFAULT)
    if len(query.tokens) < _FEWEST:
        return np.zeros((len(said), len(said)), np.bool_)
    wanted = [form_keys(word, query.spoken) for word in query.words]
    worth = np.array(list(query.words.values()), np.float32)
    has = np.zeros((len(said), len(wanted)), np.float32)
    for place, text in enumerate(said):
        if not (is_question(text) and len(text) < _SHORT):
            known = _keys_of(text[:_READ], query.spoken)
            has[place] = [not keys.isdisjoint(known) for keys in wanted]
    shared: NDArray[np.float32] = (has * worth) @ has.T / worth.sum()
    is_same: NDArray[np.bool_] = (shared >= _HALF) | (shared >= _SHARED) & (has @ has.T >= _FEWEST)
    return is_same


def _keys_of(text: str, spoken: Sequence[int]) -> set[str]:
    words = list(dict.fromkeys(tokenize(text)))
    inflected = [word for word in words if is_inflected(word)]
    return {*map(fold, words), *(stem for language in spoken for stem in stem_all(inflected, language))}
