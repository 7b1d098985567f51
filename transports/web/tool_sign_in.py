"""The page to which people return after they have signed in to a server of tools (OAuth)."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from botservice.errors import BotServiceError
from botservice.texts import in_language

Finish = Callable[[str, Mapping[str, str]], Awaitable[tuple[str | None, str | None, str]]]
"""Takes the server in the address and the query; returns where the person signed in, their language and a code."""

_LONGEST_QUERY: Final = 8_000
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}

logger = logging.getLogger(__name__)


def sign_in_route(path: str, finish: Finish) -> Route:
    """Return the route that people come back to, below a path; what it says repeats nothing of the address."""

    async def answer(request: Request) -> Response:
        server, language, code = None, None, ""
        try:
            if len(request.url.query) <= _LONGEST_QUERY:
                server, language, code = await finish(request.path_params["server"], dict(request.query_params))
        except BotServiceError as error:
            logger.warning("web.not_signed_in", extra={"reason": type(error).__name__})
            text = "This is not possible at the moment: ask for a new link in a minute.\n"
            return PlainTextResponse(text, 503, headers=_HEADERS)
        key = "sign_in.failed" if server is None else "sign_in.done"
        text = in_language(key, language, server=server or "", code=code)
        return PlainTextResponse(f"{text}\n", 400 if server is None else 200, headers=_HEADERS)

    route = Route(f"{path}/{{server}}", answer)
    route.methods = {"GET"}  # without the HEAD that comes along: who only looks where a link leads uses up no state
    return route
