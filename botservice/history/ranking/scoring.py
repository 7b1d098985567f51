"""From a question to a ranking: words, the talk around them, who spoke and when."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botservice.history.ranking.arrays import largest, look_up, scaled
from botservice.history.ranking.columns import Columns, Part
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
_CELLS: Final = 1 << 16  # numbers that are worked on at once: what stays in the processor's cache


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
    hidden: NDArray[np.int64]
    shown: NDArray[np.int64]
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
        places = _choose_places(chat, request, evidence, weights)
        if places is not None:
            if not len(places):
                return []
            chat, request, evidence = _narrowed(chat, request, evidence, places)
            columns = chat.columns
    score = _by_content(chat, request, evidence, weights) * _boost(chat, query, named, request.asker, weights)
    if query.spans:
        near = np.max([nearness(columns.column("time"), span) for span in query.spans], axis=0)
        score = score * (1 + weights.date * near) + weights.date_alone * near
    if named:
        score += weights.author_alone * _is_of(columns, named)
    (repeats,) = (columns.column("text") == request.fingerprint).nonzero()
    if len(repeats):
        score[repeats] += float(score.max(initial=0)) + 1
    score[~columns.is_alive] = 0
    score[request.hidden] = 0
    score[request.shown] = 0
    if request.said_within is not None:
        since, until = request.said_within
        times = columns.column("time")
        score[(times < since) | (times >= until)] = 0
    pool = _top(score, max(_POOL * k, _MOST_RENEWED))
    renew(score, evidence, pool[_top(score[pool], max(k, _RENEWED), most=_MOST_RENEWED)], columns, weights)
    best = _best(score, pool, columns, k)
    falling = np.minimum.accumulate(score[best])  # what was said again scores no more than what stands before it
    return _each_once(columns, best, falling) if request.is_each_once else _with_ids(columns, best, falling)


def _choose_places(
    chat: Chat, request: Request, evidence: list[Evidence], weights: Weights
) -> NDArray[np.int64] | None:
    """Return the messages within reach of a word, if they are few of many; None for all. Others are not found."""
    (repeats,) = (chat.columns.column("text") == request.fingerprint).nonzero()
    return _few_around([repeats, *(part.places for part in evidence)], len(chat.columns), weights.reach)


def _few_around(places: Sequence[NDArray[np.int64]], size: int, reach: int) -> NDArray[np.int64] | None:
    """Return places in a chat of size and all within reach of them, if they are few of many; None for all."""
    if size < _MANY or sum(map(len, places)) * (2 * reach + 1) * _FEW > size:
        return None
    return with_those_around(np.concatenate(places), size, reach)


def _narrowed(
    chat: Chat, request: Request, evidence: list[Evidence], places: NDArray[np.int64]
) -> tuple[Chat, Request, list[Evidence]]:
    """Return all this for the messages at places alone."""

    def within(some: NDArray[np.int64]) -> NDArray[np.int64]:
        where, is_there = look_up(places, some)
        return where[is_there]

    return (
        replace(chat, columns=Part(chat.columns, places)),
        replace(request, hidden=within(request.hidden), shown=within(request.shown)),
        [replace(part, places=places.searchsorted(part.places)) for part in evidence],
    )


def _by_content(chat: Chat, request: Request, evidence: list[Evidence], weights: Weights) -> Scores:
    """Return what each message and the talk around it have of a question's words and of its meaning."""
    talk, size = Talk(chat.columns, weights), len(chat.columns)
    own, around = np.zeros(size, np.float32), np.zeros(size, np.float32)
    at_once = max(1, _CELLS // size)
    for first in range(0, len(evidence), at_once):
        parts = evidence[first : first + at_once]
        near = _few_around([part.places for part in parts], size, weights.reach)
        among = talk if near is None else Talk(Part(chat.columns, near), weights)
        strength = np.zeros((len(parts), size if near is None else len(near)), np.float32)
        for part, row in zip(parts, strength, strict=True):
            row[part.places if near is None else near.searchsorted(part.places)] = part.strength
        gains = np.array([[part.gain] for part in parts], np.float32)
        at = slice(None) if near is None else near
        for row, reached in zip(gains * strength, gains * among.near(np.minimum(strength, 1)), strict=True):
            own[at] += row
            around[at] += reached
    own, around = scaled(own), scaled(around)
    is_hit = (own > 0) | (around >= weights.least_around)
    gained = weights.window * around
    if request.dense is not None:
        meaning, is_near = _meaning(_without(request.hidden, request.dense), weights)
        is_hit |= is_near
        own += weights.dense * meaning
        gained += weights.dense_window * talk.near(meaning)
    score = own + talk.from_neighbours(own) + gained
    score[~is_hit] = 0
    return score


def _without(hidden: NDArray[np.int64], dense: Scores) -> Scores:
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


def _boost(chat: Chat, query: Query, named: set[int], asker: Author | None, weights: Weights) -> Scores:
    is_user = chat.columns.column("is_user")
    boost: Scores = chat.columns.column("standing").copy()
    if named:
        boost += weights.author * _is_of(chat.columns, named)
    elif query.is_about_speaker:
        asking = chat.people.numbers_of(asker) if asker is not None else set()
        boost += weights.asker * (_is_of(chat.columns, asking) if asking else is_user)
    elif query.is_about_listener:
        boost += weights.listener * ~is_user
    if query.asks_when:
        boost += weights.when * chat.columns.column("has_time")
    elif query.asks_number:
        boost += weights.how_many * chat.columns.column("has_number")
    return boost


def _is_of(columns: Columns, authors: set[int]) -> NDArray[np.bool_]:
    """Return whether each message is of one of authors."""
    written_by = columns.column("author")
    is_of: NDArray[np.bool_] = np.logical_or.reduce([written_by == author for author in authors])
    return is_of


def _best(score: Scores, pool: NDArray[np.int64], columns: Columns, k: int) -> NDArray[np.int64]:
    """Return the k with the best scores, pool being the best of all; the newer of equals first, repeats after all."""
    chosen, repeats = _without_repeats(score, pool, columns, k)
    if len(chosen) < k:
        chosen, repeats = _without_repeats(score, (score > 0).nonzero()[0], columns, k)
    return np.array([*chosen, *repeats][:k], np.int64)


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


def _top(score: Scores, count: int, *, most: int = 0) -> NDArray[np.int64]:
    """Return where the best count of scores above 0 are, the newer of equals.

    Args:
        most: How many of them with those that equal the last one. A chat may say the same a hundred thousand times.
    """
    if len(score) > count:
        least = largest(score, count)
        (found,) = (score >= least).nonzero()
        if least > 0 and (len(found) > count or np.count_nonzero(score > 0) > count):
            top = score[found]
            above, equal = found[top > least], found[top == least]
            return np.concatenate([above, equal[max(0, len(equal) - (max(count, most) - len(above))) :]])
    return (score > 0).nonzero()[0]


def _without_repeats(score: Scores, places: NDArray[np.int64], columns: Columns, k: int) -> tuple[list[int], list[int]]:
    """Return the best k of places, of those that say the same the first one only; and the others that stand before."""
    order = places[np.lexsort((-places, -score[places]))]
    seen: set[int] = set()
    chosen: list[int] = []
    repeats: list[int] = []
    for place, text in zip(order.tolist(), columns.column("text")[order].tolist(), strict=True):
        if len(chosen) == k:
            break
        (repeats if text in seen else chosen).append(place)
        seen.add(text)
    return chosen, repeats
