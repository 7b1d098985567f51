"""The times that a text of ours names, so that a platform can show each reader their own."""

import re
from datetime import UTC, datetime
from typing import Final

from botservice.messages import Moment

_UTC: Final = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d UTC")


def find_moments(text: str) -> tuple[Moment, ...]:
    """Return the moments of UTC that a text names, each once."""
    return tuple(moment for words in dict.fromkeys(_UTC.findall(text)) if (moment := _read(words)) is not None)


def _read(words: str) -> Moment | None:
    try:
        return Moment(words, datetime.strptime(words, "%Y-%m-%d %H:%M UTC").replace(tzinfo=UTC))
    except ValueError:  # no such day
        return None
