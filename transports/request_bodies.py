"""Bodies of requests, of which no more is kept than is allowed."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from starlette.requests import Request

_FREE_BYTES: Final = 64 * 1024
_MAX_BYTES: Final = 16 * 1024 * 1024


class TooLargeError(Exception):
    """A body is larger than it may be."""


class TooMuchAtOnceError(Exception):
    """So many large bodies are on their way that this one has to come again later."""


class Unproven:
    """Room for bodies of which nobody can say who sent them before they are complete."""

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._free = max_bytes

    @contextmanager
    def reading(self) -> Iterator["Share"]:
        """Give a share of the room to one body, until the block is left."""
        share = Share(self)
        try:
            yield share
        finally:
            self._free += share.taken

    def take(self, size_bytes: int) -> None:
        """Take room."""
        if size_bytes > self._free:
            raise TooMuchAtOnceError
        self._free -= size_bytes


class Share:
    """What one body has of the room; a small one needs none."""

    def __init__(self, room: Unproven) -> None:
        self._room = room
        self.taken = 0

    def grow(self, size_bytes: int) -> None:
        """Have so much altogether."""
        more = max(0, size_bytes - _FREE_BYTES) - self.taken
        if more > 0:
            self._room.take(more)
            self.taken += more


async def read_body(request: Request, max_bytes: int, share: Share | None = None) -> bytes:
    """Return the body of a request.

    Raises:
        TooLargeError: it has more bytes; the rest is not read.
        TooMuchAtOnceError: others have all the room.
        ClientDisconnect: it is not complete.
    """
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and len(announced) < 20 and int(announced) > max_bytes:
        raise TooLargeError
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > max_bytes:
            raise TooLargeError
        if share is not None:
            share.grow(len(body))
    return bytes(body)
