"""The pages in the browser, with those that belong to no chat: figures, and the return from signing in to a tool."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from botservice.app import Application
from botservice.config.setting_choices import DEFAULT_BOT_NAME
from botservice.config.settings import Settings, reveal
from botservice.core.check_result import Finding
from botservice.core.errors import BotServiceError, StorageUnavailable
from botservice.core.loopback import is_loopback
from botservice.core.policies import WebAccess
from botservice.service import AgentService
from botservice.telemetry.metrics import CONTENT_TYPE, Metrics
from botservice.texts import in_language
from botservice.transport_plugins import TransportPlugin, TransportSetup, load_plugins
from botservice.turns.run_options import utc_now
from botservice.turns.stored_turns import measure_backlog
from botservice.turns.transport import Transport
from transports.common.documents import build_reading
from transports.common.notice_page import notice_headers, write_notice
from transports.web.owner_token import Guesses, Mode, PageAccess, Verdict, bearer_of

if TYPE_CHECKING:
    from botservice.devtools.replaying import Replayer


class WebPlugin(TransportPlugin):
    """Always on: who may open the pages is up to ADMIN_TOKEN and WEB_ACCESS."""

    name = "web"
    label = "browser"
    off = "off"

    def build(self, setup: TransportSetup) -> Iterable[Transport]:
        """Return the transport."""
        from transports.web.app import WebTransport
        from transports.web.owner_token import PageAccess

        yield WebTransport(
            access=PageAccess.of(setup.settings),
            reading=setup.shared(build_reading),
            commands=setup.commands,
            service=setup.service,
            asker=None if setup.service is None else partial(_make_asker, setup.service, setup.settings),
            bot_name=setup.bot_name,
        )

    async def check(self, settings: Settings) -> Finding:
        """Return who may open the pages."""
        token = reveal(settings.admin_token)
        if settings.web_access is WebAccess.LINK:
            return _check_links(settings)
        if token is None and (settings.public_url is not None or not is_loopback(settings.host)):
            return Finding("browser", "off: others can reach this address; ADMIN_TOKEN opens the pages", is_off=True)
        said = "the pages ask for ADMIN_TOKEN" if token else "the pages are open to this machine alone"
        return Finding("browser", said)

    def routes(self, application: Application, metrics: Metrics | None) -> Sequence[BaseRoute]:
        """Return the page of figures, and the one to which people return from servers of tools."""
        signing = _sign_in_routes(application)
        if metrics is None:
            return signing

        async def look() -> Mapping[str, float]:
            return await application.storage.read(lambda connection: measure_backlog(connection, utc_now()))

        return [*signing, metrics_route(application.settings, metrics, look)]


def _make_asker(service: AgentService, settings: Settings) -> "Replayer":
    from botservice.devtools.replaying import Replayer

    return Replayer(service, settings)


def _sign_in_routes(application: Application) -> list[BaseRoute]:
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


def _check_links(settings: Settings) -> Finding:
    """Return whether people can get into the pages by links."""
    missing = [] if settings.public_url is not None else ["PUBLIC_URL, where the links lead"]
    if not any(plugin.is_public(settings) for plugin in load_plugins()):
        missing.append("TELEGRAM_BOT_TOKEN or SLACK_BOT_TOKEN, by which people ask for them")
    if missing:
        return Finding("browser", f"WEB_ACCESS=link needs {' and '.join(missing)}", is_wrong=True)
    owner = "ADMIN_TOKEN opens everything" if settings.admin_token else "the inspector is off: ADMIN_TOKEN opens it"
    return Finding("browser", f"people come in by links that /web gives them; {owner}")


PLUGIN: Final = WebPlugin()


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


PATH: Final = "/metrics"
_LOOK_SECONDS: Final = 5.0  # Prometheus waits for 10 by default

Look: TypeAlias = Callable[[], Awaitable[Mapping[str, float]]]


def metrics_route(settings: Settings, metrics: Metrics, look: Look) -> Route:
    """Return the route of the page: it asks for METRICS_TOKEN; without one, it answers this machine alone."""
    access = PageAccess(settings.host, settings.public_url, reveal(settings.metrics_token))

    guesses = Guesses()

    async def show(request: Request) -> Response:
        has_token = access.mode is Mode.TOKEN and bearer_of(request.headers) is not None
        if has_token and (seconds := guesses.wait_seconds(request)):
            text = f"too many wrong METRICS_TOKENs: try again in {seconds} seconds\n"
            return PlainTextResponse(text, 429, headers={"retry-after": str(seconds)})
        verdict = access.judge(request)
        if has_token:
            (guesses.note_right if verdict is Verdict.WELCOME else guesses.note_wrong)(request)
        if verdict is Verdict.OFF:
            return PlainTextResponse("set METRICS_TOKEN to open this page\n", 404)
        if verdict is not Verdict.WELCOME:
            return PlainTextResponse("send METRICS_TOKEN as bearer\n", 401, headers={"www-authenticate": "Bearer"})
        metrics.set_waiting(await _look(look))
        return Response(metrics.render(), headers={"content-type": CONTENT_TYPE, "cache-control": "no-store"})

    return Route(PATH, show)


async def _look(look: Look) -> Mapping[str, float]:
    """Return what waits; nothing where the database does not say so in time: the rest is known without it."""
    try:
        return await asyncio.wait_for(look(), _LOOK_SECONDS)
    except (StorageUnavailable, TimeoutError):
        return {}
