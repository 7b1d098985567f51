"""Bodies of requests, of which no more is kept than is allowed."""

from collections.abc import Callable, Iterator
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
    def reading(self) -> Iterator[Callable[[int], None]]:
        """Give what takes room for a body of so many bytes, until the block is left; a small one needs none."""
        taken = 0

        def take(size_bytes: int) -> None:
            nonlocal taken
            more = max(0, size_bytes - _FREE_BYTES - taken)
            if more > self._free:
                raise TooMuchAtOnceError
            self._free -= more
            taken += more

        try:
            yield take
        finally:
            self._free += taken


async def read_body(request: Request, max_bytes: int, take: Callable[[int], None] | None = None) -> bytes:
    """Return the body of a request.

    Args:
        take: Is told how many bytes have come.

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
        if take is not None:
            take(len(body))
    return bytes(body)
