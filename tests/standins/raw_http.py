"""A server that sends the bytes it is told to: whole answers, broken ones, and what no framework would send."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class RawRequest:
    """A request as it came.

    Attributes:
        connection: The number of the connection that brought it, from 1.
    """

    line: str
    headers: dict[str, str]
    body: bytes
    connection: int


Answer = Callable[[RawRequest, asyncio.StreamWriter], Awaitable[None]]


@dataclass(slots=True)
class RawServer:
    """A server on loopback.

    Attributes:
        requests: What was asked.
        ended: How many connections were closed by the other side.
    """

    port: int = 0
    requests: list[RawRequest] = field(default_factory=list)
    connections: int = 0
    ended: int = 0

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"


@asynccontextmanager
async def raw_server(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[RawServer]:
    """Serve until the block ends; every request is handed to answer with what its answer is written to."""
    server, serving = RawServer(), set[asyncio.Task[object] | None]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server.connections += 1
        serving.add(asyncio.current_task())
        number = server.connections
        try:
            while True:
                request = await _read_request(reader, number)
                server.requests.append(request)
                await answer(request, writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            server.ended += 1
        finally:
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls) as listener:
        server.port = listener.sockets[0].getsockname()[1]
        try:
            yield server
        finally:  # since Python 3.12, a server ends when all that it serves has
            for task in serving:
                if task is not None:
                    task.cancel()


async def _read_request(reader: asyncio.StreamReader, connection: int) -> RawRequest:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    line, *rest = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (each.partition(":") for each in rest)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return RawRequest(line, headers, body, connection)


def response(body: bytes, *headers: str, status: str = "200 OK", kind: str = "text/event-stream") -> bytes:
    """Return a whole answer."""
    head = [f"HTTP/1.1 {status}", f"content-type: {kind}", f"content-length: {len(body)}", *headers]
    return "\r\n".join([*head, "", ""]).encode() + body


def begun(*headers: str) -> bytes:
    """Return the beginning of an answer that comes in chunks."""
    head = ["HTTP/1.1 200 OK", "content-type: text/event-stream", "transfer-encoding: chunked", *headers]
    return "\r\n".join([*head, "", ""]).encode()


def chunk(data: bytes) -> bytes:
    """Return a part of such an answer; without data, its end."""
    return b"%x\r\n%s\r\n" % (len(data), data)
