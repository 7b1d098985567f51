"""The page that Prometheus reads: what this process has counted, and what waits in the database."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from botservice.settings import Settings, reveal
from botservice.telemetry.metrics import CONTENT_TYPE, Metrics
from transports.web.entering.access import Access, Verdict

PATH: Final = "/metrics"


def metrics_route(settings: Settings, metrics: Metrics, look: Callable[[], Awaitable[Mapping[str, float]]]) -> Route:
    """Return the page, for whoever has METRICS_TOKEN; without one, for this machine alone.

    Args:
        look: Returns what waits, by kind.
    """
    access = Access(settings.host, settings.public_url, reveal(settings.metrics_token))

    async def show(request: Request) -> Response:
        verdict = access.judge(request)
        if verdict is Verdict.OFF:
            return PlainTextResponse("set METRICS_TOKEN to open this page\n", 404)
        if verdict is not Verdict.WELCOME:
            return PlainTextResponse("send METRICS_TOKEN as bearer\n", 401, headers={"www-authenticate": "Bearer"})
        for kind, number in (await look()).items():
            metrics.set_waiting(kind, number)
        return Response(metrics.render(), headers={"content-type": CONTENT_TYPE, "cache-control": "no-store"})

    return Route(PATH, show)
