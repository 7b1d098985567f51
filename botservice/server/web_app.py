"""The application that the web server runs: the routes of transports, health, and the limit of bodies."""

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from botservice.app import Application
from botservice.telemetry.metrics import Metrics
from botservice.transport_plugins import load_plugins

MAX_BODY_BYTES: Final = 20 * 1024 * 1024
BODY_SECONDS: Final = 60.0
_CLOSE: Final = {"connection": "close"}


def build_web_app(application: Application, metrics: Metrics | None = None) -> Starlette:
    """Return the web server's application; metrics is what the process counts, for a page of its own."""

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_: Request) -> Response:
        reason = await application.is_ready()
        return JSONResponse(_readiness(reason, application.warnings), status_code=200 if reason is None else 503)

    routes: list[BaseRoute] = [Route("/healthz", healthz), Route("/readyz", readyz)]
    for plugin in load_plugins():
        routes.extend(plugin.routes(application, metrics))
    handlers: dict[Any, Any] = {}
    for transport in application.transports:
        routes.extend(transport.routes)
        handlers.update(transport.exception_handlers)
    limit = Middleware(BodyLimit, max_bytes=MAX_BODY_BYTES)
    app = Starlette(routes=routes, exception_handlers=handlers, middleware=[limit])
    app.router.redirect_slashes = False
    return app


def _readiness(reason: str | None, warnings: Sequence[str]) -> dict[str, Any]:
    """Build the answer of /readyz: what is only worth a warning must not take every chat from a router."""
    return {"ready": reason is None, "reason": reason, **({"warnings": list(warnings)} if warnings else {})}


def _has_two_lengths(scope: Scope) -> bool:
    """Return whether a body has two lengths, so that a proxy may see another end of it (request smuggling)."""
    names = [name for name, _ in scope["headers"]]
    return b"transfer-encoding" in names and b"content-length" in names


@dataclass(frozen=True, slots=True)
class BodyLimit:
    """Answers 413 to a request whose body is too large, before or while it arrives; 408 where that takes too long."""

    app: ASGIApp
    max_bytes: int
    seconds: float = BODY_SECONDS

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] == "http" and _has_two_lengths(scope):
            await PlainTextResponse("a body has one length\n", 400, headers=_CLOSE)(scope, receive, send)
        elif scope["type"] == "http" and self._announced(scope) > self.max_bytes:
            await PlainTextResponse("too large\n", 413, headers=_CLOSE)(scope, receive, send)
        else:
            with contextlib.suppress(ClientDisconnect):  # it has left in the middle of its body, and hears nothing
                await self.app(scope, self._bounded(receive) if scope["type"] == "http" else receive, send)

    def _announced(self, scope: Scope) -> int:
        length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
        return int(length) if length.isdigit() else 0

    def _bounded(self, receive: Receive) -> Receive:
        size, is_complete = 0, False
        until = asyncio.get_running_loop().time() + self.seconds

        async def take() -> Message:
            nonlocal size, is_complete
            if is_complete:  # what comes now is only that the client has left
                return await receive()
            try:
                async with asyncio.timeout_at(until):
                    message = await receive()
            except TimeoutError:
                raise HTTPException(408, "The body came too slowly.", headers=_CLOSE) from None
            size += len(message.get("body", b""))
            is_complete = not message.get("more_body", False)
            if size > self.max_bytes:
                raise HTTPException(413, "This is too large.", headers=_CLOSE)
            return message

        return take
