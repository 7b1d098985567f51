"""The pause of a conversation: while a person takes over, what is said is kept and not answered.

It is one value of the context's metadata. A turn reads it with everything else of its conversation.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Self

from botservice.conversation.queries import lock_metadata, read_metadata, set_metadata
from botservice.core.personas import PAUSE
from botservice.storage.database import Connection

PAUSE_FORMS: Final = "a number with m, h or d, such as 30m, 1h or 2d, at most 365 days"
_LONGEST: Final = timedelta(days=365)
_DURATION: Final = re.compile(r"([0-9]{1,6}) ?(m|min|h|d)", re.ASCII)
_UNITS: Final = {"m": "minutes", "min": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause of a conversation.

    Attributes:
        until: When it ends by itself; None if somebody has to end it.
        is_told: Whether the people there were told.
    """

    since: datetime
    until: datetime | None = None
    is_told: bool = False

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Self | None:
        """Return the pause that a context's metadata holds, also one that is over; None if it holds none."""
        kept = metadata.get(PAUSE)
        if not isinstance(kept, Mapping):
            return None
        try:
            since, until = _moment(kept["since"]), kept.get("until")
            return cls(since, None if until is None else _moment(until), is_told=kept.get("told") is True)
        except (KeyError, TypeError, ValueError):  # a program's own value
            return None

    def holds(self, moment: datetime) -> bool:
        """Return whether what was said at a moment is not answered; what waited when it began is not either."""
        return self.until is None or moment < self.until

    def as_value(self) -> dict[str, Any]:
        """Return it as it is kept."""
        until = None if self.until is None else self.until.isoformat()
        return {"since": self.since.isoformat(), "until": until, "told": self.is_told}


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def read_duration(text: str) -> timedelta | None:
    """Read how long a pause lasts, in one of the forms of `PAUSE_FORMS`; None for anything else."""
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None:
        return None
    duration = timedelta(**{_UNITS[found[2]]: int(found[1])})
    return duration if timedelta() < duration <= _LONGEST else None


def read_pause(connection: Connection, context_id: int, now: datetime) -> Pause | None:
    """Return the pause of a conversation that holds now, or None."""
    pause = Pause.of(read_metadata(connection, context_id))
    return pause if pause is not None and pause.holds(now) else None


def begin_pause(connection: Connection, context_id: int, pause: Pause) -> bool:
    """Store a pause; return False where one holds already, which stays as it is."""
    kept = Pause.of(lock_metadata(connection, context_id))
    if kept is not None and kept.holds(pause.since):
        return False
    set_pause(connection, context_id, pause)
    return True


def set_pause(connection: Connection, context_id: int, pause: Pause | None) -> None:
    """Store the pause of a conversation in the place of the one before; None for none."""
    set_metadata(connection, context_id=context_id, key=PAUSE, value=None if pause is None else pause.as_value())


def note_told(connection: Connection, context_id: int, pause: Pause) -> bool:
    """Note that people are told of a pause; return False if they were, or if it is not there any more."""
    if Pause.of(lock_metadata(connection, context_id)) != replace(pause, is_told=False):
        return False
    set_pause(connection, context_id, replace(pause, is_told=True))
    return True
