"""From a question to a ranking: words, the talk around them, who spoke and when."""

from datetime import UTC, datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botservice.history.ranking.columns import Columns
from botservice.history.ranking.context import around, from_neighbours
from botservice.history.ranking.dates import Span
from botservice.history.ranking.evidence import Chat, Evidence, Scores, find_evidence
from botservice.history.ranking.query import Query
from botservice.history.ranking.weights import Weights
from botservice.messages import Author

_DAY: Final = 86_400.0


def rank(
    chat: Chat,
    query: Query,
    *,
    k: int,
    asker: Author | None,
    hidden: list[int],
    fingerprint: int,
    dense: Scores | None,
    weights: Weights,
) -> list[tuple[int, float]]:
    """Return ids and scores of the best k messages."""
    columns = chat.columns
    repeats = columns.texts == fingerprint
    score = _by_words(find_evidence(chat, query, weights), columns, repeats, weights)
    named: set[int] = set().union(*(chat.people.named(word) for word in query.words))
    score *= _boost(chat, query, named, asker, weights)
    if query.spans:
        near = np.max([_nearness(columns.times, span) for span in query.spans], axis=0)
        score = score * (1 + weights.date * near) + weights.date_alone * near
    if named:
        score += weights.author_alone * np.isin(columns.authors, list(named))
    is_hit = score > 0
    if dense is not None:
        score, is_hit = _with_dense(score, is_hit, dense, weights)
    score[repeats] += weights.repeat
    is_hit = (is_hit | repeats) & columns.is_alive
    is_hit[hidden] = False
    return _best(score, np.flatnonzero(is_hit), columns, k)


def _by_words(evidence: list[Evidence], columns: Columns, repeats: NDArray[np.bool_], weights: Weights) -> Scores:
    own = np.zeros(len(columns), np.float32)
    for part in evidence:
        own[part.places] += part.gain * part.strength
    own = _scaled(own)
    return own + from_neighbours(own, columns, weights) + weights.window * _scaled(around(evidence, columns, weights))


def _scaled(scores: Scores) -> Scores:
    top = float(scores.max(initial=0))
    return scores / top if top > 0 else scores


def _boost(chat: Chat, query: Query, named: set[int], asker: Author | None, weights: Weights) -> Scores:
    columns = chat.columns
    boost = np.ones(len(columns), np.float32)
    if named:
        boost += weights.author * np.isin(columns.authors, list(named))
    elif query.is_about_speaker:
        asking = chat.people.numbers_of(asker) if asker is not None else set()
        boost += weights.asker * (np.isin(columns.authors, list(asking)) if asking else columns.is_user)
    elif query.is_about_listener:
        boost += weights.listener * ~columns.is_user
    boost += weights.user * columns.is_user
    boost -= weights.question * columns.is_question
    if query.asks_when:
        boost += weights.when * columns.has_time
    elif query.asks_number:
        boost += weights.how_many * columns.has_number
    return boost


def _nearness(times: NDArray[np.float64], span: Span) -> Scores:
    """Return 1 for messages of a span, less for those of the days after it, when people tell of it."""
    if span.start is not None and span.end is not None:
        late = np.maximum(0, times - span.end) / _DAY
        return np.where(times >= span.start, np.exp(-late / 10), 0).astype(np.float32)
    days = [datetime.fromtimestamp(time, UTC) for time in times]
    if span.weekday is not None:
        return np.array([day.weekday() == span.weekday for day in days], np.float32) * 0.5
    return np.array([day.month == span.month and span.day in (None, day.day) for day in days], np.float32)


def _with_dense(
    score: Scores, is_hit: NDArray[np.bool_], dense: Scores, weights: Weights
) -> tuple[Scores, NDArray[np.bool_]]:
    known = np.isfinite(dense)
    low, high = float(dense[known].min()), float(dense[known].max())
    scaled = np.where(known, (dense - low) / (high - low or 1), 0).astype(np.float32)
    return _scaled(score) + weights.dense * scaled, is_hit | (known & (dense > 0))


def _best(score: Scores, found: NDArray[np.int64], columns: Columns, k: int) -> list[tuple[int, float]]:
    """Return the best k of found; the newer of equals first; what was said again, last."""
    order = found[np.lexsort((-found, -score[found]))]
    texts = columns.texts[order]
    _, first = np.unique(texts, return_index=True)
    again = np.ones(len(order), bool)
    again[first] = False
    chosen = np.concatenate([order[~again], order[again]])[:k]
    return [(int(columns.ids[place]), float(score[place])) for place in chosen]
