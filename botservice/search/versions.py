"""What is said again: of two messages that answer a question alike, and of one person's words, the newer hold."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botservice.search.columns import Columns
from botservice.search.documents import is_question
from botservice.search.evidence import Scores
from botservice.search.query import parse, split_questions
from botservice.search.tokens import tokenize
from botservice.search.weights import DEFAULT, Weights
from botservice.search.word_forms import form_keys
from botservice.search.word_places import WordPlaces

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
    is_short_question = [is_question(text) and len(text) < _SHORT for text in said]
    words = WordPlaces(
        [] if is_short else tokenize(text[:_READ]) for text, is_short in zip(said, is_short_question, strict=True)
    )
    is_same = np.logical_or.reduce([_share(part, words, len(said)) for part in split_questions(asked)]).tolist()
    return [next(filter(is_same[place].__getitem__, range(place - 1, -1, -1)), None) for place in range(len(said))]


def _share(asked: str, words: WordPlaces, count: int) -> NDArray[np.bool_]:
    """Return of which of so many texts each pair has enough of one question's words in common."""
    query = parse(asked, chat_languages=(0,), now=None, weights=DEFAULT)
    if len(query.tokens) < _FEWEST:
        return np.zeros((count, count), np.bool_)
    worth = np.array(list(query.words.values()), np.float32)
    has = np.zeros((count, len(worth)), np.float32)
    for column, word in enumerate(query.words):
        has[words.having(form_keys(word, query.spoken), query.spoken), column] = 1
    shared: NDArray[np.float32] = (has * worth) @ has.T / worth.sum()
    is_same: NDArray[np.bool_] = (shared >= _HALF) | (shared >= _SHARED) & (has @ has.T >= _FEWEST)
    return is_same


_ABOVE: Final = 1.0001
_ALL: Final = 0.99


def renew(
    score: Scores, places: NDArray[np.int64], gains: Scores, has: Scores, columns: Columns, weights: Weights
) -> bool:
    """Raise what says a fact again above what said it before, among some places; return whether there was any.

    Args:
        places: Positions of messages, once each, ascending.
        gains: What each word of the question is worth, a row for each.
        has: Which words (rows) the messages at places (columns) have: 1 or 0.
    """
    if len(places) < 2 or not len(gains):
        return False
    values, speaker = score[places], columns.column("speaker")[places]
    worth = gains * has
    own = np.add.reduce(worth, axis=0)
    is_statement = speaker >= 0
    (answers,) = ((own >= weights.renewal_words * np.maximum.reduce(own)) & (own > 0) & is_statement).nonzero()
    is_renewed = worth[:, answers].T @ has >= _ALL * own[answers, None]
    is_renewed &= speaker[answers, None] == speaker
    is_renewed &= values >= weights.renewal_score * values[answers, None]
    is_renewed &= places > places[answers, None]
    renewed = np.logical_or.reduce(is_renewed, axis=0).nonzero()[0].tolist()
    for newer in renewed:
        older = values[answers[is_renewed[:, newer]]]
        values[newer] = max(values[newer], _ABOVE * float(older.max()))
    score[places] = values
    return bool(renewed)
