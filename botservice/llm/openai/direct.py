"""The way to a server without a proxy: HTTP/1.1 by asyncio's own connections, in a quarter of the CPU of a pool."""

import asyncio
import select
import ssl
import sys
from collections import deque
from collections.abc import AsyncIterator, Mapping
from typing import Any, Final, TypeAlias, cast
from urllib.request import getproxies

import h11
import httpx2

_MOST_HEAD_BYTES: Final = 100 * 1024
_MOST_UNREAD_BYTES: Final = 256 * 1024
_NEXT_ADDRESS_SECONDS: Final = 0.25  # RFC 8305: so long one address of a server is tried before the next one is too
_PROXIED: Final = frozenset({"http", "https", "all"})
_Origin: TypeAlias = tuple[str, str, int]


def direct_way(
    base_url: str, tls: ssl.SSLContext, *, idle_seconds: float
) -> "Mapping[str, httpx2.AsyncBaseTransport] | None":
    """Return the mounts of an HTTP client that asks one server directly; None where the environment names a proxy.

    What is elsewhere, such as where the server redirects to, is asked as the client does by itself.
    """
    url = httpx2.URL(base_url)
    if url.scheme not in ("http", "https") or not url.host or _PROXIED.intersection(getproxies()):
        return None
    return {f"{url.scheme}://{url.netloc.decode()}": DirectTransport(tls, idle_seconds=idle_seconds)}


class DirectTransport(httpx2.AsyncBaseTransport):
    """Sends requests to the servers that they name, each on a connection that nobody else uses meanwhile.

    Args:
        tls: What https connections are checked with.
        idle_seconds: How long a connection is kept for the next request.
    """

    def __init__(self, tls: ssl.SSLContext, *, idle_seconds: float) -> None:
        self._tls = tls
        self._tls.set_alpn_protocols(["http/1.1"])
        self._idle_seconds = idle_seconds
        self._idle: deque[_Connection] = deque()

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Return the answer to a request, with its head read and its body not.

        Raises:
            httpx2.TransportError: the server cannot be reached, or it says nothing that is HTTP.
        """
        seconds: Mapping[str, float | None] = request.extensions.get("timeout", {})
        connection = self._take_idle(_origin(request.url)) or await self._connect(request.url, seconds.get("connect"))
        try:
            await connection.send(request, seconds.get("write"))
            head = await connection.head(seconds.get("read"))
        except BaseException:
            connection.close()
            raise
        return httpx2.Response(
            head.status_code,
            headers=head.headers.raw_items(),
            stream=_Body(self, connection, seconds.get("read")),
            extensions={"http_version": b"HTTP/" + head.http_version, "reason_phrase": head.reason},
        )

    async def aclose(self) -> None:
        """Close the connections that are not in use."""
        while self._idle:
            self._idle.pop().close()
        await asyncio.sleep(0)  # they are closed in the next round of the event loop

    def give_back(self, connection: "_Connection") -> None:
        """Keep a connection whose answer was read to its end; close it otherwise."""
        if connection.is_reusable():
            self._idle.append(connection)
        else:
            connection.close()

    def _take_idle(self, origin: _Origin) -> "_Connection | None":
        """Return an idle connection to a server, the one that was used last."""
        oldest = asyncio.get_running_loop().time() - self._idle_seconds
        while self._idle and self._idle[0].idle_since < oldest:
            self._idle.popleft().close()
        for place in reversed(range(len(self._idle))):
            connection = self._idle[place]
            if connection.origin == origin:
                del self._idle[place]
                if connection.is_usable():
                    return connection
                connection.close()
        return None

    async def _connect(self, url: httpx2.URL, seconds: float | None) -> "_Connection":
        origin = scheme, host, port = _origin(url)
        tls = self._tls if scheme == "https" else None
        try:
            async with asyncio.timeout(seconds):
                _, connection = await asyncio.get_running_loop().create_connection(
                    lambda: _Connection(origin), host, port, ssl=tls, happy_eyeballs_delay=_NEXT_ADDRESS_SECONDS
                )
        except TimeoutError as error:
            raise httpx2.ConnectTimeout(str(error)) from error
        except OSError as error:
            raise httpx2.ConnectError(str(error)) from error
        return connection


class _Connection(asyncio.Protocol):
    """One connection, on which requests go one after the other.

    Attributes:
        origin: The server.
        idle_since: When its last answer had ended, by the clock of the event loop.
    """

    def __init__(self, origin: _Origin) -> None:
        self.origin = origin
        self._is_closed = False
        self.idle_since = 0.0
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=_MOST_HEAD_BYTES)
        self._loop = asyncio.get_running_loop()
        self._is_idle = False
        self._is_full = False
        self._unread = 0
        self._error: Exception | None = None
        self._change: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Note what bytes go out by."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Take bytes; more are not asked for before most of them are read."""
        if self._is_idle:
            return self.close()  # it says something that nobody has asked for
        self._http.receive_data(data)
        self._unread += len(data)
        if self._unread > _MOST_UNREAD_BYTES:
            self._transport.pause_reading()
        return self._tell()

    def eof_received(self) -> None:
        """Note that the server says nothing more; the connection is closed then."""
        self._is_closed = True
        if not self._is_idle:
            self._http.receive_data(b"")
        self._tell()

    def connection_lost(self, error: Exception | None) -> None:
        """Note that there is no connection any more."""
        self._is_closed = True
        self._error = error or ConnectionResetError("the connection was closed")
        self._tell()

    def pause_writing(self) -> None:
        """Note that enough waits to be sent."""
        self._is_full = True

    def resume_writing(self) -> None:
        """Note that more can be sent."""
        self._is_full = False
        self._tell()

    def close(self) -> None:
        """Let go of the connection at once."""
        self._is_closed = True
        self._transport.abort()

    def is_usable(self) -> bool:
        """Return whether an idle connection can be asked, as far as is known: a server that closes it says so there."""
        return not self._is_closed and not _is_readable(self._transport.get_extra_info("socket"))

    def is_reusable(self) -> bool:
        """Return whether the next request can go here, and make ready for it."""
        if self._is_closed or self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
            return False
        self._http.start_next_cycle()
        self.idle_since = self._loop.time()
        self._is_idle = True
        return True

    async def send(self, request: httpx2.Request, seconds: float | None) -> None:
        """Send a request, its head together with the first of its body.

        What is not taken is no error yet: a server may have answered before it heard all.
        """
        self._is_idle = False
        try:
            head = h11.Request(method=request.method.encode(), target=request.url.raw_path, headers=request.headers.raw)
            waiting = self._http.send(head) or b""
            async for piece in cast("httpx2.AsyncByteStream", request.stream):
                self._transport.write(waiting + (self._http.send(h11.Data(data=piece)) or b""))
                waiting = b""
                while self._is_full and self._error is None:
                    await self._changed(seconds)
            self._transport.write(waiting + (self._http.send(h11.EndOfMessage()) or b""))
        except h11.LocalProtocolError as error:
            raise httpx2.LocalProtocolError(str(error)) from error
        except TimeoutError as error:
            raise httpx2.WriteTimeout(str(error)) from error

    async def head(self, seconds: float | None) -> h11.Response:
        """Return the head of an answer."""
        while True:
            event = await self.next(seconds)
            if isinstance(event, h11.Response):
                return event
            if not isinstance(event, h11.InformationalResponse):
                raise httpx2.RemoteProtocolError("the server changed to something that is not HTTP")

    async def next(self, seconds: float | None) -> Any:
        """Return what comes next of an answer: a piece of its body, or its end."""
        try:
            while (event := self._http.next_event()) is h11.NEED_DATA:
                if self._error is not None:
                    raise httpx2.ReadError(str(self._error)) from self._error
                if self._unread > _MOST_UNREAD_BYTES:
                    self._transport.resume_reading()
                self._unread = 0
                await self._changed(seconds)
        except h11.RemoteProtocolError as error:
            raise httpx2.RemoteProtocolError(str(error)) from error
        except TimeoutError as error:
            raise httpx2.ReadTimeout(str(error)) from error
        return event

    async def _changed(self, seconds: float | None) -> None:
        """Wait until something has become of the connection."""
        self._change = self._loop.create_future()
        try:
            if seconds is None:
                await self._change
            else:
                async with asyncio.timeout(seconds):
                    await self._change
        finally:
            self._change = None

    def _tell(self) -> None:
        if self._change is not None and not self._change.done():
            self._change.set_result(None)


class _Body(httpx2.AsyncByteStream):
    """The body of an answer; its connection is used again once it is read."""

    def __init__(self, transport: DirectTransport, connection: _Connection, seconds: float | None) -> None:
        self._transport = transport
        self._connection = connection
        self._seconds = seconds
        self._is_closed = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while isinstance(event := await self._connection.next(self._seconds), h11.Data):
            yield bytes(event.data)

    async def aclose(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._transport.give_back(self._connection)


def _is_readable(socket: Any) -> bool:
    """Return whether something has arrived, also where the event loop has not looked since."""
    if sys.platform == "win32":  # which has no poll; the bound of select elsewhere is none there
        return bool(select.select([socket], [], [], 0)[0])
    polling = select.poll()
    polling.register(socket, select.POLLIN)
    return bool(polling.poll(0))


def _origin(url: httpx2.URL) -> _Origin:
    return url.scheme, url.raw_host.decode("ascii"), url.port or (443 if url.scheme == "https" else 80)
