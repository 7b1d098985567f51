"""An MCP server whose authorization says what a test wants it to say, on loopback."""

import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from standins.web_server import web_server

Say = Callable[[Request], Awaitable[Response] | Response]


class BadAuthorization:
    """Answers as it should, wherever nothing else is wanted of it.

    Attributes:
        says: What is answered instead, by path.
        metadata: What is said of the authorization besides what is true.
        token: What is given for a code, or a refresh token.
        asked: The forms that came to the address for tokens.
    """

    def __init__(self, origin: str) -> None:
        self.origin = origin
        self.url = f"{origin}/mcp"
        self.says: dict[str, Say] = {}
        self.metadata: dict[str, Any] = {}
        self.token: dict[str, Any] = {"access_token": "token", "token_type": "Bearer"}
        self.asked: list[dict[str, str]] = []

    async def answer(self, request: Request) -> Response:
        path = request.url.path
        if path in self.says:
            said = self.says[path](request)
            return said if isinstance(said, Response) else await said
        if path == "/token":
            self.asked.append({name: str(value) for name, value in (await request.form()).items()})
            return JSONResponse(self.token)
        if path == "/register":
            return JSONResponse({**await request.json(), "client_id": "botservice"}, 201)
        if path.startswith("/.well-known/oauth-protected-resource"):
            return JSONResponse({"resource": self.url, "authorization_servers": [self.origin]})
        if path.startswith("/.well-known/"):
            return JSONResponse(self._metadata())
        return Response(status_code=401, headers={"www-authenticate": "Bearer"})

    def _metadata(self) -> dict[str, Any]:
        endpoints = {f"{each}_endpoint": f"{self.origin}/{path}" for each, path in _ENDPOINTS.items()}
        return {"issuer": self.origin, **endpoints, **self.metadata}


_ENDPOINTS = {"authorization": "authorize", "token": "token", "registration": "register"}


@contextlib.asynccontextmanager
async def bad_authorization() -> AsyncIterator[BadAuthorization]:
    """Serve until the block is left."""
    listener = socket.create_server(("127.0.0.1", 0))
    made = BadAuthorization(f"http://127.0.0.1:{listener.getsockname()[1]}")
    routes = [Route("/{path:path}", made.answer, methods=["GET", "POST", "DELETE"])]
    async with web_server(routes, listener):
        yield made
