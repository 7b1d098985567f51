"""The public web of the tests: names that resolve as a test says, and one server on loopback behind all of them.

What connects to a machine is recorded with its number. Only the numbers of the stand-in lead anywhere: whatever else
is connected to fails the test.
"""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx2

PUBLIC = "93.184.215.14"
Answer = bytes | Callable[[asyncio.StreamReader, asyncio.StreamWriter], Any]


def page(body: bytes | str, kind: str = "text/html; charset=utf-8", status: str = "200 OK", **headers: str) -> bytes:
    """Return a whole answer."""
    data = body.encode() if isinstance(body, str) else body
    lines = [f"HTTP/1.1 {status}", f"Content-Type: {kind}", f"Content-Length: {len(data)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


def redirect(to: str, status: str = "302 Found") -> bytes:
    return page("", status=status, Location=to)


class PagesWeb:
    """Names, pages, and who was asked.

    Attributes:
        names: The addresses of each name; every other name has `PUBLIC`.
        pages: What is answered, by "host/path".
        down: Numbers of machines that take no connection.
        connected: The numbers that were connected to, in order.
        requests: The heads of requests, in order.
        port: Where the server listens.
    """

    def __init__(self) -> None:
        self.names: dict[str, Sequence[str]] = {}
        self.pages: dict[str, Answer] = {}
        self.down: set[str] = set()
        self.connected: list[str] = []
        self.requests: list[str] = []
        self.port = 0

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        return self.names.get(host, [PUBLIC])

    def connect(self, tls: ssl.SSLContext) -> httpx2.AsyncBaseTransport:
        return _Loopback(self, tls)

    @asynccontextmanager
    async def running(self, tls: ssl.SSLContext | None = None) -> AsyncIterator["PagesWeb"]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)
        self.port = server.sockets[0].getsockname()[1]
        async with server:
            yield self

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.requests.append(head)
            path = head.split(" ")[1]
            host = next(line[6:] for line in head.splitlines() if line.lower().startswith("host: "))
            answer = self.pages.get(host + path, page("nothing here", status="404 Not Found"))
            if isinstance(answer, bytes):
                writer.write(answer)
                await writer.drain()
            else:
                await answer(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()


class _Loopback(httpx2.AsyncHTTPTransport):
    """Connects to the stand-in, whichever number is asked for."""

    def __init__(self, web: PagesWeb, tls: ssl.SSLContext) -> None:
        super().__init__(tls)
        self._web = web

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        url = request.url
        self._web.connected.append(url.host)
        if url.host in self._web.down:
            raise httpx2.ConnectError("All connection attempts failed")
        assert url.host in (PUBLIC, "2606:4700::1111"), f"a connection was made to {url.host}"
        assert url.port is None, f"a request was made for {url}"
        request.url = url.copy_with(host="127.0.0.1", port=self._web.port)
        return await super().handle_async_request(request)
