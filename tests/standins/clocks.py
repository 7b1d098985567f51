"""Clocks for tests: one on which a minute lasts, however slow the machine is, and one on which it has soon passed."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

from transports.pacing import Pace

_TIMES_AS_FAST = 50


def fast_pace() -> Pace:
    """Return the pace that a platform allows, on a clock that goes fifty times as fast."""
    return Pace(lambda: time.monotonic() * _TIMES_AS_FAST, lambda seconds: asyncio.sleep(seconds / _TIMES_AS_FAST))


class LastingMinute:
    """A clock at the beginning of a minute that stays in it until it is moved.

    It is ahead of the machine's, so that whatever was stored just now lies in its past,
    and it crawls instead of standing still, as no two moments are the same.
    """

    def __init__(self) -> None:
        """Make a clock an hour or two ahead."""
        hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
        self._began_at = hour + timedelta(hours=2)
        self._started = time.monotonic()

    def __call__(self) -> datetime:
        """Return what time it is there, aware; a thousandth of the time that passes here."""
        return self._began_at + timedelta(seconds=(time.monotonic() - self._started) / 1000)

    def pass_(self, **time_passed: float) -> None:
        """Move the clock on; the keywords are those of `timedelta`."""
        self._began_at += timedelta(**time_passed)
