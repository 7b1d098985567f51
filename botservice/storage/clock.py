"""What time it is for everybody who works on one database."""

import logging
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime

logger = logging.getLogger(__name__)

_ODD_SECONDS = 60.0


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
        offset = seconds - (asked_at + answered_at) / 2
        with self._guard:
            is_first = self._offset is None
            # What the way there and back may explain is no reason to let the time jump.
            if self._offset is None or abs(offset - self._offset) > (answered_at - asked_at) / 2:
                self._offset = offset
        wrong = self._own() - (offset + self._steady())
        if is_first and abs(wrong) > _ODD_SECONDS:
            logger.warning("storage.clocks_differ", extra={"seconds_ahead_of_database": round(wrong)})
