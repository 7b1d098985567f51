"""How long records are kept."""

from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class Retention:
    """How long things are kept; None for ever. Messages always stay.

    Attributes:
        steps: The steps of turns that are done, what models were sent for them, and what was delivered.
        events: What platforms sent, once it is dealt with.
    """

    steps: timedelta | None = timedelta(days=30)
    events: timedelta | None = timedelta(days=7)

    @classmethod
    def of_days(cls, *, steps: int | None, events: int | None) -> "Retention":
        """Return how long things are kept, from whole days."""
        return cls(None if steps is None else timedelta(days=steps), None if events is None else timedelta(days=events))

    def steps_before(self, now: datetime) -> datetime | None:
        """Return the moment before which turns lose their steps, or None if they never do."""
        return None if self.steps is None else now - self.steps

    def events_before(self, now: datetime) -> datetime | None:
        """Return the moment before which events are deleted, or None if they never are."""
        return None if self.events is None else now - self.events


@dataclass(frozen=True, slots=True)
class Compacted:
    """The numbers of a pass of compaction.

    Attributes:
        turns: How many turns have lost their steps.
        events: How many events were deleted.
        is_whole: Whether there was nothing left to do; otherwise another process was at it.
    """

    turns: int = 0
    events: int = 0
    is_whole: bool = True
