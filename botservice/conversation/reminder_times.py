"""When reminders are due. Times of day are those of a place: they stay the same where its clocks are changed."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from itertools import count
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from botservice.conversation.reminder import Repeats

_SATURDAY = 5


def find_zone(name: str) -> ZoneInfo | None:
    """Return the time zone of an IANA name, or None if there is none."""
    try:
        return ZoneInfo(name.strip())
    except (ZoneInfoNotFoundError, ValueError, OSError):  # "America" is a folder
        return None


def read_moment(text: str, zone: ZoneInfo) -> datetime | None:
    """Return the UTC moment that an ISO 8601 date and time means, in zone where it names none; None for other texts.

    A date alone is no moment: nobody wants to be reminded at midnight unasked.
    """
    if ":" not in text:
        return None
    try:
        moment = datetime.fromisoformat(text.strip())
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)).astimezone(UTC)
    except (OverflowError, ValueError):  # or it is at the ends of the calendar
        return None


def next_time(starts_at: datetime, repeats: Repeats, zone: tzinfo, after: datetime) -> datetime:
    """Return the first time of a reminder that is later than a moment."""
    return next(moment for moment in _times(starts_at, repeats, zone, after) if moment > after)


def spell(moment: datetime, time_zone: str) -> str:
    """Return a moment as people read it, with the name of the place whose time it is."""
    zone = find_zone(time_zone)
    if zone is None or time_zone == "UTC":
        return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"
    return f"{moment.astimezone(zone):%Y-%m-%d %H:%M} ({time_zone})"


def _times(starts_at: datetime, repeats: Repeats, zone: tzinfo, after: datetime) -> Iterator[datetime]:
    """Yield the times from about a moment on."""
    days = 7 if repeats is Repeats.WEEKLY else 1
    first = starts_at.astimezone(zone).replace(tzinfo=None)
    # One period earlier than it seems: where clocks were changed in between, a day has 23 or 25 hours.
    begun = max(0, (after - starts_at) // timedelta(days=days) - 1)
    for number in count(begun):
        local = first + timedelta(days=days * number)
        if repeats is Repeats.WEEKDAYS and local.weekday() >= _SATURDAY:
            continue
        yield local.replace(tzinfo=zone).astimezone(UTC)
