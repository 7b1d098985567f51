"""Connections of the web server: so many at once, and each says what it wants within seconds."""

import asyncio
import contextlib
import logging
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

logger = logging.getLogger(__name__)

_MOST: Final = 4096
_KEPT_FOR_OTHERS: Final = 256  # open files that the database, platforms and models need; half of them, where few are
_FEWEST_FILES: Final = 128  # a service with one platform has twenty open, and each page of a browser some
_REFUSED_POLITELY: Final = 64  # connections beyond the limit that get an answer of 503; more are cut off
MOST_QUEUED: Final = 2048  # connections that the system keeps until they are taken
_SAY_SECONDS: Final = 10.0
_NOT_ACCEPTED: Final = "socket.accept() out of system resource"  # asyncio's words
_UNANSWERED: Final = ("IDLE", "SEND_RESPONSE")  # h11's states of a connection, in which an answer may begin


def most_connections() -> int:
    """Return how many connections are served at once, as far as the system lets the process open files."""
    files = most_files()
    return _MOST if files is None else max(1, min(_MOST, files - min(_KEPT_FOR_OTHERS, files // 2)))


def most_at_once() -> int:
    """Return how many connections may be taken before the first of them is looked at: they are open by then."""
    return min(MOST_QUEUED, max(4, most_connections() // 8))


def most_files() -> int | None:
    """Return how many files the system lets the process open; None for as many as it likes."""
    with contextlib.suppress(ImportError):
        import resource

        files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        if files != resource.RLIM_INFINITY:
            return files
    return None


def too_few_files() -> str | None:
    """Return what to say where the system lets the process open too few files to work for long, else None."""
    files = most_files()
    if files is None or files >= _FEWEST_FILES:
        return None
    return f"{files} may be open at once, which is too few: `ulimit -n 1024` before the start lets it open more"


class UnacceptedConnections:
    """Handles the errors of an event loop: that no file is left for a connection is said every ten seconds at most.

    The loop itself logs it with a traceback thousands of times a second.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self._count = 0
        self._said_at = -math.inf

    def __call__(self, loop: asyncio.AbstractEventLoop, context: Mapping[str, Any]) -> None:
        """Take an error as the loop tells it."""
        error = context.get("exception")
        if context.get("message") != _NOT_ACCEPTED or not isinstance(error, OSError):
            loop.default_exception_handler(dict(context))
            return
        self._count += 1
        if loop.time() - self._said_at < _SAY_SECONDS:
            return
        advice = "connections wait; `ulimit -n` before the start says how many files may be open"
        facts = {"reason": error.strerror, "tries": self._count, "most_files": most_files(), "advice": advice}
        logger.error("connections.not_accepted", extra=facts)
        self._count, self._said_at = 0, loop.time()


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
        if limit is not None and len(self.connections) > limit + min(_REFUSED_POLITELY, limit // 8):
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
