"""From a question to a ranking: words, the talk around them, who spoke and when."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botservice.history.ranking.arrays import first_of_each
from botservice.history.ranking.columns import Columns
from botservice.history.ranking.context import Talk, with_those_around
from botservice.history.ranking.evidence import Chat, Evidence, Scores, find_evidence
from botservice.history.ranking.query import Query
from botservice.history.ranking.renewal import renew
from botservice.history.ranking.weights import Weights
from botservice.history.ranking.words.dates import nearness
from botservice.messages import Author

_POOL: Final = 20  # times k: enough to fill k places after repeats are left out, nearly always
_RENEWED: Final = 40  # places among which what is newer is looked for: more than any prompt takes
_MOST_RENEWED: Final = 160  # with those that equal the last: each is compared with each
_LEAST_SPREAD: Final = 1e-6
_MANY: Final = 4_000  # messages: of fewer, looking at all takes no longer
_FEW: Final = 2  # one in so many


@dataclass(frozen=True, slots=True)
class Request:
    """A question with what surrounds it.

    Attributes:
        hidden: Positions that are not to be found, and say nothing of those around them: the question's own.
        shown: Positions that are not to be found.
        fingerprint: The hash of the question's text, to find its verbatim repeat.
        dense: The similarity of each message's vector, nan where it has none; None without vectors.
        said_within: From when until when it was said, in seconds since the epoch; None for at any time.
        is_each_once: Whether of messages of one author that say the same only the newest is wanted.
    """

    query: Query
    asker: Author | None
    hidden: NDArray[np.int32]
    shown: NDArray[np.int32]
    fingerprint: int
    dense: Scores | None
    said_within: tuple[float, float] | None = None
    is_each_once: bool = False


def rank(chat: Chat, request: Request, *, k: int, weights: Weights) -> list[tuple[int, float]]:
    """Return ids and scores of the best k messages."""
    columns, query = chat.columns, request.query
    named: set[int] = set().union(*(chat.people.named(word) for word in query.words))
    evidence = find_evidence(chat, query, weights, request.hidden)
    if not (named or query.spans or request.dense is not None):  # these speak for messages without any of the words
        chat, request, evidence = _narrowed(chat, request, evidence, weights)
        columns = chat.columns
    score = _by_content(chat, request, evidence, weights) * _boost(chat, query, named, request.asker, weights)
    if query.spans:
        near = np.max([nearness(columns.column("time"), span) for span in query.spans], axis=0)
        score = score * (1 + weights.date * near) + weights.date_alone * near
    if named:
        score += weights.author_alone * np.isin(columns.column("author"), list(named))
    repeats = columns.column("text") == request.fingerprint
    score[repeats] += float(score.max(initial=0)) + 1
    is_hit = (score > 0) & columns.is_alive
    is_hit[request.hidden] = False
    is_hit[request.shown] = False
    if request.said_within is not None:
        since, until = request.said_within
        is_hit &= (columns.column("time") >= since) & (columns.column("time") < until)
    found = np.flatnonzero(is_hit)
    pool = _top(score, found, max(_POOL * k, _MOST_RENEWED))
    renew(score, evidence, _top(score, pool, max(k, _RENEWED), most=_MOST_RENEWED), columns, weights)
    best = _best(score, pool, found, columns, k)
    falling = np.minimum.accumulate(score[best])  # what was said again scores no more than what stands before it
    return _each_once(columns, best, falling) if request.is_each_once else _with_ids(columns, best, falling)


def _narrowed(
    chat: Chat, request: Request, evidence: list[Evidence], weights: Weights
) -> tuple[Chat, Request, list[Evidence]]:
    """Return all this for the messages within reach of a word alone, if they are few of many: others are not found."""
    size, reach = len(chat.columns), weights.reach
    count = sum(len(part.places) for part in evidence)
    if size < _MANY or count * (2 * reach + 1) * _FEW > size:
        return chat, request, evidence
    repeats = np.flatnonzero(chat.columns.column("text") == request.fingerprint)
    places = with_those_around(np.concatenate([repeats, *(part.places for part in evidence)]), size, reach)

    def within(some: NDArray[np.int32]) -> NDArray[np.int32]:
        return np.flatnonzero(np.isin(places, some)).astype(np.int32)

    return (
        replace(chat, columns=chat.columns.part(places)),
        replace(request, hidden=within(request.hidden), shown=within(request.shown)),
        [replace(part, places=np.searchsorted(places, part.places).astype(np.int32)) for part in evidence],
    )


def _by_content(chat: Chat, request: Request, evidence: list[Evidence], weights: Weights) -> Scores:
    """Return what each message and the talk around it have of a question's words and of its meaning."""
    own = np.zeros(len(chat.columns), np.float32)
    for part in evidence:
        own[part.places] += part.gain * part.strength
    own = _scaled(own)
    talk = Talk(chat.columns, weights)
    around = _scaled(talk.around(evidence))
    is_hit = (own > 0) | (around >= weights.least_around)
    gained = weights.window * around
    if request.dense is not None:
        meaning, is_near = _meaning(_without(request.hidden, request.dense), weights)
        is_hit |= is_near
        own += weights.dense * meaning
        gained += weights.dense_window * talk.near(meaning)
    score = own + talk.from_neighbours(own) + gained
    return np.where(is_hit, score, 0).astype(np.float32)


def _without(hidden: NDArray[np.int32], dense: Scores) -> Scores:
    seen = dense.copy()
    seen[hidden] = np.nan
    return seen


def _meaning(dense: Scores, weights: Weights) -> tuple[Scores, NDArray[np.bool_]]:
    """Return similarity from 0 (as similar as most, or no vector) to 1 (the best), and whether it is enough alone.

    Models differ in how similar two texts are that have nothing in common: what counts is the way above the mean.
    """
    known = np.isfinite(dense)
    if not known.any():
        return np.zeros(len(dense), np.float32), known
    mean, best = float(dense[known].mean()), float(dense[known].max())
    if best - mean < _LEAST_SPREAD:  # one message, or all alike
        mean = 0.0
    above = np.where(known, np.clip((dense - mean) / max(best - mean, _LEAST_SPREAD), 0, 1), 0).astype(np.float32)
    return above, known & (dense >= weights.least_similarity) & (above > 0)


def _scaled(scores: Scores) -> Scores:
    top = float(scores.max(initial=0))
    return scores / top if top > 0 else scores


def _boost(chat: Chat, query: Query, named: set[int], asker: Author | None, weights: Weights) -> Scores:
    authors, is_user = chat.columns.column("author"), chat.columns.column("is_user")
    boost: Scores = np.ones(len(chat.columns), np.float32)
    boost += weights.user * is_user
    boost -= weights.question * chat.columns.column("is_question")
    if named:
        boost += weights.author * np.isin(authors, list(named))
    elif query.is_about_speaker:
        asking = chat.people.numbers_of(asker) if asker is not None else set()
        boost += weights.asker * (np.isin(authors, list(asking)) if asking else is_user)
    elif query.is_about_listener:
        boost += weights.listener * ~is_user
    if query.asks_when:
        boost += weights.when * chat.columns.column("has_time")
    elif query.asks_number:
        boost += weights.how_many * chat.columns.column("has_number")
    return boost


def _best(
    score: Scores, pool: NDArray[np.int64], found: NDArray[np.int64], columns: Columns, k: int
) -> NDArray[np.int64]:
    """Return the best k of found, of which pool are the best; the newer of equals first; repeats after all others."""
    chosen = _without_repeats(score, pool, columns)
    if len(chosen) < k and len(pool) < len(found):
        chosen = _without_repeats(score, found, columns)
    if len(chosen) < k:
        again = found[np.isin(found, chosen, invert=True)]
        chosen = np.concatenate([chosen, _ordered(score, again)])
    return chosen[:k]


def _with_ids(columns: Columns, places: NDArray[np.int64], scores: Scores) -> list[tuple[int, float]]:
    return list(zip(columns.column("id")[places].tolist(), scores.tolist(), strict=True))


def _each_once(columns: Columns, places: NDArray[np.int64], scores: Scores) -> list[tuple[int, float]]:
    """Return ids and scores without those that say the same as another: the newest stays, in the best one's place."""
    said, times = columns.column("said")[places].tolist(), columns.column("time")[places].tolist()
    kept: dict[int, tuple[float, int, float]] = {}
    for key, at, (number, value) in zip(said, times, _with_ids(columns, places, scores), strict=True):
        newest = kept.get(key)
        if newest is None:
            kept[key] = at, number, value
        elif at > newest[0]:
            kept[key] = at, number, newest[2]
    return [(number, value) for _, number, value in kept.values()]


def _top(score: Scores, found: NDArray[np.int64], count: int, *, most: int = 0) -> NDArray[np.int64]:
    """Return the best count of found, the newer of equals.

    Args:
        most: How many of them with those that equal the last one. A chat may say the same a hundred thousand times.
    """
    if len(found) <= count:
        return found
    values = score[found]
    least = np.partition(values, len(values) - count)[len(values) - count]
    above, equal = found[values > least], found[values == least]
    best: NDArray[np.int64] = np.concatenate([above, equal[max(0, len(equal) - (max(count, most) - len(above))) :]])
    return best


def _ordered(score: Scores, places: NDArray[np.int64]) -> NDArray[np.int64]:
    ordered: NDArray[np.int64] = places[np.lexsort((-places, -score[places]))]
    return ordered


def _without_repeats(score: Scores, places: NDArray[np.int64], columns: Columns) -> NDArray[np.int64]:
    """Return places in order, of those that say the same the first one only."""
    order = _ordered(score, places)
    kept: NDArray[np.int64] = order[np.sort(first_of_each(columns.column("text")[order]))]
    return kept
