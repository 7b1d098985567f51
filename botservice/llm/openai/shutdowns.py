"""When models end: what a server says of it, and a small table for the time when it says nothing."""

import re
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

TABLE_DATE: Final = date(2026, 11, 22)

_SNAPSHOT: Final = re.compile(r"-\d{4}-\d\d-\d\d$")
# Source: OpenAI, "Deprecations", as of TABLE_DATE: names, the last day, and what OpenAI recommends instead.
_TABLE: Final = (
    (("gpt-5", "gpt-5-pro", "o3", "o3-pro"), date(2026, 12, 11), "gpt-6.1-sol"),
    (("gpt-5-mini",), date(2026, 12, 11), "gpt-6.1-terra"),
    (("gpt-5-nano",), date(2026, 12, 11), "gpt-6-luna"),
    (("gpt-4o", "gpt-4o-mini", "gpt-4.1", "gpt-4.1-mini"), date(2027, 1, 14), "gpt-6-luna"),
    (
        ("whisper-1", "gpt-4o-transcribe", "gpt-4o-mini-transcribe", "gpt-4o-transcribe-diarize"),
        date(2027, 2, 26),
        "gpt-transcribe",
    ),
    (("gpt-5.1",), date(2027, 4, 1), None),
)


@dataclass(frozen=True, slots=True)
class Shutdown:
    """The end of a model.

    Attributes:
        on: The day from which on it answers no more.
        instead: The name of the model that is recommended for it.
    """

    on: date
    instead: str | None = None


def known_shutdown(model: str) -> Shutdown | None:
    """Return when a model of OpenAI's own API ends, as far as it was known at TABLE_DATE."""
    name = _SNAPSHOT.sub("", model)
    return next((Shutdown(on, instead) for names, on, instead in _TABLE if name in names), None)


def read_date(value: Any) -> date | None:
    """Return the day that a server names as YYYY-MM-DD; None for anything else."""
    try:
        return date.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
