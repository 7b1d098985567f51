"""From a question to a ranking: words, the talk around them, who spoke and when."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, islice, zip_longest
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botservice.core.messages import Author
from botservice.search.arrays import highest, scaled
from botservice.search.columns import Columns
from botservice.search.dates import nearness
from botservice.search.evidence import ChatEvidence, Evidence, Scores, find_evidence
from botservice.search.query import Query
from botservice.search.versions import renew
from botservice.search.weights import Weights

_POOL: Final = 20  # times k: enough to fill k places after repeats are left out, nearly always
_RENEWED: Final = 40  # places among which what is newer is looked for: more than any prompt takes
_MOST_RENEWED: Final = 160  # with those that equal the last: each is compared with each
_LEAST_SPREAD: Final = 1e-6
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


class Ranking(list[tuple[int, float]]):
    """Ids with their scores, best first.

    Attributes:
        coverage: How much of what a question asks for the best message has, from 0 to 1: by the worth of its words, and
            where there are vectors, the mean of that and of the greatest similarity; 1 where it asks for a person's
            words, or those of a time.
        by_meaning: Whether vectors were compared, besides words.
    """

    def __init__(
        self, found: Iterable[tuple[int, float]] = (), coverage: float = 0.0, *, by_meaning: bool = False
    ) -> None:
        super().__init__(found)
        self.coverage, self.by_meaning = coverage, by_meaning


def merge_rankings(rankings: Sequence[Ranking], k: int) -> Ranking:
    """Merge what several questions found into the best k: the best of each first, then the second best."""
    merged: dict[int, float] = {}
    for group in zip_longest(*rankings):
        for found in group:
            if found is not None:
                merged.setdefault(*found)
    falling = accumulate(merged.values(), min)
    found = islice(zip(merged, falling, strict=True), k)
    by_meaning = any(each.by_meaning for each in rankings)
    return Ranking(found, max(each.coverage for each in rankings), by_meaning=by_meaning)


@dataclass(frozen=True, slots=True)
class _Messages:
    """The messages that are ranked, and what is known of them.

    Attributes:
        possible: What all words of the question would be worth together.
        hidden: Places of those that are not to be found; shown ones are among them.
        meaning: How near each is by its vector from 0 to 1, and whether that is enough alone; None without vectors.
        nearest: How similar the nearest one is.
    """

    columns: Columns
    evidence: list[Evidence]
    possible: float
    hidden: NDArray[np.int64]
    meaning: tuple[Scores, NDArray[np.bool_]] | None
    nearest: float


@dataclass(frozen=True, slots=True)
class _People:
    """Those that a question is about, by their numbers: the people who are named, and the person who asks."""

    named: set[int]
    asking: set[int]


def rank(chat: ChatEvidence, request: Request, *, k: int, weights: Weights) -> Ranking:
    """Rank the messages of a chat for a question, and return the best k."""
    people = _People(
        set().union(*(chat.people.named(word) for word in request.query.words)),
        set() if request.asker is None else chat.people.numbers_of(request.asker),
    )
    evidence, possible = find_evidence(chat, request.query, weights, request.hidden)
    every = _Messages(
        chat.columns,
        evidence,
        possible,
        np.concatenate([request.hidden, request.shown]),
        None if request.dense is None else _meaning(request.dense, request.hidden, weights),
        0.0 if request.dense is None else float(np.nan_to_num(request.dense, nan=0).max(initial=0)),
    )
    return _best_of(every, request, people, k, weights)


def _best_of(messages: _Messages, request: Request, people: _People, k: int, weights: Weights) -> Ranking:
    """Return ids and scores of the best k messages."""
    columns = messages.columns
    factor, alone = _by_circumstances(messages, request, people, weights)
    content = _by_content(messages, weights)
    score = content.score * factor
    if alone is not None:
        score += alone
    (repeats,) = (columns.column("text") == request.fingerprint).nonzero()
    if len(repeats):
        score[repeats] += (float(score.max(initial=0)) + 1) * (factor[repeats] > 0)
    order = _in_order(score, highest(score, max(_POOL * k, _MOST_RENEWED)))
    values = score[order]
    count = max(k, _RENEWED)
    if len(order) > count:  # with those that equal the last
        count = min(int(np.count_nonzero(values >= values[count - 1])), max(count, _MOST_RENEWED))
    places = np.sort(order[:count])
    if renew(score, places, content.gains, content.words_at(places), columns, weights):
        order = _in_order(score, order)
    best = _best(score, order, columns, k)
    falling = np.minimum.accumulate(score[best])  # what was said again scores no more than what stands before it
    found = _each_once(columns, best, falling) if request.is_each_once else _with_ids(columns, best, falling)
    coverage = content.coverage if alone is None else 1.0
    return Ranking(found, coverage, by_meaning=messages.meaning is not None)


@dataclass(frozen=True, slots=True)
class _Content:
    """What each message and the talk around it have of a question's words and of its meaning.

    Attributes:
        gains: What each word is worth, a row for each.
        strength: How much of some words (rows) the messages (columns) have.
        coverage: As in Ranking.
    """

    score: Scores
    gains: Scores
    strength: list[Scores]
    coverage: float

    def words_at(self, places: NDArray[np.int64]) -> Scores:
        """Return which words (rows) the messages at places (columns) have: 1 or 0."""
        rows = [strength.take(places, axis=1) >= _LEAST_STRENGTH for strength in self.strength]
        return np.concatenate(rows, dtype=np.float32) if rows else np.zeros((0, len(places)), np.float32)


def _by_content(messages: _Messages, weights: Weights) -> _Content:
    """Return what each message and the talk around it have of a question's words and of its meaning."""
    columns, evidence, size = messages.columns, messages.evidence, len(messages.columns)
    talk = TalkLinks(columns, weights)
    own, around = np.zeros(size, np.float32), np.zeros(size, np.float32)
    gains = np.array([[part.gain] for part in evidence], np.float32)
    found: list[Scores] = []
    at_once = max(1, _CELLS // size)
    for first in range(0, len(evidence), at_once):
        strength = _strength(evidence[first : first + at_once], columns, weights)
        worth = gains[first : first + at_once]
        own += np.add.reduce(worth * strength, axis=0)
        around += np.add.reduce(worth * talk.near(np.minimum(strength, 1)), axis=0)
        found.append(strength)
    best = float(own.max(initial=0))
    own, around = scaled(own), scaled(around)
    is_hit = (own > 0) | (around >= weights.least_around)
    coverage = min(1.0, best / messages.possible) if messages.possible else 0.0
    if messages.meaning is not None:
        trust = np.float32(min(1, coverage / weights.covered))
        own *= trust
        around *= trust
        coverage = (coverage + messages.nearest) / 2
    gained = weights.window * around
    if messages.meaning is not None:
        meaning, is_near = messages.meaning
        is_hit |= is_near
        asks = messages.columns.column("is_question") & (messages.columns.column("length") <= weights.brief)
        own += weights.dense * meaning * ~asks
        gained += weights.dense_window * talk.near(meaning[None])[0]
    score = own + talk.from_neighbours(own) + gained
    score *= is_hit
    return _Content(score, gains, found, coverage)


def _strength(parts: Sequence[Evidence], columns: Columns, weights: Weights) -> Scores:
    """Return how much of each word (rows) the messages have: 1 for once in a message of average length."""
    average = columns.mean_length or 1.0
    places = np.concatenate([part.places for part in parts])
    counts = np.concatenate([part.counts for part in parts])
    # A very long message counts as a shorter one: it is found by one of its sentences, too.
    norms = np.minimum(columns.column("length").take(places), np.float32(weights.longest * average))
    norms *= np.float32(weights.k1 * weights.b / average)
    norms += np.float32(weights.k1 * (1 - weights.b))
    strength = counts * np.float32(weights.k1 + 1) / (counts + norms)
    if any(part.others is not None for part in parts):
        nothing = [np.zeros(len(part.places), np.float32) if part.others is None else part.others for part in parts]
        strength = np.maximum(strength, np.concatenate(nothing))
    found = np.zeros((len(parts), len(columns)), np.float32)
    found[np.repeat(np.arange(len(parts)), [len(part.places) for part in parts]), places] = strength
    return found


def _meaning(dense: Scores, hidden: NDArray[np.int64], weights: Weights) -> tuple[Scores, NDArray[np.bool_]]:
    """Return similarity from 0 (as similar as most, or no vector) to 1 (the best), and whether it is enough alone.

    Models differ in how similar two texts are that have nothing in common: what counts is the way above the mean.
    """
    dense = dense.copy()
    dense[hidden] = np.nan
    known = np.isfinite(dense)
    if not known.any():
        return np.zeros(len(dense), np.float32), known
    mean, best = float(dense[known].mean()), float(dense[known].max())
    if best - mean < _LEAST_SPREAD:  # one message, or all alike
        mean = 0.0
    above = np.where(known, np.clip((dense - mean) / max(best - mean, _LEAST_SPREAD), 0, 1), 0).astype(np.float32)
    return above, known & (dense >= weights.least_similarity) & (above > 0)


def _by_circumstances(
    messages: _Messages, request: Request, people: _People, weights: Weights
) -> tuple[Scores, Scores | None]:
    """Return what each message's words are multiplied by, and what it is worth without: by who spoke, and when."""
    columns, query = messages.columns, request.query
    factor, alone = _boost(columns, query, people, weights), None
    if people.named:
        alone = np.float32(weights.author_alone) * _is_of(columns, people.named)
    if query.spans:
        near = np.max([nearness(columns.column("time"), span) for span in query.spans], axis=0).astype(np.float32)
        factor *= 1 + np.float32(weights.date) * near
        when = np.float32(weights.date_alone) * near
        alone = when if alone is None else alone + when
    factor *= columns.is_alive
    factor[messages.hidden] = 0
    if request.said_within is not None:
        since, until = request.said_within
        times = columns.column("time")
        factor[(times < since) | (times >= until)] = 0
    return factor, None if alone is None else alone * (factor > 0)


def _boost(columns: Columns, query: Query, people: _People, weights: Weights) -> Scores:
    is_user = columns.column("is_user")
    boost: Scores = columns.column("standing").copy()
    if people.named:
        boost += weights.author * _is_of(columns, people.named)
    elif query.is_about_speaker:
        boost += weights.asker * (_is_of(columns, people.asking) if people.asking else is_user)
    elif query.is_about_listener:
        boost += weights.listener * ~is_user
    if query.asks_when:
        boost += weights.when * columns.column("has_time")
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


def _best(score: Scores, order: NDArray[np.int64], columns: Columns, k: int) -> NDArray[np.int64]:
    """Return the k that come first in order, the best of all; repeats after all."""
    chosen, repeats = _without_repeats(order, columns, k)
    if len(chosen) < k:
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


class TalkLinks:
    """Which messages follow each other in one talk, and how much of a word reaches from one to the next."""

    def __init__(self, columns: Columns, weights: Weights) -> None:
        self._reach, self._before, self._after = weights.reach, columns.column("before"), columns.column("after")
        self._onward, self._backward = columns.column("onward"), columns.column("backward")

    def near(self, strength: Scores) -> Scores:
        """Return the greatest strength that stands in each message or reaches it; strength may have many rows.

        Each word counts once, where it is nearest: the sum over words finds the stretch of talk that has all of
        them, where a sum over messages would find the one that repeats a frequent word.
        """
        near, onward, backward = strength.copy(), strength, strength
        for step in range(1, self._reach + 1):
            onward = onward[..., :-1] * self._onward[step:]
            backward = backward[..., 1:] * self._backward[1 : len(self._backward) - step + 1]
            np.maximum(near[..., step:], onward, out=near[..., step:])
            np.maximum(near[..., :-step], backward, out=near[..., :-step])
        return near

    def from_neighbours(self, own: Scores) -> Scores:
        """Return what a message gains from the scores of its neighbours, most from a question before it."""
        gained = np.zeros_like(own)
        gained[1:] = self._before[1:] * own[:-1]
        gained[:-1] += self._after[1:] * own[1:]
        return gained
