"""Reading requests of programs: the bearer token first, then a bounded body of JSON."""

import hmac
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from botservice.core.errors import BotServiceError, ChatRefused, InboxFull, InvalidArgument, StorageUnavailable
from botservice.core.messages import storable
from transports.common.request_bodies import TooLargeError, read_body

logger = logging.getLogger(__name__)

Endpoint = Callable[[Request], Awaitable[Response]]
_CLOSE: Final = {"connection": "close"}


class ApiError(Exception):
    """A request that is refused.

    Attributes:
        status: Of HTTP.
        message: What is wrong, and what to do; it is sent to the program.
        headers: More of the answer.
    """

    def __init__(self, status: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = {**_CLOSE, **(headers or {})} if status in (401, 413) else dict(headers or {})


def show_error(error: ApiError) -> Response:
    """Return the answer to a refused request, in the form that clients of OpenAI read too."""
    kind = "invalid_request_error" if error.status < 500 else "server_error"
    body = {"error": {"message": storable(error.message), "type": kind, "param": None, "code": None}}
    return JSONResponse(body, error.status, headers=error.headers)


def as_error(error: BotServiceError) -> ApiError:
    """Return what a program is told of an error of the service."""
    match error:
        case InboxFull():
            return ApiError(503, "too much is waiting: send it again later", {"retry-after": "5"})
        case ChatRefused():
            return ApiError(403, str(error))
        case StorageUnavailable():
            logger.warning("api.storage_unavailable", extra={"reason": str(error)})
            return ApiError(503, "the database does not answer: send it again later", {"retry-after": "5"})
        case InvalidArgument():
            return ApiError(400, str(error))
        case _:
            return ApiError(409, str(error))


def answering(endpoint: Endpoint) -> Endpoint:
    """Return an endpoint whose errors become answers."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except ApiError as error:
            return show_error(error)
        except BotServiceError as error:
            return show_error(as_error(error))
        except ClientDisconnect:
            return show_error(ApiError(400, "the body is cut off"))

    return answer


def with_token(token: str | None, endpoint: Endpoint) -> Endpoint:
    """Return an endpoint for programs that send a token as bearer; without a token it is not there."""

    async def checked(request: Request) -> Response:
        if token is None:
            raise ApiError(404, "there is nothing here: set API_TOKEN to open it")
        if not is_bearer(request, token):
            raise ApiError(401, "send API_TOKEN as bearer", {"www-authenticate": "Bearer"})
        return await endpoint(request)

    return answering(checked)


def is_bearer(request: Request, token: str) -> bool:
    """Return whether a request has a token in `Authorization: Bearer`."""
    scheme, _, given = request.headers.get("authorization", "").partition(" ")
    given_bytes = given.strip().encode("utf-8", "replace")
    return scheme.lower() == "bearer" and hmac.compare_digest(given_bytes, token.encode())


async def read_bytes(request: Request, max_bytes: int) -> bytes:
    """Return the body of a request.

    Raises:
        ApiError: it is too large.
    """
    try:
        return await read_body(request, max_bytes)
    except TooLargeError:
        raise ApiError(413, f"the body is too large: at most {max_bytes:,} bytes are taken") from None


async def read_fields(request: Request, max_bytes: int) -> Mapping[str, Any]:
    """Return the JSON object that a request has as its body.

    Raises:
        ApiError: it has none, or a larger one.
    """
    fields = parse_json(await read_bytes(request, max_bytes))
    if not isinstance(fields, dict):
        raise ApiError(400, "the body must be a JSON object")
    return fields


def parse_json(body: bytes) -> Any:
    """Return the JSON value of a body.

    Raises:
        ApiError: it is none.
    """
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        raise ApiError(400, "the body must be JSON, in UTF-8") from None


def text_of(fields: Mapping[str, Any], name: str, *, is_needed: bool = True) -> str | None:
    """Return a field that is a text.

    Raises:
        ApiError: it is none, or is missing.
    """
    value = fields.get(name)
    if value is None and not is_needed:
        return None
    if not isinstance(value, str):
        raise ApiError(400, f'"{name}" must be a text')
    return value
