"""A reminder: its values, its times and its texts.

Times of day are those of a place: they stay the same where its clocks are changed.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from itertools import count
from typing import Any, Final
from zoneinfo import ZoneInfo

from botservice.conversation.time_zones import find_zone, known_zone
from botservice.core.formatted_text import FormattedText
from botservice.core.messages import Author, Moment
from botservice.core.states import ReminderStatus
from botservice.texts.formatted import say, time

MAX_WAITING: Final = 50  # in one chat
LONGEST_TEXT: Final = 2_000  # characters
LATEST: Final = timedelta(days=5 * 366)
LATE: Final = timedelta(minutes=5)  # what comes later than this says so


class Repeats(StrEnum):
    """How often a reminder comes again, at the same time of day."""

    DAILY = "daily"
    WEEKDAYS = "weekdays"  # Monday to Friday
    WEEKLY = "weekly"


@dataclass(frozen=True, slots=True)
class Reminder:
    """A message, or a task, for a chat at a time.

    Attributes:
        is_task: Whether the agent is asked the text then, and its answer is what the chat is told.
        due_at: The next time.
        starts_at: The first time; the others are counted from it.
        time_zone: The IANA name of where its time of day is meant.
        language: Two letters, of the person who asked for it, or None if that is not known.
        rule: When a schedule comes, as five fields of cron; None for what is no schedule.
        status: Where it is.
    """

    id: int
    context_id: int
    transport: str
    text: str
    due_at: datetime
    starts_at: datetime
    created_at: datetime
    is_task: bool = False
    repeats: Repeats | None = None
    time_zone: str = "UTC"
    language: str | None = None
    author: Author | None = None
    rule: str | None = None
    status: str = ReminderStatus.WAITING

    @property
    def is_paused(self) -> bool:
        """Whether it does nothing for now."""
        return self.status == ReminderStatus.PAUSED

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "id": self.id,
            "text": self.text,
            "is_task": self.is_task,
            "due_at": self.due_at.isoformat(),
            "repeats": self.repeats,
            "rule": self.rule,
            "time_zone": self.time_zone,
            "author": self.author
            and {"platform": self.author.platform, "id": self.author.id, "name": self.author.name},
            "created_at": self.created_at.isoformat(),
        }

    def is_late(self, now: datetime) -> bool:
        """Return whether it comes so late that the message has to say so."""
        return now - self.due_at > LATE


_SATURDAY = 5


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


_TASK: Final = "⏰ (scheduled on "


def announce(reminder: Reminder) -> str:
    """Return what the chat is told when a reminder is due."""
    return f"⏰ {reminder.text}"


def say_late(reminder: Reminder, now: datetime) -> tuple[FormattedText, Moment]:
    """Write the remark below a late reminder, with the time in it; no text of a reminder can imitate it."""
    due = time(reminder.due_at, reminder.language, now=now, zone=known_zone(reminder.time_zone))
    return say("reminders.late", reminder.language, time=due), Moment(due.text, reminder.due_at)


def ask(reminder: Reminder, now: datetime) -> str:
    """Return what the agent is asked when a task is due."""
    asked = spell(reminder.created_at, reminder.time_zone)
    late = f"; it was due at {spell(reminder.due_at, reminder.time_zone)}" if reminder.is_late(now) else ""
    return f"{_TASK}{asked}{late}) {reminder.text}"


def holds_task(text: str) -> bool:
    """Return whether a message holds what the agent is asked when a task is due: a model wrote that."""
    return _TASK in text


def explain(reminder: Reminder) -> str:
    """Return why a reminder is there, for the record of its turn."""
    who = reminder.author and (reminder.author.name or reminder.author.id)
    again = f", {reminder.repeats.value}" if reminder.repeats is not None else ""
    return (
        f"Reminder {reminder.id} is due: asked for by {who or 'the chat'} on "
        f"{spell(reminder.created_at, reminder.time_zone)}, for {spell(reminder.due_at, reminder.time_zone)}{again}"
    )
