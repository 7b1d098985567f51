"""Bodies of requests, of which no more is kept than is allowed."""

from starlette.requests import Request


class TooLargeError(Exception):
    """A body is larger than it may be."""


async def read_body(request: Request, max_bytes: int) -> bytes:
    """Return the body of a request.

    Raises:
        TooLargeError: it has more bytes; the rest is not read.
        ClientDisconnect: it is not complete.
    """
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > max_bytes:
            raise TooLargeError
    return bytes(body)
