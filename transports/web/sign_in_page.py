"""The page to which people return when they have signed in to a server of tools."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from botservice.app import Application
from botservice.config.setting_choices import DEFAULT_BOT_NAME
from botservice.core.errors import BotServiceError
from botservice.texts import in_language
from transports.common.notice_page import notice_headers, write_notice

Finish = Callable[[str, Mapping[str, str]], Awaitable[tuple[str | None, str | None, str]]]
"""Takes the server in the address and the query; returns where the person signed in, their language and a code."""

_LONGEST_QUERY: Final = 8_000

logger = logging.getLogger(__name__)


def sign_in_route(path: str, finish: Finish, bot_name: str | None = None) -> Route:
    """Return the route that people come back to, below a path; what it says repeats nothing of the address."""

    def show(status: int, text: str, language: str | None) -> Response:
        page = write_notice(bot_name or DEFAULT_BOT_NAME, text, language=language or "en")
        return Response(page, status, headers=notice_headers())

    async def answer(request: Request) -> Response:
        server, language, code = None, None, ""
        try:
            if len(request.url.query) <= _LONGEST_QUERY:
                server, language, code = await finish(request.path_params["server"], dict(request.query_params))
        except BotServiceError as error:
            logger.warning("web.not_signed_in", extra={"reason": type(error).__name__})
            return show(503, "This is not possible at the moment: ask for a new link in a minute.", None)
        key = "sign_in.failed" if server is None else "sign_in.done"
        text = in_language(key, language, server=server or "", code=code)
        return show(400 if server is None else 200, text, language)

    route = Route(f"{path}/{{server}}", answer)
    route.methods = {"GET"}  # without the HEAD that comes along: who only looks where a link leads uses up no state
    return route


def sign_in_routes(application: Application) -> list[BaseRoute]:
    """Return the page to which people return from servers of tools, where there are any."""
    toolsets = application.service.agent.toolsets
    if not toolsets:
        return []
    from botservice.mcp.personal import CALLBACK_PATH
    from botservice.mcp.servers import MCPServers

    servers = [each for each in toolsets if isinstance(each, MCPServers)]

    async def finish(server: str, query: Mapping[str, str]) -> tuple[str | None, str | None, str]:
        name, language, code = None, None, ""
        for each in servers:
            came = await each.finish_sign_in(application.storage, server, query)
            name, language, code = came.server, came.language or language, came.code
            if name is not None:
                break
        return name, language, code

    return [sign_in_route(CALLBACK_PATH, finish, application.service.name)] if servers else []
