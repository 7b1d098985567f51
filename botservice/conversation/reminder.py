"""A reminder: its values and its states."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from botservice.core.messages import Author

MAX_WAITING: Final = 50  # in one chat
LONGEST_TEXT: Final = 2_000  # characters
LATEST: Final = timedelta(days=5 * 366)
LATE: Final = timedelta(minutes=5)  # what comes later than this says so


class ReminderStatus(StrEnum):
    """Where a reminder is."""

    WAITING = "waiting"  # for its time, or for its next time
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"  # it cannot be made a message, or who asked for it is not let in any more


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

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "id": self.id,
            "text": self.text,
            "is_task": self.is_task,
            "due_at": self.due_at.isoformat(),
            "repeats": self.repeats,
            "time_zone": self.time_zone,
            "author": self.author
            and {"platform": self.author.platform, "id": self.author.id, "name": self.author.name},
            "created_at": self.created_at.isoformat(),
        }

    def is_late(self, now: datetime) -> bool:
        """Return whether it comes so late that the message has to say so."""
        return now - self.due_at > LATE
