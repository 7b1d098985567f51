"""Addresses whose pages are loaded when the first of them is asked for, off the event loop."""

import asyncio
from collections.abc import Callable, Sequence

from starlette.routing import BaseRoute, Match, Router
from starlette.types import Receive, Scope, Send


class LateRoutes(BaseRoute):
    """All addresses at and below a path."""

    def __init__(self, path: str, load: Callable[[], Sequence[BaseRoute]]) -> None:
        """Note what loads the routes, whose paths are whole ones."""
        self._path = path
        self._load = load
        self._router: Router | None = None

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether a request is for one of the addresses."""
        path = scope["path"].removeprefix(scope.get("root_path", ""))  # which stands before it below a Mount
        is_here = scope["type"] == "http" and f"{path}/".startswith(f"{self._path}/")
        return (Match.FULL if is_here else Match.NONE), {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if self._router is None:
            self._router = Router(await self.routes(), redirect_slashes=False)
        path = scope["path"].rstrip("/")  # an address is the same with a slash behind it
        await self._router({**scope, "path": path}, receive, send)

    async def routes(self) -> Sequence[BaseRoute]:
        """Return the routes."""
        return await asyncio.to_thread(self._load)
