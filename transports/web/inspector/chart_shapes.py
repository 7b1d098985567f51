"""Charts as bars and lines of an SVG, with the same numbers as a table for screen readers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from botservice.overview.charts import Sums

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
        rows: For each moment its label and the values of all series, as they are shown.
    """

    title: str
    about: str
    names: Sequence[str]
    bars: Sequence[Rect]
    lines: Sequence[tuple[int, str]]
    dots: Sequence[tuple[float, float, int]]
    top: str
    rows: Sequence[tuple[str, Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Plot:
    """What a chart shows.

    Attributes:
        is_stacked: Bars on top of each other; otherwise lines.
        show: How a value is written.
    """

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
    """Return a chart.

    Args:
        label: How a moment is written, for strftime.
    """
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
    return Chart(plot.title, plot.about, list(series), bars, lines, dots, plot.show(top if singles else 0.0), rows)


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
