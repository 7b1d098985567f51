"""The page of charts: turns, waiting, money, errors, caching and feedback over time."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from botservice.memory.replay import visible
from botservice.overview.charts import LOOKED_AT, Sums, read_sums
from botservice.overview.chat_titles import platform_label
from botservice.policies import NANO
from transports.web.inspector.chart_shapes import Plot, draw, moments, split
from transports.web.inspector.desk import Desk, show_seconds


@dataclass(frozen=True, slots=True)
class Range:
    """How far back charts go.

    Attributes:
        every: How long is summed up together.
        label: How a moment is written.
    """

    title: str
    whole: timedelta
    every: timedelta
    label: str


_HOUR, _DAY = timedelta(hours=1), timedelta(days=1)
RANGES: Final[Mapping[str, Range]] = {
    "day": Range("24 hours", 24 * _HOUR, _HOUR, "%d %b %H:00"),
    "week": Range("7 days", 7 * _DAY, 6 * _HOUR, "%d %b %H:00"),
    "month": Range("30 days", 30 * _DAY, _DAY, "%d %b"),
    "quarter": Range("90 days", 91 * _DAY, 7 * _DAY, "week of %d %b"),
}
_SPLITS: Final[Mapping[str, Callable[[Sums], str]]] = {
    "model": lambda sums: visible(sums.model) or "no model",
    "platform": lambda sums: platform_label(visible(sums.platform)),
}


class ChartsPage:
    """The endpoint of the charts."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def show(self, request: Request) -> Response:
        """Answer with the charts of some time, by model or by platform."""
        asked = request.query_params.get("range", "")
        chosen, by = asked if asked in RANGES else "week", request.query_params.get("by", "")
        by = by if by in _SPLITS else "model"
        shown, storage = RANGES[chosen], self._desk.storage
        until = _ceiling(storage.now(), shown.every)
        since = until - shown.whole
        summary = await storage.read(
            lambda connection: read_sums(connection, since, until, every=shown.every), is_long=True
        )
        series = split(summary.sums, _SPLITS[by])
        times = moments(since, until, shown.every)
        response = self._desk.pages.show(
            "inspect_charts.html",
            charts=[draw(plot, series, times, shown.label) for plot in self._plots()],
            ranges=[(name, each.title) for name, each in RANGES.items()],
            chosen=chosen,
            by=by,
            since=since,
            until=until,
            has_turns=bool(summary.sums),
            cut=LOOKED_AT if summary.is_cut else 0,
        )
        return self._desk.follow(request, response)

    def _plots(self) -> list[Plot]:
        currency = self._desk.budgets.currency
        return [
            Plot("Turns", "how many began", _total("turns"), _whole),
            Plot("Time to the answer", "since it was asked, on average", _waited, show_seconds, is_stacked=False),
            Plot("Time to the first token", "of the model, on average", _first_token, show_seconds, is_stacked=False),
            Plot("Cost", f"in {currency}", lambda sums: _total("cost")(sums) / NANO, _money),
            Plot("Errors", "turns that failed, and calls of a model that were tried again", _errors, _whole),
            Plot("Cached share", "of the tokens that were sent", _cached, _percent, is_stacked=False),
            Plot("Liked answers", "thumbs up", _total("good"), _whole),
            Plot("Disliked answers", "thumbs down", _total("bad"), _whole),
        ]


def _total(name: str) -> Callable[[Sequence[Sums]], float]:
    return lambda sums: float(sum(getattr(each, name) for each in sums))


def _waited(sums: Sequence[Sums]) -> float | None:
    answered = _total("answered")(sums)
    return _total("waited_seconds")(sums) / answered if answered else None


def _first_token(sums: Sequence[Sums]) -> float | None:
    known = _total("first_tokens")(sums)
    return _total("first_token_ms")(sums) / known / 1_000 if known else None


def _errors(sums: Sequence[Sums]) -> float:
    return _total("failed")(sums) + _total("failed_calls")(sums)


def _cached(sums: Sequence[Sums]) -> float | None:
    sent = _total("input_tokens")(sums)
    return _total("cached_tokens")(sums) / sent if sent else None


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _money(value: float) -> str:
    return f"{value:.4f}".rstrip("0").rstrip(".")


def _percent(value: float) -> str:
    return f"{value:.0%}"


def _ceiling(at: datetime, every: timedelta) -> datetime:
    """Return when the hour or day ends that a moment is in, as they are counted from 1970."""
    seconds = every.total_seconds()
    return datetime.fromtimestamp((at.timestamp() // seconds + 1) * seconds, at.tzinfo)
