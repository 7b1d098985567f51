"""The page that Prometheus reads: what this process has counted, and what waits in the database."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from botservice.config.settings import Settings, reveal
from botservice.core.errors import StorageUnavailable
from botservice.telemetry.metrics import CONTENT_TYPE, Metrics
from transports.web.login_attempts import Guesses
from transports.web.owner_token import Mode, PageAccess, Verdict, bearer_of

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
