"""Clocks for tests: on some a minute lasts, however slow the machine is, and on others it has soon passed."""

import asyncio
import time
from datetime import UTC, datetime, timedelta

from botservice.turns.run_options import Clock
from botservice.turns.worker import SWEEP_SECONDS
from transports.common.pacing import Pace

TIMES_AS_FAST = 50


def fast_pace() -> Pace:
    """Return the pace that a platform allows, on a clock that goes fifty times as fast."""
    return Pace(lambda: time.monotonic() * TIMES_AS_FAST, lambda seconds: asyncio.sleep(seconds / TIMES_AS_FAST))


def fast_clock() -> Clock:
    """Return a clock for a bot that goes fifty times as fast from now on: what it puts off is soon due."""
    began_at, started = datetime.now(UTC), time.monotonic()
    return lambda: began_at + timedelta(seconds=(time.monotonic() - started) * TIMES_AS_FAST)


def sweep_seconds(clock: Clock | None) -> float:
    """Return how often a worker looks for what is due: often where a test has given it a clock."""
    return SWEEP_SECONDS if clock is None else SWEEP_SECONDS / TIMES_AS_FAST


class JumpingClock:
    """A clock of seconds that stands still, and jumps to where a person wants to sleep to.

    How long a platform has to be left alone is kept by it exactly, and nobody waits.
    """

    def __init__(self) -> None:
        """Make a clock at its beginning."""
        self._now = 0.0

    def __call__(self) -> float:
        """Return what time it is there."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Return at once, so many seconds later."""
        later = self._now + seconds
        await asyncio.sleep(0)
        self._now = max(self._now, later)

    def pace(self) -> Pace:
        """Return the pace that a platform allows, by this clock."""
        return Pace(self, self.sleep)


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
