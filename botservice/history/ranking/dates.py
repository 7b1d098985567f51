"""Dates that a question names, as spans of time: "last May", "am 3. Juni", "5月3日", "2024-05-03", "yesterday"."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

_MONTHS: Final = (
    "january jan januar jänner enero janvier gennaio janeiro",
    "february feb februar febrero février fevrier febbraio fevereiro",
    "march mar märz marz maerz marzo mars março",
    "april apr abril avril aprile",
    "may mai mayo maggio maio",
    "june jun juni junio juin giugno junho",
    "july jul juli julio juillet luglio julho",
    "august aug agosto août aout",
    "september sep sept septiembre setiembre septembre settembre setembro",
    "october oct oktober okt octubre octobre ottobre outubro",
    "november nov noviembre novembre",
    "december dec dezember dez diciembre décembre dicembre dezembro",
)
_WEEKDAYS: Final = (
    "monday montag lunes lundi lunedì segunda 월요일 月曜日 月曜 星期一 周一",
    "tuesday dienstag martes mardi martedì terça 화요일 火曜日 火曜 星期二 周二",
    "wednesday mittwoch miércoles miercoles mercredi mercoledì quarta 수요일 水曜日 水曜 星期三 周三",
    "thursday donnerstag jueves jeudi giovedì quinta 목요일 木曜日 木曜 星期四 周四",
    "friday freitag viernes vendredi venerdì sexta 금요일 金曜日 金曜 星期五 周五",
    "saturday samstag sonnabend sábado sabado samedi sabato 토요일 土曜日 土曜 星期六 周六",
    "sunday sonntag domingo dimanche domenica 일요일 日曜日 日曜 星期日 星期天 周日",
)
_DAYS_AGO: Final = {
    0: "today heute hoy aujourd'hui oggi hoje 오늘 今日 今天",
    1: "yesterday gestern ayer hier ieri ontem 어제 昨日 昨天",
    2: "vorgestern anteayer avant-hier 그저께 一昨日 前天",
}
_UNITS: Final = {
    1: "day days tag tage tagen día días dia dias jour jours 일 日 天",
    7: "week weeks woche wochen semana semanas semaine semaines 주 週間 周 星期",
    30: "month months monat monate monaten mes meses mois 달 개월 ヶ月 か月 个月",
    365: "year years jahr jahre jahren año años an ans année années 년 年",
}
_LAST_SPANS: Final = {
    (7, 7): "last week|letzte[nr]? woche|vorige woche|semana pasada|semaine dernière|지난주|지난 주|先週|上周|上星期|上週",
    (30, 31): "last month|letzten monat|vorigen monat|mes pasado|mois dernier|지난달|지난 달|先月|上个月|上個月",
    (365, 366): "last year|letztes jahr|voriges jahr|año pasado|l'an dernier|année dernière|작년|去年",
}
MONTH_OF: Final = {name: number for number, names in enumerate(_MONTHS, 1) for name in names.split()}
WEEKDAY_OF: Final = {name: number for number, names in enumerate(_WEEKDAYS) for name in names.split()}
_AGO_OF: Final = {name: days for days, names in _DAYS_AGO.items() for name in names.split()}
_UNIT_OF: Final = {name: days for days, names in _UNITS.items() for name in names.split()}
_NAMES: Final = "|".join(sorted(MONTH_OF, key=len, reverse=True))
_AMBIGUOUS: Final = frozenset({"may", "mar", "mars", "march", "sep", "jun", "dec", "jan", "mai", "avril", "april", "august"})
_ISO: Final = re.compile(r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b")
_DOTTED: Final = re.compile(r"\b(\d{1,2})[./](\d{1,2})[./](\d{4})\b")
_CJK: Final = re.compile(r"(?:(\d{4})\s*[年년]\s*)?(\d{1,2})\s*[月월](?:\s*(\d{1,2})\s*[日일号號])?")
_NAMED: Final = re.compile(
    rf"(?:\b(\d{{1,2}})(?:st|nd|rd|th|er|º|\.)?\s+(?:of\s+|de\s+)?)?\b({_NAMES})\b\.?(?:\s+(?:the\s+)?(\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d))?"
    r"(?:,?\s*(?:of\s+|de\s+|del\s+)?((?:19|20)\d\d)\b)?"
)
_YEAR: Final = re.compile(r"(?<!\d)((?:19|20)\d\d)(?!\d)")
_AGO: Final = re.compile(
    r"(?:vor|hace|il y a)\s+(\d{1,3})\s+([^\W\d]+)|(\d{1,3})\s*([^\W\d_]+?)\s*(?:ago|전|前)(?!\w)"
)
_LAST: Final = tuple((days, re.compile(words)) for days, words in _LAST_SPANS.items())


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of time that a question names.

    Attributes:
        start, end: Seconds since the epoch, end exclusive; None where only month or weekday are named.
        month: 1 to 12, where no year is known.
        weekday: 0 (Monday) to 6.
    """

    start: float | None = None
    end: float | None = None
    month: int | None = None
    day: int | None = None
    weekday: int | None = None


def find_spans(text: str, *, now: datetime | None) -> list[Span]:
    """Return the spans of time that text names; relative ones only where now is given."""
    text = text[:2000].casefold()
    spans = _exact(text)
    if not spans:
        spans = [_year(int(match[1])) for match in _YEAR.finditer(text)]
    if now is not None:
        spans += _relative(text, now)
    return spans + [Span(weekday=WEEKDAY_OF[word]) for word in WEEKDAY_OF if re.search(rf"(?<!\w){word}s?(?!\w)", text)]


def _exact(text: str) -> list[Span]:
    spans = [_span(int(m[1]), int(m[2]), int(m[3])) for m in _ISO.finditer(text)]
    spans += [_span(int(m[3]), int(m[2]), int(m[1])) for m in _DOTTED.finditer(text)]
    spans += [_span(_number(m[1]), int(m[2]), _number(m[3])) for m in _CJK.finditer(text)]
    for match in _NAMED.finditer(text):
        day, year = _number(match[1]) or _number(match[3]), _number(match[4])
        bare = day is None and year is None and match[2] in _AMBIGUOUS
        if not bare or re.search(rf"\b(?:in|last|since|im|letzten|en|de|dernier|pasado)\s+{match[2]}\b", text):
            spans.append(_span(year, MONTH_OF[match[2]], day))
    return [span for span in spans if span is not None]


def _number(digits: str | None) -> int | None:
    return int(digits) if digits else None


def _span(year: int | None, month: int, day: int | None) -> Span | None:
    if not 1 <= month <= 12 or (day is not None and not 1 <= day <= 31):
        return None
    if year is None:
        return Span(month=month, day=day)
    try:
        start = datetime(year, month, day or 1, tzinfo=UTC)
    except ValueError:
        return None
    if day is not None:
        return Span(start.timestamp(), (start + timedelta(days=1)).timestamp(), month, day)
    end = datetime(year + (month == 12), month % 12 + 1, 1, tzinfo=UTC)
    return Span(start.timestamp(), end.timestamp(), month)


def _year(year: int) -> Span:
    return Span(datetime(year, 1, 1, tzinfo=UTC).timestamp(), datetime(year + 1, 1, 1, tzinfo=UTC).timestamp())


def _relative(text: str, now: datetime) -> list[Span]:
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    spans = []
    for word, days in _AGO_OF.items():
        if re.search(rf"(?<!\w){word}(?!\w)" if word.isascii() else re.escape(word), text):
            spans.append(_ago(midnight, days, days - 1))
    for (most, length), pattern in _LAST:
        if pattern.search(text):
            spans.append(_ago(midnight, most + length, max(0, most - length)) if most < 365 else _year(now.year - 1))
    for match in _AGO.finditer(text):
        unit = _UNIT_OF.get(match[2] or match[4])
        if unit:
            days = int(match[1] or match[3]) * unit
            spans.append(_ago(midnight, days + unit // 2, days - unit // 2 - 1))
    return spans


def _ago(midnight: datetime, most: int, least: int) -> Span:
    return Span((midnight - timedelta(days=most)).timestamp(), (midnight - timedelta(days=least)).timestamp())
