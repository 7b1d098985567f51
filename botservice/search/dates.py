"""Dates that a question names, as spans of time: "last May", "am 3. Juni", "5月3日", "2024-05-03", "yesterday"."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np
from numpy.typing import NDArray

from botservice.search.grammar import TABLES

MAX_SPANS: Final = 8
_MAX_CHARACTERS: Final = 2_000
_DAY: Final = 86_400.0
_TOLD_WITHIN_DAYS: Final = 10

_WORDS: Final = TABLES["dates"]
_LAST: Final = (
    (
        7,
        re.compile(
            "last week|letzte[nr]? woche|vorige woche|semana pasada|semaine dernière|지난 ?주|先週|上周|上星期|上週"
        ),
    ),
    (30, re.compile("last month|(?:letzten|vorigen) monat|mes pasado|mois dernier|지난 ?달|先月|上个月|上個月")),
    (365, re.compile("last year|(?:letztes|voriges) jahr|año pasado|an(?:née)? derni[eè]re?|작년|去年")),
)


def _numbered(table: str, first: int = 0) -> dict[str, int]:
    return {name: number for number, names in enumerate(_WORDS[table].splitlines(), first) for name in names.split()}


def _beginnings(names: dict[str, int]) -> str:
    return "|".join(re.escape(name) for name in sorted({name[:3] for name in names}))


def _any(names: dict[str, int]) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


_MONTH_OF: Final = _numbered("months", 1)
_WEEKDAY_OF: Final = _numbered("weekdays")
_AGO_OF: Final = _numbered("days_ago")
_UNIT_OF: Final = {name: int(days) for days, names in _WORDS["units"].items() for name in names.split()}
# Most questions name no time, and the patterns below take long to say so: what they cannot do without is sought first.
_MONTH_BEGINS: Final = re.compile(_beginnings(_MONTH_OF))
_WEEKDAY_BEGINS: Final = re.compile(_beginnings(_WEEKDAY_OF))
_DAYS_BEGIN: Final = re.compile(_beginnings(_AGO_OF))
_LAST_NEEDS: Final = re.compile("last |letzte|vorige|pasad|derni|지난|先|上|작년|去年")
_AGO_NEEDS: Final = re.compile("vor|hace|il y a|ago|전|前")
# Also other words, or too short to be sure of: a month only with a day, a year or a preposition.
_AMBIGUOUS: Final = frozenset(
    {"may", "march", "mars", "august", "abril", *(name for name in _MONTH_OF if len(name) < 4)}
)

_ISO: Final = re.compile(r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b")
_DOTTED: Final = re.compile(r"\b(\d{1,2})[./](\d{1,2})[./](\d{4})\b")
_CJK: Final = re.compile(r"(?:(\d{4})\s*[年년]\s*)?(?<!\d)(\d{1,2})\s*[月월](?:\s*(\d{1,2})\s*[日일号號])?")
_NAMED: Final = re.compile(
    r"(?:\b(\d{1,2})(?:st|nd|rd|th|er|º|\.)?\s+(?:of\s+|de\s+)?)?"
    r"(\b(?:in|last|since|im|letzten|seit|en|dernier|pasado|depuis|desde)\s+)?"
    rf"\b({_any(_MONTH_OF)})\b\.?(?:\s+(?:the\s+)?(\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d))?"
    r"(?:,?\s*(?:of\s+|de\s+|del\s+)?((?:19|20)\d\d)\b)?"
)
_YEAR: Final = re.compile(r"(?<!\d)((?:19|20)\d\d)(?!\d)")
_WEEKDAY: Final = re.compile(rf"(?<![a-zà-ÿ])({_any(_WEEKDAY_OF)})s?(?![a-zà-ÿ])")
_DAYS: Final = re.compile(rf"(?<![a-zà-ÿ])({_any(_AGO_OF)})(?![a-zà-ÿ])")
_AGO: Final = re.compile(
    rf"\b(?:vor|hace|il y a)\s+(\d{{1,3}})\s+({_any(_UNIT_OF)})\b"
    rf"|(?<!\d)(\d{{1,3}})\s*({_any(_UNIT_OF)})\s*(?:ago\b|전|前)"
)


@dataclass(frozen=True, slots=True)
class DateSpan:
    """A stretch of time that a question names: from start to end, or a day that comes back.

    Attributes:
        start, end: Seconds since the epoch, end exclusive.
        month: 1 to 12, where no year is named; day is then its day, or None for all.
        weekday: 0 (Monday) to 6.
    """

    start: float = 0.0
    end: float = 0.0
    month: int | None = None
    day: int | None = None
    weekday: int | None = None


def find_spans(text: str, *, now: datetime | None, is_german: bool = False) -> list[DateSpan]:
    """Return the spans of time that text names; relative ones only where now is given.

    Args:
        is_german: "hier" is "here" then, not yesterday.
    """
    text = text[:_MAX_CHARACTERS].casefold()
    spans = _exact(text) or [_year(int(match[1])) for match in _YEAR.finditer(text)]
    if now is not None:
        spans += _relative(text.replace("hier", "") if is_german else text, now.astimezone(UTC))
    if _WEEKDAY_BEGINS.search(text):
        spans += [DateSpan(weekday=_WEEKDAY_OF[match[1]]) for match in _WEEKDAY.finditer(text)]
    return spans[:MAX_SPANS]


def _exact(text: str) -> list[DateSpan]:
    found = [(m[1], int(m[2]), m[3]) for m in _ISO.finditer(text)] if "-" in text else []
    if "." in text or "/" in text:
        found += [(m[3], int(m[2]), m[1]) for m in _DOTTED.finditer(text)]
    if "月" in text or "월" in text:
        found += [(m[1], int(m[2]), m[3]) for m in _CJK.finditer(text)]
    if _MONTH_BEGINS.search(text):
        found += [
            (m[5], _MONTH_OF[m[3]], m[1] or m[4])
            for m in _NAMED.finditer(text)
            if m[3] not in _AMBIGUOUS or m[1] or m[2] or m[4] or m[5]
        ]
    spans = [_span(int(year or 0), month, int(day or 0)) for year, month, day in found]
    return [span for span in spans if span is not None]


def _span(year: int, month: int, day: int) -> DateSpan | None:
    """Return a day, or the month where day is 0; of every year where year is 0. None if the calendar has none."""
    if year == 0:
        return DateSpan(month=month, day=day or None) if 1 <= month <= 12 and day <= 31 else None
    try:
        start = datetime(year, month, day or 1, tzinfo=UTC)
        after = start + timedelta(days=1) if day else datetime(year + month // 12, month % 12 + 1, 1, tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
    return DateSpan(start.timestamp(), after.timestamp())


def _year(year: int) -> DateSpan:
    return DateSpan(datetime(year, 1, 1, tzinfo=UTC).timestamp(), datetime(year + 1, 1, 1, tzinfo=UTC).timestamp())


def _relative(text: str, now: datetime) -> list[DateSpan]:
    today = now.replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
    days = _DAYS.finditer(text) if _DAYS_BEGIN.search(text) else ()
    spans = [_ago(today, _AGO_OF[match[1]], 0.5) for match in days]
    for length, pattern in _LAST if _LAST_NEEDS.search(text) else ():
        if pattern.search(text):
            spans.append(_year(now.year - 1) if length == 365 else _ago(today, 1.5 * length, length / 2))
    for match in _AGO.finditer(text) if _AGO_NEEDS.search(text) else ():
        unit = _UNIT_OF[match[2] or match[4]]
        spans.append(_ago(today, int(match[1] or match[3]) * unit, unit / 2))
    return spans


def _ago(today: float, days: float, around: float) -> DateSpan:
    """Return the days around some days before today; around 0.5 is that day alone."""
    middle = today + _DAY / 2 - days * _DAY
    return DateSpan(middle - around * _DAY, middle + around * _DAY)


def nearness(times: NDArray[np.float64], span: DateSpan) -> NDArray[np.float32]:
    """Return 1 for times within span, less for the days after it, when people tell of it, and 0 for all others."""
    days = np.floor(times / _DAY).astype(np.int64)
    if span.weekday is not None:
        return np.where((days + 3) % 7 == span.weekday, np.float32(0.5), np.float32(0))
    if span.month is not None:
        months = days.astype("datetime64[D]").astype("datetime64[M]")
        is_near = months.astype(np.int64) % 12 + 1 == span.month
        if span.day is not None:
            is_near &= days - months.astype("datetime64[D]").astype(np.int64) + 1 == span.day
        return np.asarray(is_near, np.float32)
    late = np.maximum(0, times - span.end) / _DAY
    return np.asarray(np.where(times >= span.start, np.exp(-late / _TOLD_WITHIN_DAYS), 0), np.float32)
