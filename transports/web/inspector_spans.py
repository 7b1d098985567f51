"""What took time in a turn, as a tree: each span with when it began and ended, and where more stands about it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from botservice.core.messages import TokenUsage

SHORTEST_GAP: Final = 0.001  # seconds: what lasts less is not told


class SpanKind(StrEnum):
    """What a span is, and with that how its bar looks."""

    TURN = "turn"
    STEP = "step"
    QUEUE = "queue"
    PROMPT = "prompt"
    MODEL = "model"
    WRITE = "write"
    TOOL = "tool"
    STORE = "store"
    SEND = "send"
    GAP = "gap"
    PERSON = "person"  # a person has to decide
    RESULT = "result"  # a tool gives its result later
    RETRY = "retry"  # the next try is not due yet


_NOTES: Final = {
    SpanKind.QUEUE: "until a worker was free and the earlier messages of the conversation were done",
    SpanKind.STORE: "in the database, and callbacks",
    SpanKind.RETRY: "after an error",
    SpanKind.GAP: "nothing is recorded of this time",
}
_IDLE: Final = (SpanKind.PERSON, SpanKind.RESULT, SpanKind.RETRY)
_MOST_IDLE: Final = 0.5  # of what was not idle: so long are waits drawn together, at most


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """Something that took time.

    Attributes:
        begin: In seconds since the turn was accepted, as end, which is None while it lasts.
        target: The id of the element of the page that tells more about it.
        waited: How many of its seconds a person had to decide; they do not count.
    """

    name: str
    kind: SpanKind
    begin: float
    end: float | None
    target: str = ""
    note: str = ""
    is_bad: bool = False
    usage: TokenUsage | None = None
    cost: float = 0.0
    waited: float = 0.0
    children: "tuple[TimeSpan, ...]" = ()

    @property
    def took(self) -> float | None:
        """How many seconds it took, without those in which a person had to decide; None while it lasts."""
        return None if self.end is None else max(0.0, self.end - self.begin - self.waited)

    def below(self) -> "Iterable[TimeSpan]":
        """Yield it, and all below it."""
        yield self
        for each in self.children:
            yield from each.below()


NameGap = Callable[["TimeSpan | None", "TimeSpan"], tuple[str, SpanKind]]
"""Returns the name and the kind of the time between two spans that nothing else accounts for; None is the beginning."""


def with_gaps(spans: Iterable[TimeSpan], begin: float, name_gap: NameGap) -> list[TimeSpan]:
    """Return spans in the order in which they began, with what lies between them.

    Args:
        begin: From when on time has to be accounted for.
    """
    found, last = list[TimeSpan](), None
    at: float | None = begin  # None where something lasts
    for span in sorted(spans, key=lambda each: each.begin):
        if at is not None and span.begin - at >= SHORTEST_GAP:
            name, kind = name_gap(last, span)
            found.append(TimeSpan(name, kind, at, span.begin))
        found.append(span)
        if at is None or span.end is None:
            at = None
        elif span.end >= at:
            at, last = span.end, span
    return found


@dataclass(frozen=True, slots=True)
class Bar:
    """A span with its place in the picture."""

    span: TimeSpan
    x: int
    width: int
    children: "tuple[Bar, ...]"


class Scale:
    """Draws seconds in the width of a picture. Long waits are drawn shorter, or nothing else could be seen."""

    def __init__(self, root: TimeSpan, width: int) -> None:
        spans = list(root.below())
        end = max([each.end for each in spans if each.end is not None] + [each.begin for each in spans])
        self._end = end if all(each.end is not None for each in spans) else end * 1.1 + 0.1
        idle = [(each.begin, self._end if each.end is None else each.end) for each in spans if each.kind in _IDLE]
        self._idle = _merged(idle)
        waited = sum(after - first for first, after in self._idle)
        self._shrink = min(1.0, _MOST_IDLE * max(self._end - waited, 0.001) / waited) if waited else 1.0
        self._whole = self._seen(self._end) or 1.0
        self._width = width

    @property
    def is_shrunk(self) -> bool:
        """Whether waits are drawn shorter than they were."""
        return self._shrink < 1.0

    def draw(self, span: TimeSpan, narrowest: int) -> Bar:
        """Return a span and all below it with their places."""
        x, end = self._at(span.begin), self._at(self._end if span.end is None else span.end)
        x = min(x, self._width - narrowest)
        children = tuple(self.draw(each, narrowest) for each in span.children)
        return Bar(span, x, max(narrowest, end - x), children)

    def _at(self, seconds: float) -> int:
        return round(self._seen(seconds) / self._whole * self._width)

    def _seen(self, seconds: float) -> float:
        idle = sum(max(0.0, min(after, seconds) - first) for first, after in self._idle)
        return seconds - idle * (1.0 - self._shrink)


def _merged(intervals: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    merged = list[tuple[float, float]]()
    for first, after in sorted(intervals):
        if merged and first <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(merged[-1][1], after)
        else:
            merged.append((first, after))
    return merged


def number_targets(root: TimeSpan) -> tuple[TimeSpan, list[TimeSpan]]:
    """Give the spans of which nothing else is told an id of their own and a note, and return these spans as well."""
    told = list[TimeSpan]()

    def number(span: TimeSpan) -> TimeSpan:
        if not span.target:
            span = replace(span, target=f"time-{len(told)}", note=span.note or _NOTES.get(span.kind, ""))
            told.append(span)
        return replace(span, children=tuple(map(number, span.children)))

    return number(root), told
