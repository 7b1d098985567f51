"""Connections of the web server: so many at once, and each says what it wants within seconds."""

import asyncio
import contextlib
from typing import Any, ClassVar, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

_MOST: Final = 4096
_KEPT_FOR_OTHERS: Final = 256  # open files that the database, platforms and models need
_REFUSED_POLITELY: Final = 64  # connections beyond the limit that get an answer of 503; more are cut off
_UNANSWERED: Final = ("IDLE", "SEND_RESPONSE")  # h11's states of a connection, in which an answer may begin


def most_connections() -> int:
    """Return how many connections are served at once, as far as the system lets the process open files."""
    with contextlib.suppress(ImportError):
        import resource

        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if files != resource.RLIM_INFINITY:
            return max(_REFUSED_POLITELY, min(_MOST, files - _KEPT_FOR_OTHERS))
    return _MOST


class Connection(H11Protocol):
    """A connection that is closed when the head of a request does not come to its end in time.

    Attributes:
        head_seconds: How long a head may take.
    """

    head_seconds: ClassVar[float] = 10.0
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Take a connection, unless there are too many."""
        super().connection_made(transport)
        limit = self.limit_concurrency
        if limit is not None and len(self.connections) > limit + _REFUSED_POLITELY:
            transport.abort()
        else:
            self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Take what comes."""
        super().data_received(data)
        self._wait_for_head()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, unless an answer has begun; whoever works on one finds the client gone."""
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        if self.conn.our_state.__name__ in _UNANSWERED:
            super().send_400_response(msg)
        else:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of a connection."""
        self._cancel_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        """Give the head of the next request its time; bytes that drip in give it no more."""
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            self._cancel_waiting()
        elif self._waiting is None:
            self._waiting = self.loop.call_later(self.head_seconds, self._give_up)

    def _give_up(self) -> None:
        self._waiting = None
        cycle: Any = self.cycle
        if cycle is None or cycle.response_complete:
            self.transport.close()

    def _cancel_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
