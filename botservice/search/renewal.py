"""Facts that are said anew: of two messages that answer a question alike, the newer one holds."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from botservice.search.columns import Columns
from botservice.search.evidence import Scores
from botservice.search.weights import Weights

_ABOVE: Final = 1.0001
_ALL: Final = 0.99


def renew(
    score: Scores, places: NDArray[np.int64], gains: Scores, has: Scores, columns: Columns, weights: Weights
) -> bool:
    """Raise what says a fact anew above what said it before, among some places; return whether there was any.

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
