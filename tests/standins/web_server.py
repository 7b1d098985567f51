"""A web server for the routes of a transport, in the loop of the test."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.routing import BaseRoute

_SECONDS_BETWEEN_LOOKS = 0.002


class WebServer(uvicorn.Server):
    """uvicorn's server, which begins and ends at once instead of in steps of 0.1 s."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._is_up = asyncio.Event()
        self._is_over = asyncio.Event()

    @contextlib.asynccontextmanager
    async def serving(self, listener: socket.socket) -> AsyncIterator[None]:
        """Serve on a listening socket until the block is left and whoever is connected has got an answer."""
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else an answer in two parts takes 40 ms
        running = asyncio.create_task(self.serve(sockets=[listener]))
        await self._is_up.wait()
        try:
            yield
        finally:
            self._is_over.set()
            await running

    async def main_loop(self) -> None:
        """Wait for the end."""
        await self.on_tick(0)  # makes the headers of every answer
        self._is_up.set()
        await self._is_over.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no new connections, and wait for those that are there."""
        for closed in (*self.servers, *(sockets or ())):
            closed.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        while self.server_state.connections or self.server_state.tasks:  # noqa: ASYNC110 - uvicorn tells nobody
            await asyncio.sleep(_SECONDS_BETWEEN_LOOKS)
        for server in self.servers:
            await server.wait_closed()
        await self.lifespan.shutdown()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to pytest."""
        yield


@contextlib.asynccontextmanager
async def web_server(routes: Sequence[BaseRoute], listener: socket.socket, **options: Any) -> AsyncIterator[None]:
    """Serve routes on a listening socket until the block is left."""
    app = Starlette(routes=list(routes), **options)
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", ws="none", server_header=False)
    async with WebServer(config).serving(listener):
        yield
