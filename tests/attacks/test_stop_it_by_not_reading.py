"""Stop it by answers that nobody takes: whoever does not read, or asks ahead, gives the connection back."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator

import pytest
import uvicorn
from standins.web_server import WebServer
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from botservice.server.connection_limits import GuardedConnection, SharedConnection
from botservice.server.web_app import BodyLimit

PATIENCE_SECONDS = 60
LARGE = b"x" * (8 * 1024 * 1024)  # more than systems keep for who does not read
ASK = "GET {} HTTP/1.1\r\nHost: x\r\n\r\n"


class _Impatient(GuardedConnection):
    write_seconds = 0.05


@contextlib.asynccontextmanager
async def server(http: type[GuardedConnection], limit: int | None = None) -> AsyncIterator[int]:
    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok")

    async def large(_: Request) -> Response:
        return Response(LARGE)

    async def echo(request: Request) -> Response:
        return PlainTextResponse(await request.body())

    routes = [Route("/healthz", healthz), Route("/large", large), Route("/echo", echo, methods=["POST"])]
    config = uvicorn.Config(
        BodyLimit(Starlette(routes=routes), 1_000),
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        http=http,
        limit_concurrency=limit,
        timeout_keep_alive=1,
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with WebServer(config).serving(listener), asyncio.timeout(PATIENCE_SECONDS):
            yield listener.getsockname()[1]


async def open_to(port: int, address: str = "127.0.0.1") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port, limit=1024, local_addr=(address, 0))


async def is_served(port: int, address: str = "127.0.0.1") -> bool:
    """Return whether a person gets an answer on a connection of their own."""
    with contextlib.suppress(ConnectionError):
        reader, writer = await open_to(port, address)
        writer.write(ASK.format("/healthz").encode())
        line = await reader.readline()
        writer.close()
        return b" 200 " in line
    return False


async def test_who_never_reads_gives_the_connection_back() -> None:
    async with server(_Impatient, limit=4) as port:
        deaf = [await open_to(port) for _ in range(4)]
        for _, writer in deaf:
            writer.write(ASK.format("/large").encode())
        while not await is_served(port):  # noqa: ASYNC110 - only the server knows
            await asyncio.sleep(0)
        for reader, writer in deaf:
            taken = b""
            with contextlib.suppress(ConnectionError):
                while piece := await reader.read(1 << 20):
                    taken += piece
            assert len(taken) < len(LARGE)
            writer.close()


async def test_who_reads_gets_all_of_a_large_answer() -> None:
    async with server(GuardedConnection) as port:
        reader, writer = await open_to(port)
        writer.write(ASK.format("/large").encode())
        assert b" 200 " in await reader.readline()
        taken = 0
        while taken < len(LARGE):
            taken += len(await reader.read(1 << 16))
        writer.close()


async def test_requests_that_are_sent_far_ahead_of_their_answers_are_not_all_answered() -> None:
    async with server(GuardedConnection) as port:
        reader, writer = await open_to(port)
        writer.write(ASK.format("/healthz").encode() * 100)
        said = b""
        with contextlib.suppress(ConnectionError):
            while piece := await reader.read(4096):
                said += piece
        assert said.count(b" 200 ") <= GuardedConnection.most_pipelined + 1
        writer.close()


@pytest.mark.parametrize(("http", "is_shared"), [(SharedConnection, True), (GuardedConnection, False)])
async def test_one_address_has_half_of_the_connections_where_no_proxy_is_in_front(
    http: type[GuardedConnection], is_shared: bool
) -> None:
    async with server(http, limit=6) as port:
        held = [await open_to(port) for _ in range(5)]
        assert await is_served(port, "127.0.0.2") is is_shared
        for _, writer in held:
            writer.close()


async def test_a_body_of_two_lengths_is_refused() -> None:
    async with server(GuardedConnection) as port:
        reader, writer = await open_to(port)
        head = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n"
        writer.write(head + b"3\r\nabc\r\n0\r\n\r\n" + ASK.format("/healthz").encode())
        said = await reader.read()
        assert said.startswith(b"HTTP/1.1 400 ")
        assert said.count(b"HTTP/1.1") == 1
        writer.close()
