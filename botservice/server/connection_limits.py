"""Connections of the web server: so many at once, and each says what it wants, and takes its answer, within seconds."""

import asyncio
import contextlib
import ipaddress
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


class GuardedConnection(H11Protocol):
    """A connection that is closed when a head of a request does not end in time, or an answer is not taken.

    Attributes:
        head_seconds: How long a head may take.
        write_seconds: After so long, a client that reads an answer has to have taken this many bytes more.
        write_bytes: How many: 1 KiB a second, less than any telephone's connection.
        most_pipelined: How many requests may be sent ahead of their answers; browsers send none.
        has_shares: Whether one address may have half of all connections at most.
    """

    head_seconds: ClassVar[float] = 10.0
    write_seconds: ClassVar[float] = 15.0
    write_bytes: ClassVar[int] = 15 * 1024
    most_pipelined: ClassVar[int] = 16
    has_shares: ClassVar[bool] = False
    _waiting: asyncio.TimerHandle | None = None
    _writing: asyncio.TimerHandle | None = None
    _pipelined = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Take a connection, unless there are too many."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # so that `pause_writing` says of every byte that is not taken
        limit = self.limit_concurrency
        is_beyond = limit is not None and len(self.connections) > limit + min(_REFUSED_POLITELY, limit // 8)
        if is_beyond or (limit is not None and self.has_shares and self._is_beyond_share(limit)):
            transport.abort()
        else:
            self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Take what comes."""
        super().data_received(data)
        self._wait_for_head()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP, unless an answer has begun; a handler at work finds the client gone."""
        cycle: Any = self.cycle
        if cycle is not None and not cycle.response_complete:
            cycle.disconnected = True
            cycle.message_event.set()
        if self.conn.our_state.__name__ in _UNANSWERED:
            super().send_400_response(msg)
        else:
            self.transport.close()

    def pause_writing(self) -> None:
        """Begin to wait for the client to take what was written."""
        super().pause_writing()
        self._wait_for_reader()

    def resume_writing(self) -> None:
        """Take note that all was taken."""
        super().resume_writing()
        self._cancel_writing()

    def on_response_complete(self) -> None:
        """Go on with the next request, unless too many were sent ahead."""
        rest, _ = self.conn.trailing_data
        self._pipelined = self._pipelined + 1 if rest else 0
        if self._pipelined > self.most_pipelined:
            self.transport.close()
        super().on_response_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let go of a connection."""
        self._cancel_waiting()
        self._cancel_writing()
        super().connection_lost(exc)

    def _is_beyond_share(self, limit: int) -> bool:
        """Return whether this address has more than half of all connections; few are never counted."""
        if len(self.connections) <= limit // 2 or self.client is None:
            return False
        address = _neighbourhood(self.client[0])
        others = (each.client for each in self.connections if isinstance(each, H11Protocol) and each.client is not None)
        return sum(_neighbourhood(each[0]) == address for each in others) > limit // 2

    def _wait_for_reader(self) -> None:
        self._cancel_writing()
        left = self.transport.get_write_buffer_size()
        self._writing = self.loop.call_later(self.write_seconds, self._look_at_reader, left)

    def _look_at_reader(self, before: int) -> None:
        self._writing = None
        if self.transport.get_write_buffer_size() > before - self.write_bytes:
            logger.info("connections.not_read", extra={"left_bytes": self.transport.get_write_buffer_size()})
            self.transport.abort()
        else:
            self._wait_for_reader()

    def _cancel_writing(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None

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


class SharedConnection(GuardedConnection):
    """A connection of a listener that people reach themselves, each from an address of their own."""

    has_shares: ClassVar[bool] = True


def _neighbourhood(address: str) -> str:
    """Return whose an address is: a network of IPv6 is one household's."""
    with contextlib.suppress(ValueError):
        parsed = ipaddress.ip_address(address.partition("%")[0])
        if parsed.version == 6 and parsed.ipv4_mapped is None:
            return str(ipaddress.ip_network((parsed, 64), strict=False))
    return address
