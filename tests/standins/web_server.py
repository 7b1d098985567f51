"""A web server for the routes of a transport, in the loop of the test."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator, Sequence

import uvicorn
from starlette.applications import Starlette
from starlette.routing import BaseRoute


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def web_server(routes: Sequence[BaseRoute], listener: socket.socket) -> AsyncIterator[None]:
    """Serve routes on a listening socket until the block is left."""
    app = Starlette(routes=list(routes))
    server = _Server(uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", ws="none"))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        yield
    finally:
        server.should_exit = True
        await serving
