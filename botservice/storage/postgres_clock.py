"""The clock that all processes on one database share."""

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

logger = logging.getLogger(__name__)

CLOCKS_DIFFER = timedelta(minutes=1)
"""How far apart two clocks may be that are both taken for right."""


class DatabaseClock:
    """The clock of a Postgres server, which its replicas share, whatever their own clocks say.

    Between two looks at it, the steady clock of this machine goes on, which nobody sets.
    """

    def __init__(self, steady: Callable[[], float] = time.monotonic, own: Callable[[], float] = time.time) -> None:
        """Make a clock; until the first look, it is this machine's.

        Args:
            steady: Seconds since some moment.
            own: Seconds since 1970 by this machine.
        """
        self._steady = steady
        self._own = own
        self._offset: float | None = None
        self._guard = threading.Lock()

    def now(self) -> datetime:
        """Return the present moment, aware."""
        offset = self._offset
        return datetime.fromtimestamp(self._own() if offset is None else offset + self._steady(), UTC)

    def look(self, ask: Callable[[], float]) -> None:
        """Set the clock.

        Args:
            ask: Returns the seconds since 1970 by the server.
        """
        asked_at = self._steady()
        seconds = ask()
        answered_at = self._steady()
        earliest, latest = seconds - answered_at, seconds - asked_at
        with self._guard:
            is_first = self._offset is None
            before = (earliest + latest) / 2 if self._offset is None else self._offset
            # What the way there and back may explain is no reason to let the time jump.
            self._offset = min(max(before, earliest), latest)
        wrong = self._own() - self.now().timestamp()
        if is_first and abs(wrong) > CLOCKS_DIFFER.total_seconds():
            logger.warning("storage.clocks_differ", extra={"seconds_ahead_of_database": round(wrong)})
