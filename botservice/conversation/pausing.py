"""The pause of a conversation: while a person takes over, what is said is kept and not answered.

It is one value of the context's metadata. A turn reads it with everything else of its conversation. A pause of a whole
chat stands in the context that the chat has without a thread, and holds in all of its threads and topics.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Self

from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import find_metadata, lock_metadata, read_metadata, set_metadata
from botservice.core.personas import PAUSE
from botservice.people.names import chat_keys
from botservice.storage.database import Connection

PAUSE_FORMS: Final = "a number with m, h or d, such as 30m, 1h or 2d, at most 365 days"
_LONGEST: Final = timedelta(days=365)
_DURATION: Final = re.compile(r"([0-9]{1,6}) ?(m|min|h|d)", re.ASCII)
_UNITS: Final = {"m": "minutes", "min": "minutes", "h": "hours", "d": "days"}


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause of a conversation.

    Attributes:
        until: When it ends by itself; None if a person has to end it.
        is_told: Whether the people there were told.
        is_whole: Whether it holds in the threads and topics of the chat as well.
        chat_id: The context of the chat, for a thread of it; None for a conversation's own pause.
    """

    since: datetime
    until: datetime | None = None
    is_told: bool = False
    is_whole: bool = False
    chat_id: int | None = field(default=None, compare=False)

    @classmethod
    def of(cls, metadata: Mapping[str, Any]) -> Self | None:
        """Return the pause that a context's metadata holds, also one that is over; None if it holds none."""
        kept = metadata.get(PAUSE)
        if not isinstance(kept, Mapping):
            return None
        try:
            since, until = _moment(kept["since"]), kept.get("until")
            until = None if until is None else _moment(until)
            return cls(since, until, is_told=kept.get("told") is True, is_whole=kept.get("whole") is True)
        except (KeyError, TypeError, ValueError):  # a program's own value
            return None

    def holds(self, moment: datetime) -> bool:
        """Return whether what was said at a moment is not answered; what waited when it began is not either."""
        return self.until is None or moment < self.until

    def as_value(self) -> dict[str, Any]:
        """Return it as it is kept."""
        until = None if self.until is None else self.until.isoformat()
        return {"since": self.since.isoformat(), "until": until, "told": self.is_told, "whole": self.is_whole}


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
    """Return the pause of a conversation, or of its chat, that holds now; None if none does."""
    keys, metadata = read_metadata(connection, context_id)
    pause = last_to_end(Pause.of(metadata), read_chat_pause(connection, keys))
    return pause if pause is not None and pause.holds(now) else None


def read_chat_pause(connection: Connection, context_keys: Mapping[str, Any]) -> Pause | None:
    """Return the pause of the chat that a thread or topic is in, also one that is over; None if there is none."""
    keys = chat_keys(context_keys)
    found = None if keys is None else find_metadata(connection, ContextKeys.of(keys))
    if found is None:
        return None
    chat_id, metadata = found
    pause = Pause.of(metadata)
    return replace(pause, chat_id=chat_id) if pause is not None and pause.is_whole else None


def last_to_end(own: Pause | None, of_chat: Pause | None) -> Pause | None:
    """Return which of two pauses ends last; where both do, a conversation's own."""
    if own is None or of_chat is None:
        return own or of_chat
    return of_chat if own.until is not None and not (of_chat.until and of_chat.until <= own.until) else own


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
    kept_in = pause.chat_id or context_id
    if Pause.of(lock_metadata(connection, kept_in)) != replace(pause, is_told=False):
        return False
    set_pause(connection, kept_in, replace(pause, is_told=True))
    return True
