"""A web server on a loopback port, in the caller's event loop."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterator

import uvicorn
from starlette.types import ASGIApp


class _Server(uvicorn.Server):
    """A server that leaves signals to the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


@contextlib.asynccontextmanager
async def listening(app: ASGIApp) -> AsyncIterator[int]:
    """Serve an application until the block is left; give the port."""
    config = uvicorn.Config(app, log_config=None, log_level="critical", access_log=False, lifespan="off", ws="none")
    server = _Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield int(listener.getsockname()[1])
        finally:
            server.should_exit = server.force_exit = True
            await asyncio.wait([task])
