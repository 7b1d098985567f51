"""The rules of schedules: how people write them, as cron knows them, and the next time of each.

Times of day are those of a place. Where its clocks are changed, cronsim does as Debian's cron does: a time that is left
out comes right after the change, one that comes twice counts once.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from botservice.conversation.time_zones import find_nearest_zone, find_zone, stored_zone

_OFTENEST: Final = 5  # minutes
_DAYS: Final = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_TIME: Final = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)", re.ASCII)
_ZONE: Final = re.compile(r"[A-Za-z_]{1,40}(/[A-Za-z0-9_+-]{1,40}){1,2}|UTC|GMT|[CEW]ET|[EMH]ST", re.ASCII)
_LIKE_A_ZONE: Final = re.compile(r"[^\W\d]{1,40}(/[\w+-]{1,40}){1,2}")
_REGIONS: Final = (
    "africa",
    "america",
    "antarctica",
    "arctic",
    "asia",
    "atlantic",
    "australia",
    "europe",
    "indian",
    "pacific",
)
_FIELDS: Final = 5


@dataclass(frozen=True, slots=True)
class ScheduleWish:
    """A schedule as a person asks for it.

    Attributes:
        rule: Five fields of cron.
        zone: The place whose time is meant, where one is named.
        text: What is to be done.
        mistyped_zone: What stands in the place of a zone and is like the name of one, and that name.
    """

    rule: str
    zone: ZoneInfo | None
    text: str
    mistyped_zone: tuple[str, str] | None = None


def read_schedule(arguments: str) -> ScheduleWish | None:
    """Read `every monday 09:00 TEXT`, `daily 18:30 TEXT`, `every 2 hours TEXT` or `0 9 * * 1 TEXT`.

    Behind the time a place may stand, such as Europe/Madrid. None for what is not written so.
    """
    words = arguments.split()
    found = _read_words(words) or _read_cron(words)
    if found is None:
        return None
    rule, used = found
    rest = words[used:]
    zone = find_zone(rest[0]) if rest and _ZONE.fullmatch(rest[0]) else None
    count = used + (zone is not None)
    text = arguments.split(None, count)[count].strip() if len(words) > count else ""
    return ScheduleWish(rule, zone, text, _find_mistyped(rest[0]) if rest and zone is None else None)


def _find_mistyped(word: str) -> tuple[str, str] | None:
    """Return a word that is meant as a time zone, and the nearest one; None for another word, such as and/or."""
    if _LIKE_A_ZONE.fullmatch(word) is None:
        return None
    is_of_region = word.partition("/")[0].lower() in _REGIONS
    nearest = find_nearest_zone(word, likeness=0.0 if is_of_region else 0.75)
    return None if nearest is None else (word, nearest)


def next_by_rule(rule: str, time_zone: str, after: datetime) -> datetime | None:
    """Return the first time of a rule that is later than a moment; None if it never comes again."""
    moment = next(iter(CronSim(rule, after.astimezone(stored_zone(time_zone)))), None)
    return None if moment is None else moment.astimezone(UTC)


def is_too_often(rule: str) -> bool:
    """Return whether a rule has two times of day that are too close to each other, on whatever days they come."""
    fields = CronSim(rule, datetime.now(UTC))
    minutes = sorted(fields.minutes)
    gaps = [later - earlier for earlier, later in pairwise(minutes)]
    if any((hour + 1) % 24 in fields.hours for hour in fields.hours):
        gaps.append(minutes[0] + 60 - minutes[-1])
    return any(gap < _OFTENEST for gap in gaps)


def _read_words(words: list[str]) -> tuple[str, int] | None:
    """Return the rule of words such as `every monday 09:00`, and how many they are."""
    lower = [each.lower() for each in words[:4]]
    if lower[:1] == ["daily"]:
        return _at_time("*", lower, 1)
    if lower[:1] != ["every"] or len(lower) < 2:
        return None
    if lower[1] == "hour":
        return "0 * * * *", 2
    if lower[1].isascii() and lower[1].isdecimal() and len(lower) > 2:
        return _every(int(lower[1]), lower[2])
    days = {"day": "*", "weekday": "1-5"} | {day: str(number) for number, day in enumerate(_DAYS)}
    return _at_time(days[lower[1]], lower, 2) if lower[1] in days else None


def _every(number: int, unit: str) -> tuple[str, int] | None:
    """Return the rule of every so many hours or minutes, where these divide a day or an hour."""
    if unit.startswith("hour") and 0 < number < 24 and 24 % number == 0:
        return f"0 */{number} * * *", 3
    if unit.startswith("minute") and 0 < number < 60 and 60 % number == 0:
        return f"*/{number} * * * *", 3
    return None


def _at_time(days: str, lower: list[str], used: int) -> tuple[str, int] | None:
    used += lower[used : used + 1] == ["at"]
    found = _TIME.fullmatch(lower[used]) if len(lower) > used else None
    return None if found is None else (f"{int(found[2])} {int(found[1])} * * {days}", used + 1)


def _read_cron(words: list[str]) -> tuple[str, int] | None:
    rule = " ".join(words[:_FIELDS])
    try:
        CronSim(rule, datetime.now(UTC))
    except CronSimError:
        return None
    return rule, _FIELDS
