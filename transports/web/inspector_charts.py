"""Charts as bars and lines of an SVG, with the same numbers as a table for screen readers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from botservice.conversation.refusal_queries import list_refusals
from botservice.conversation.replay import visible
from botservice.core.policies import NANO
from botservice.devtools.turn_queries import MOST_SUMMED, Sums, read_sums
from botservice.transport_plugins import platform_label
from transports.web.inspector_site import InspectorSite, show_seconds

WIDTH: Final = 1_000
HEIGHT: Final = 200
_MOST_SERIES: Final = 5
_GAP: Final = 0.18  # of a bar's place
OTHERS: Final = "others"

Measure = Callable[[Sequence[Sums]], float | None]
"""Returns the value to show for the sums of an hour or day, or None for a gap."""


@dataclass(frozen=True, slots=True)
class Rect:
    """A part of a bar."""

    x: float
    y: float
    width: float
    height: float
    look: int


@dataclass(frozen=True, slots=True)
class Chart:
    """What is drawn, and the numbers behind it.

    Attributes:
        names: Of the series, in the order of their looks.
        lines: The points of each series, as SVG has them, in runs without a gap; empty where bars are drawn.
        dots: The points by themselves, with the look of each.
        top: The largest value, as it is shown.
        is_empty: Whether there is nothing to draw.
        rows: For each moment its label and the values of all series, as they are shown.
    """

    title: str
    about: str
    names: Sequence[str]
    bars: Sequence[Rect]
    lines: Sequence[tuple[int, str]]
    dots: Sequence[tuple[float, float, int]]
    top: str
    is_empty: bool
    rows: Sequence[tuple[str, Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Plot:
    """What a chart shows."""

    title: str
    about: str
    measure: Measure
    show: Callable[[float], str]
    is_stacked: bool = True


def moments(since: datetime, until: datetime, every: timedelta) -> list[datetime]:
    """Return when each hour or day of some time begins."""
    count = max(1, round((until - since) / every))
    return [since + every * place for place in range(count)]


def split(sums: Sequence[Sums], key: Callable[[Sums], str]) -> Mapping[str, Sequence[Sums]]:
    """Return the sums of each series; those with the fewest turns together."""
    counts: dict[str, int] = {}
    for each in sums:
        counts[key(each)] = counts.get(key(each), 0) + each.turns
    names = sorted(counts, key=lambda name: (-counts[name], name))
    kept = set(names[:_MOST_SERIES] if len(names) <= _MOST_SERIES else names[: _MOST_SERIES - 1])
    found: dict[str, list[Sums]] = {name: [] for name in names if name in kept}
    for each in sums:
        found.setdefault(key(each) if key(each) in kept else OTHERS, []).append(each)
    return found


def draw(plot: Plot, series: Mapping[str, Sequence[Sums]], times: Sequence[datetime], label: str) -> Chart:
    """Return a chart."""
    values = {
        name: [plot.measure([each for each in sums if each.at == at]) for at in times] for name, sums in series.items()
    }
    totals = [sum(each[place] or 0.0 for each in values.values()) for place in range(len(times))]
    singles = [value for each in values.values() for value in each if value is not None]
    top = max(totals if plot.is_stacked else singles, default=0.0) or 1.0
    written = [["" if value is None else plot.show(value) for value in each] for each in values.values()]
    rows = [(f"{at:{label}}", [each[place] for each in written]) for place, at in enumerate(times)]
    bars = _stack(list(values.values()), top) if plot.is_stacked else []
    lines, dots = ([], []) if plot.is_stacked else _trace(list(values.values()), top)
    is_empty = not any(singles) if plot.is_stacked else not singles
    return Chart(plot.title, plot.about, list(series), bars, lines, dots, plot.show(top), is_empty, rows)


def _stack(values: Sequence[Sequence[float | None]], top: float) -> list[Rect]:
    bars, count = list[Rect](), len(values[0]) if values else 0
    slot = WIDTH / max(1, count)
    for place in range(count):
        y = float(HEIGHT)
        for look, each in enumerate(values):
            height = (each[place] or 0.0) / top * HEIGHT
            if height > 0:
                y -= height
                x = place * slot + slot * _GAP / 2
                bars.append(Rect(round(x, 1), round(y, 1), round(slot * (1 - _GAP), 1), round(height, 1), look))
    return bars


def _trace(
    values: Sequence[Sequence[float | None]], top: float
) -> tuple[list[tuple[int, str]], list[tuple[float, float, int]]]:
    lines, dots = list[tuple[int, str]](), list[tuple[float, float, int]]()
    for look, each in enumerate(values):
        run, slot = list[tuple[float, float]](), WIDTH / max(1, len(each))
        for place, value in enumerate([*each, None]):
            if value is not None:
                run.append((round((place + 0.5) * slot, 1), round(HEIGHT - value / top * (HEIGHT - 8) - 4, 1)))
            elif run:
                lines.append((look, " ".join(f"{x},{y}" for x, y in run)))
                dots += [(x, y, look) for x, y in run]
                run = []
    return lines, dots


@dataclass(frozen=True, slots=True)
class Range:
    """How far back charts go."""

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


async def show_charts(site: InspectorSite, request: Request) -> Response:
    """Answer with the charts of some time, by model or by platform."""
    asked = request.query_params.get("range", "")
    chosen, by = asked if asked in RANGES else "week", request.query_params.get("by", "")
    by = by if by in _SPLITS else "model"
    shown, storage = RANGES[chosen], site.storage
    now = storage.now()
    until = _ceiling(now, shown.every)
    since = until - shown.whole
    summary = await storage.read(
        lambda connection: read_sums(connection, since, until, every=shown.every), is_long=True
    )
    series = split(summary.sums, _SPLITS[by])
    times = moments(since, until, shown.every)
    return site.show(
        request,
        "inspect_charts.html",
        charts=[draw(plot, series, times, shown.label) for plot in _plots(site.budgets.currency)],
        ranges=[(name, each.title) for name, each in RANGES.items()],
        chosen=chosen,
        by=by,
        since=since,
        until=until,
        has_turns=bool(summary.sums),
        cut=MOST_SUMMED if summary.is_cut else 0,
        refusals=await storage.read(lambda connection: list_refusals(connection, now)),
    )


def _plots(currency: str) -> list[Plot]:
    whole = "{:,.0f}".format
    waited, cached = _ratio("waited_seconds", "answered"), _ratio("cached_tokens", "input_tokens")
    first_token, errors = _ratio("first_token_ms", "first_tokens", unit=1_000), _total("failed", "failed_calls")
    return [
        Plot("Turns", "how many began", _total("turns"), whole),
        Plot("Time to the answer", "since it was asked, on average", waited, show_seconds, is_stacked=False),
        Plot("Time to the first token", "of the model, on average", first_token, show_seconds, is_stacked=False),
        Plot("Cost", f"in {currency}", _total("cost", unit=NANO), _money),
        Plot("Errors", "turns that failed, and calls of a model that were tried again", errors, whole),
        Plot("Cached share", "of the tokens that were sent", cached, "{:.0%}".format, is_stacked=False),
        Plot("Liked answers", "thumbs up", _total("good"), whole),
        Plot("Disliked answers", "thumbs down", _total("bad"), whole),
    ]


def _total(*names: str, unit: int = 1) -> Callable[[Sequence[Sums]], float]:
    return lambda sums: sum(getattr(each, name) for each in sums for name in names) / unit


def _ratio(name: str, to: str, *, unit: int = 1) -> Measure:
    """Return the measure of a total in proportion to another one, with a gap where that is 0."""

    def measure(sums: Sequence[Sums]) -> float | None:
        whole = _total(to)(sums)
        return _total(name)(sums) / whole / unit if whole else None

    return measure


def _money(value: float) -> str:
    return f"{value:.4f}".rstrip("0").rstrip(".")


def _ceiling(at: datetime, every: timedelta) -> datetime:
    """Return when the hour or day ends that a moment is in, as they are counted from 1970."""
    seconds = every.total_seconds()
    return datetime.fromtimestamp((at.timestamp() // seconds + 1) * seconds, at.tzinfo)
