"""The page of figures for Prometheus, /metrics: who may read it, and what waits at the moment."""

import asyncio
from collections.abc import Mapping
from typing import Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from botservice.app import Application
from botservice.config.settings import reveal
from botservice.core.errors import StorageUnavailable
from botservice.storage.database import Storage
from botservice.telemetry.metrics import CONTENT_TYPE, Metrics
from botservice.turns.backlog_queries import measure_backlog
from botservice.turns.run_options import utc_now
from transports.common.requests import bearer_of
from transports.web.owner_token import Guesses, Mode, PageAccess, Verdict

PATH: Final = "/metrics"
_LOOK_SECONDS: Final = 5.0  # Prometheus waits for 10 by default


def metrics_route(application: Application, metrics: Metrics) -> Route:
    """Return the route of the page: it asks for METRICS_TOKEN; without one, it answers this machine alone."""
    settings = application.settings
    access = PageAccess(settings.host, settings.public_url, reveal(settings.metrics_token))

    guesses = Guesses()

    async def show(request: Request) -> Response:
        has_token = access.mode is Mode.TOKEN and bearer_of(request.headers) is not None
        if has_token:
            guesses.check(request, "METRICS_TOKENs")
        verdict = access.judge(request)
        if has_token:
            (guesses.note_right if verdict is Verdict.WELCOME else guesses.note_wrong)(request)
        if verdict is Verdict.OFF:
            raise HTTPException(404, "Set METRICS_TOKEN to open this page.")
        if verdict is not Verdict.WELCOME:
            raise HTTPException(401, "Send METRICS_TOKEN as bearer.", {"www-authenticate": "Bearer"})
        metrics.set_waiting(await _read_backlog(application.storage))
        return Response(metrics.render(), headers={"content-type": CONTENT_TYPE, "cache-control": "no-store"})

    return Route(PATH, show)


async def _read_backlog(storage: Storage) -> Mapping[str, float]:
    """Return what waits; nothing where the database does not say so in time: the rest is known without it."""
    read = storage.read(lambda connection: measure_backlog(connection, utc_now()))
    try:
        return await asyncio.wait_for(read, _LOOK_SECONDS)
    except (StorageUnavailable, TimeoutError):
        return {}
