"""From a question to a ranking: words, the talk around them, who spoke and when."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from botservice.history.ranking.arrays import largest, look_up
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
_SURELY: Final = 1.001  # more than what is lost in rounding
_LEAST_STRENGTH: Final = 0.25  # below it, a word is only looked like
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
    query = request.query
    named: set[int] = set().union(*(chat.people.named(word) for word in query.words))
    evidence = find_evidence(chat, query, weights, request.hidden)
    if not (named or query.spans or request.dense is not None):  # these speak for messages without any of the words
        few = _choose_places(chat, request, evidence, weights)
        if few is not None:
            places, rest = few
            if not len(places):
                return []
            found = _best_of(*_narrowed(chat, request, evidence, places), named, k, weights, rest)
            if found is not None:
                return found
    return _best_of(chat, request, evidence, named, k, weights) or []


def _best_of(
    chat: Chat, request: Request, evidence: list[Evidence], named: set[int], k: int, weights: Weights, rest: float = 0.0
) -> list[tuple[int, float]] | None:
    """Return ids and scores of the best k messages; None if others may be as good.

    Args:
        rest: What the words are worth together that others may have.
    """
    columns, query = chat.columns, request.query
    content = _by_content(chat, request, evidence, weights)
    score = content.score * _boost(chat, query, named, request.asker, weights)
    if query.spans:
        near = np.max([nearness(columns.column("time"), span) for span in query.spans], axis=0)
        score = score * (1 + weights.date * near) + weights.date_alone * near
    if named:
        score += weights.author_alone * _is_of(columns, named)
    (repeats,) = (columns.column("text") == request.fingerprint).nonzero()
    if len(repeats):
        score[repeats] += float(score.max(initial=0)) + 1
    score *= columns.is_alive
    score[request.hidden] = 0
    score[request.shown] = 0
    if request.said_within is not None:
        since, until = request.said_within
        times = columns.column("time")
        score[(times < since) | (times >= until)] = 0
    order = _in_order(score, _top(score, max(_POOL * k, _MOST_RENEWED)))
    values = score[order]
    count = max(k, _RENEWED)
    most = content.most_of(rest, weights)
    if rest and (len(order) < count or values.item(count - 1) <= most):
        return None
    if len(order) > count:  # with those that equal the last
        count = min(int(np.count_nonzero(values >= values[count - 1])), max(count, _MOST_RENEWED))
    places = np.sort(order[:count])
    if renew(score, places, content.gains, content.words_at(places), columns, weights):
        order = _in_order(score, order)
    best = _best(score, order, columns, k, is_all=not rest)
    if rest and (len(best) < k or score.item(best[-1]) <= most):
        return None
    falling = np.minimum.accumulate(score[best])  # what was said again scores no more than what stands before it
    return _each_once(columns, best, falling) if request.is_each_once else _with_ids(columns, best, falling)


def _choose_places(
    chat: Chat, request: Request, evidence: list[Evidence], weights: Weights
) -> tuple[NDArray[np.int64], float] | None:
    """Return the messages around the rare words, if they are few of many, and what the other words are worth together.

    None for all messages. Those without any of the words are not found, but for a repeat of a question without words.
    """
    if len(chat.columns) < _MANY:
        return None
    rare, count, rest = [], 0, 0.0
    for part in sorted(evidence, key=lambda each: len(each.places)):
        count += len(part.places) * (4 * weights.reach + 1) * _FEW
        if count > len(chat.columns):
            rest += part.gain
        else:
            rare.append(part.places)
    if not evidence:
        rare.append((chat.columns.column("text") == request.fingerprint).nonzero()[0])
    if not rare:
        return None
    # Twice the reach: what is within reach of a rare word has all around it that reaches it.
    places = with_those_around(np.concatenate(rare), len(chat.columns), 2 * weights.reach)
    return None if rest and len(places) < _RENEWED else (places, rest)


def _few_around(places: Sequence[NDArray[np.integer[Any]]], size: int, reach: int) -> NDArray[np.int64] | None:
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
        [_among(part, places) for part in evidence],
    )


def _among(part: Evidence, places: NDArray[np.int64]) -> Evidence:
    """Return the evidence of a word among places, at which it is then counted from 0."""
    where, is_there = look_up(part.places, places)
    where = where[is_there]
    others = None if part.others is None else part.others[where]
    return replace(part, places=is_there.nonzero()[0], counts=part.counts[where], others=others)


@dataclass(frozen=True, slots=True)
class _Content:
    """What each message and the talk around it have of a question's words and of its meaning.

    Attributes:
        tops: The most that any has of the words by itself and in the talk around, before that is scaled to 1.
        gains: What each word is worth, a row for each.
        parts: How much of some words (rows) the messages at some places (columns) have; None for all messages.
    """

    score: Scores
    tops: tuple[float, float]
    gains: Scores
    parts: list[tuple[NDArray[np.int64] | None, Scores]]

    def most_of(self, rest: float, weights: Weights) -> float:
        """Return more than messages can score that have some words alone, which are worth so much together."""
        if not rest:
            return 0.0
        if rest * (weights.k1 + 1) >= min(self.tops):
            return math.inf  # the most would be more, too
        own, around = (weights.k1 + 1) * rest / self.tops[0], rest / self.tops[1]
        beside = weights.previous + weights.after_question + weights.next
        boost = 1 + weights.user + max(weights.asker, weights.listener) + max(weights.when, weights.how_many)
        return _SURELY * boost * ((1 + beside) * own + weights.window * around)

    def words_at(self, places: NDArray[np.int64]) -> Scores:
        """Return which words (rows) the messages at places (columns) have: 1 or 0."""
        rows = []
        for near, strength in self.parts:
            if near is None:
                rows.append(strength.take(places, axis=1) >= _LEAST_STRENGTH)
            else:
                where, is_there = look_up(near, places)
                rows.append((strength.take(where, axis=1) >= _LEAST_STRENGTH) & is_there)
        return np.concatenate(rows, dtype=np.float32) if rows else np.zeros((0, len(places)), np.float32)


def _by_content(chat: Chat, request: Request, evidence: list[Evidence], weights: Weights) -> _Content:
    """Return what each message and the talk around it have of a question's words and of its meaning."""
    columns, size = chat.columns, len(chat.columns)
    talk, totals = Talk(columns, weights), np.zeros((2, size), np.float32)
    average, lengths = columns.mean_length or 1.0, columns.column("length")
    norms = np.asarray(weights.k1 * (1 - weights.b + weights.b * lengths / average), np.float32)
    gains = np.array([[part.gain] for part in evidence], np.float32)
    found: list[tuple[NDArray[np.int64] | None, Scores]] = []
    at_once = max(1, _CELLS // size)
    for first in range(0, len(evidence), at_once):
        parts = evidence[first : first + at_once]
        near = _few_around([part.places for part in parts], size, weights.reach)
        strength = _strength(parts, near, norms if near is None else norms[near], weights)
        among = talk if near is None else Talk(Part(columns, near), weights)
        worth = gains[first : first + at_once]
        own, around = totals if near is None else totals[:, near]
        for row, reached in zip(worth * strength, worth * among.near(np.minimum(strength, 1)), strict=True):
            own += row
            around += reached
        if near is not None:
            totals[:, near] = own, around
        found.append((near, strength))
    tops = np.maximum.reduce(totals, axis=1)
    own, around = totals / np.where(tops > 0, tops, 1)[:, None]
    is_hit = (own > 0) | (around >= weights.least_around)
    gained = weights.window * around
    if request.dense is not None:
        meaning, is_near = _meaning(_without(request.hidden, request.dense), weights)
        is_hit |= is_near
        own += weights.dense * meaning
        gained += weights.dense_window * talk.near(meaning[None])[0]
    score = own + talk.from_neighbours(own) + gained
    score *= is_hit
    return _Content(score, (float(tops[0]), float(tops[1])), gains, found)


def _strength(parts: list[Evidence], near: NDArray[np.int64] | None, norms: Scores, weights: Weights) -> Scores:
    """Return how much of each word (rows) the messages have: 1 for once in a message of average length."""
    counts = np.zeros((len(parts), len(norms)), np.float32)
    places = [part.places if near is None else near.searchsorted(part.places) for part in parts]
    for row, part, where in zip(counts, parts, places, strict=True):
        row[where] = part.counts
    strength: Scores = counts * (weights.k1 + 1) / (counts + norms)
    for row, part, where in zip(strength, parts, places, strict=True):
        if part.others is not None:
            row[where] = np.maximum(row[where], part.others)
    return strength


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


def _in_order(score: Scores, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return places with the best scores first, the newer of equals."""
    order: NDArray[np.int64] = places[np.lexsort((-places, -score[places]))]
    return order


def _best(score: Scores, order: NDArray[np.int64], columns: Columns, k: int, *, is_all: bool) -> NDArray[np.int64]:
    """Return the k that come first in order, the best of all; repeats after all."""
    chosen, repeats = _without_repeats(order, columns, k)
    if len(chosen) < k and is_all:
        chosen, repeats = _without_repeats(_in_order(score, (score > 0).nonzero()[0]), columns, k)
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


def _top(score: Scores, count: int) -> NDArray[np.int64]:
    """Return where the best count of scores above 0 are, the newer of equals: a chat may say the same ever again."""
    if len(score) > count:
        least = largest(score, count)
        (found,) = (score >= least).nonzero()
        if least > 0 and len(found) > count:
            top = score[found]
            above, equal = found[top > least], found[top == least]
            return np.concatenate([above, equal[len(equal) - (count - len(above)) :]])
        if least > 0:
            return found
    return (score > 0).nonzero()[0]


def _without_repeats(order: NDArray[np.int64], columns: Columns, k: int) -> tuple[list[int], list[int]]:
    """Return the first k of order, of those that say the same the first one only; and the others that stand before."""
    seen: set[int] = set()
    chosen: list[int] = []
    repeats: list[int] = []
    for place, text in zip(order.tolist(), columns.column("text")[order].tolist(), strict=True):
        if len(chosen) == k:
            break
        (repeats if text in seen else chosen).append(place)
        seen.add(text)
    return chosen, repeats
