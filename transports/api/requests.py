"""Answering requests of programs: the bearer token first; what goes wrong is told as clients of OpenAI read it."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from botservice.core.errors import (
    BotServiceError,
    BudgetExceeded,
    ChatRefused,
    InboxFull,
    InvalidArgument,
    LLMError,
    StorageUnavailable,
    TurnWaiting,
)
from botservice.core.messages import storable
from transports.common.requests import CLOSE, bearer_of, is_same, parse_fields, parse_text, read_body

logger = logging.getLogger(__name__)

Endpoint = Callable[[Request], Awaitable[Response]]
_LATER: Final = {"retry-after": "5"}
_ERRORS: Final = (
    (InboxFull, 503, "too much is waiting: send it again later", _LATER),
    (StorageUnavailable, 503, "the database does not answer: send it again later", _LATER),
    (ChatRefused, 403, "{}", None),
    (InvalidArgument, 400, "{}", None),
    (BudgetExceeded, 429, "a budget is used up: {}", None),
    (LLMError, 502, "the model did not answer; try again later", None),
    (TurnWaiting, 409, "a tool gives its result later: ask again then", None),
)


def show_error(error: HTTPException) -> Response:
    """Return the answer to a refused request."""
    kind = "invalid_request_error" if error.status_code < 500 else "server_error"
    body = {"error": {"message": storable(error.detail), "type": kind, "param": None, "code": None}}
    return JSONResponse(body, error.status_code, headers=error.headers)


def as_error(error: BotServiceError) -> HTTPException:
    """Return what a program is told of an error of the service."""
    if isinstance(error, StorageUnavailable):
        logger.warning("api.storage_unavailable", extra={"reason": str(error)})
    for kind, status, said, headers in _ERRORS:
        if isinstance(error, kind):
            return HTTPException(status, said.format(error), headers)
    return HTTPException(409, str(error))


def answering(endpoint: Endpoint) -> Endpoint:
    """Return an endpoint whose errors become answers."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except HTTPException as error:
            return show_error(error)
        except BotServiceError as error:
            return show_error(as_error(error))

    return answer


def with_token(token: str | None, endpoint: Endpoint) -> Endpoint:
    """Return an endpoint for programs that send a token as bearer; without a token it is not there."""

    async def checked(request: Request) -> Response:
        if token is None:
            raise HTTPException(404, "there is nothing here: set API_TOKEN to open it")
        if not is_same(bearer_of(request.headers) or "", token):
            raise HTTPException(401, "send API_TOKEN as bearer", {**CLOSE, "www-authenticate": "Bearer"})
        return await endpoint(request)

    return answering(checked)


async def read_fields(request: Request, max_bytes: int) -> Mapping[str, Any]:
    """Return the JSON object that a request has as its body.

    Raises:
        HTTPException: it has none, or a larger one.
    """
    return parse_fields(await read_body(request, max_bytes))


def needed_text(fields: Mapping[str, Any], name: str) -> str:
    """Return a field that is a text.

    Raises:
        HTTPException: it is none, or is missing.
    """
    text = parse_text(fields, name)
    if text is None:
        raise HTTPException(400, f'"{name}" must be a text.')
    return text
