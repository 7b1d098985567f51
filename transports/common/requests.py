"""Reading requests: bodies, of which no more is kept than is allowed, their JSON, and secrets in their headers.

What is refused is an `HTTPException` of Starlette, whose text says what is wrong and what to do.
"""

import asyncio
import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request

CLOSE: Final = {"connection": "close"}
"""Headers of an answer to a request whose body is not read to its end."""

_FREE_BYTES: Final = 64 * 1024
_MAX_BYTES: Final = 16 * 1024 * 1024
_SECONDS: Final = 10.0


class Unproven:
    """Room for bodies of which nobody can say who sent them before they are complete."""

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._free = max_bytes

    async def read(self, request: Request, max_bytes: int, check: Callable[[bytes], None]) -> bytes:
        """Return the body of a request once it is proved who sent it.

        Args:
            check: Raises what refuses a body that nobody has proven.
        """
        try:
            with self._reading() as take:
                async with asyncio.timeout(_SECONDS):
                    body = await read_body(request, max_bytes, take)
                check(body)
        except TimeoutError:
            raise HTTPException(408, "The body came too slowly.", CLOSE) from None
        return body

    @contextmanager
    def _reading(self) -> Iterator[Callable[[int], None]]:
        """Give what takes room for a body of so many bytes, until the block is left; a small one needs none."""
        taken = 0

        def take(size_bytes: int) -> None:
            nonlocal taken
            more = max(0, size_bytes - _FREE_BYTES - taken)
            if more > self._free:
                raise HTTPException(503, "Too much comes at once: send it again later.", {**CLOSE, "retry-after": "5"})
            self._free -= more
            taken += more

        try:
            yield take
        finally:
            self._free += taken


async def read_body(request: Request, max_bytes: int, take: Callable[[int], None] | None = None) -> bytes:
    """Return the body of a request.

    Args:
        take: Is told how many bytes have come of a body that nobody has proven.

    Raises:
        HTTPException: it has more bytes; the rest is not read.
        ClientDisconnect: it is not complete.
    """
    said = f"This is too large: at most {max_bytes // 1_000:,} kB can be sent at once."
    too_large = HTTPException(413, said, None if take is None else CLOSE)
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and len(announced) < 20 and int(announced) > max_bytes:
        raise too_large
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > max_bytes:
            raise too_large
        if take is not None:
            take(len(body))
    return bytes(body)


def parse_json(body: bytes) -> Any:
    """Return the JSON value of a body.

    Raises:
        HTTPException: it is none.
    """
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise HTTPException(400, "The body must be JSON, in UTF-8.") from None


def parse_fields(body: bytes) -> Mapping[str, Any]:
    """Return the JSON object of a body.

    Raises:
        HTTPException: it is none.
    """
    fields = parse_json(body)
    if not isinstance(fields, dict):
        raise HTTPException(400, "The body must be a JSON object.")
    return fields


def parse_text(fields: Mapping[str, Any], name: str) -> str | None:
    """Return a field that is a text, or None where it is not given.

    Raises:
        HTTPException: it is something else.
    """
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise HTTPException(400, f'"{name}" must be a text.')
    return value


def bearer_of(headers: Mapping[str, str]) -> str | None:
    """Return the token in `Authorization: Bearer`, or None."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def is_same(given: str, secret: str) -> bool:
    """Return whether a given secret is the right one, in a time that does not depend on what was given."""
    return hmac.compare_digest(_digest(given), _digest(secret))


def _digest(text: str) -> bytes:
    """Return a digest: all have one length, so that the time does not tell a secret's length either."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
