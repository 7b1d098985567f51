"""Facts that are said anew: of two messages that answer a question alike, the newer one holds."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from botservice.history.ranking.arrays import look_up
from botservice.history.ranking.columns import Columns
from botservice.history.ranking.evidence import Evidence, Scores
from botservice.history.ranking.weights import Weights

_LEAST_STRENGTH: Final = 0.25  # below it, a word is only looked like
_ABOVE: Final = 1.0001
_ALL: Final = 0.99

_Pairs = NDArray[np.bool_]


def renew(score: Scores, evidence: list[Evidence], pool: NDArray[np.int64], columns: Columns, weights: Weights) -> None:
    """Raise what says a fact anew above what said it before, among the places of pool (once each)."""
    places = np.sort(pool)
    if len(places) < 2 or not evidence:
        return
    values = score[places]
    answers, is_renewed = _says_anew(places, evidence, columns, weights)
    is_renewed &= values >= weights.renewal_score * values[answers, None]
    is_renewed &= places > places[answers, None]
    for newer in np.flatnonzero(is_renewed.any(axis=0)).tolist():
        older = values[answers[is_renewed[:, newer]]]
        values[newer] = max(values[newer], _ABOVE * float(older.max()))
    score[places] = values


def _says_anew(
    places: NDArray[np.int64], evidence: list[Evidence], columns: Columns, weights: Weights
) -> tuple[NDArray[np.int64], _Pairs]:
    """Return which messages answer well, and for each of them and each message whether that has all it has."""
    gains = np.array([part.gain for part in evidence], np.float32)[:, None]
    has = _having(evidence, places)
    own = (gains * has).sum(axis=0)
    is_statement = ~columns.column("is_question")[places]
    speaker = columns.column("author")[places] * 2 + columns.column("is_user")[places]
    is_answer = (own >= weights.renewal_words * own.max()) & (own > 0) & is_statement
    (answers,) = is_answer.nonzero()
    pairs: _Pairs = ((gains * has)[:, answers].T @ has >= _ALL * own[answers, None]) & is_statement
    pairs &= speaker[answers, None] == speaker
    return answers, pairs


def _having(evidence: list[Evidence], places: NDArray[np.int64]) -> Scores:
    """Return which words (rows) the messages at places (columns) have: 1 or 0."""
    has = np.zeros((len(evidence), len(places)), np.float32)
    for row, part in zip(has, evidence, strict=True):
        where, is_there = look_up(part.places, places)
        row[:] = is_there & (part.strength[where] >= _LEAST_STRENGTH)
    return has
