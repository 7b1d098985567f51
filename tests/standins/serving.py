"""A small HTTP server in a thread of its own, with its journal: what both stand-ins are built on.

uvicorn's protocol is driven directly (not `uvicorn.Server`, which starts and stops in steps of 0.1 s), and the app is
plain ASGI, because a stand-in must be able to do what no framework offers: cut the connection at any moment.
"""

import asyncio
import json
import logging
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, overload
from urllib.parse import unquote

import uvicorn
from uvicorn.server import ServerState

T = TypeVar("T")
DEFAULT_TIMEOUT_SECONDS = 60.0
LOOK_SECONDS = 0.1
"""So often a person looks who may be waiting for something else than what a server is told: a file, a process."""


class ClientGoneError(Exception):
    """The other side closed the connection before it had its answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of a journal. `seq` counts from 1 without gaps; `at` is `time.monotonic()`."""

    seq: int
    at: float


E = TypeVar("E", bound=Entry)


class Journal:
    """Everything that happened, in one order. Safe to read and to wait on from any thread but the server's own."""

    def __init__(self, condition: threading.Condition):
        self._condition = condition
        self._entries: list[Entry] = []

    def __len__(self) -> int:
        return len(self._entries)

    def record(self, kind: type[E], **fields: Any) -> E:
        """Append an entry and wake whoever waits."""
        with self._condition:
            entry = kind(seq=len(self._entries) + 1, at=time.monotonic(), **fields)
            self._entries.append(entry)
            self._condition.notify_all()
            return entry

    @overload
    def entries(self, *, since: int = 0) -> list[Entry]: ...
    @overload
    def entries(self, *kinds: type[E], since: int = 0) -> list[E]: ...
    def entries(self, *kinds: type[Any], since: int = 0) -> list[Any]:
        """Return the entries after sequence number `since`, of the given kinds or of all."""
        with self._condition:
            found = self._entries[since:]
        return [entry for entry in found if not kinds or isinstance(entry, kinds)]

    def wait_for(
        self,
        kind: type[E],
        predicate: Callable[[E], bool] = lambda _: True,
        *,
        since: int = 0,
        timeout: float = DEFAULT_TIMEOUT_SECONDS,
    ) -> E:
        """Return the first entry of `kind` after `since` for which `predicate` holds; wait for it if need be.

        Raises:
            TimeoutError: none came in time.
        """
        seen, deadline = since, time.monotonic() + timeout
        with self._condition:
            while True:
                for entry in self._entries[seen:]:
                    if isinstance(entry, kind) and predicate(entry):
                        return entry
                seen = len(self._entries)
                left = deadline - time.monotonic()
                if left <= 0 or not self._condition.wait(left):
                    tail = "\n  ".join(repr(entry)[:300] for entry in self._entries[-12:])
                    raise TimeoutError(f"no such {kind.__name__} within {timeout} s; the last entries:\n  {tail}")


class Gate:
    """Something to wait at until a test opens it, from any thread, for a waiter on any loop."""

    def __init__(self, *, is_open: bool = False):
        self._lock = threading.Lock()
        self._is_open = is_open
        self._waiters: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []

    @property
    def is_open(self) -> bool:
        return self._is_open

    def open(self) -> None:
        with self._lock:
            self._is_open = True
            waiters, self._waiters = self._waiters, []
        for loop, future in waiters:
            if not loop.is_closed():
                loop.call_soon_threadsafe(_settle, future)

    async def passed(self) -> None:
        """Return when the gate is open."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if self._is_open:
                return
            future = loop.create_future()
            self._waiters.append((loop, future))
        await future


def _listen(port: int) -> socket.socket:
    """Return a listening socket. Only with its protocol named does asyncio switch Nagle's delay off (40 ms a call)."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
        listener.listen(2048)
    except OSError:
        listener.close()
        raise
    return listener


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class Exchange:
    """One request, and the power to answer it, to cut it off, or to notice that nobody waits any more."""

    def __init__(self, scope: Any, receive: Any, send: Any):
        self.method: str = scope["method"]
        self.path: str = unquote(scope["raw_path"].decode("latin-1").partition("?")[0])
        self.query: str = scope["query_string"].decode("latin-1")
        self.headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        self._receive = receive
        self._send = send
        self._cycle = send.__self__  # uvicorn's RequestResponseCycle: the only road to the transport

    @property
    def is_gone(self) -> bool:
        """Whether the client has closed the connection."""
        return bool(self._cycle.disconnected)

    async def body(self) -> bytes:
        parts: list[bytes] = []
        while True:
            event = await self._receive()
            if event["type"] == "http.disconnect":
                raise ClientGoneError
            parts.append(event.get("body", b""))
            if not event.get("more_body"):
                return b"".join(parts)

    async def gone(self) -> None:
        """Return when the client has closed the connection. Only once the body is read."""
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def drop(self) -> None:
        """Cut the connection without a word."""
        self._cycle.transport.abort()
        await self.gone()

    async def unless_gone(self, work: Awaitable[T]) -> T:
        """Return what `work` gives.

        Raises:
            ClientGoneError: the client left first; the work was cancelled.
        """
        working = asyncio.ensure_future(work)
        leaving = asyncio.ensure_future(self.gone())
        try:
            await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            raise ClientGoneError
        finally:
            for task in (working, leaving):
                task.cancel()
            await asyncio.gather(working, leaving, return_exceptions=True)

    async def start(self, status: int, *, content_type: str, headers: dict[str, str] | None = None) -> None:
        fields = {"content-type": content_type, **(headers or {})}
        pairs = [(name.lower().encode(), str(value).encode("latin-1")) for name, value in fields.items()]
        await self._send({"type": "http.response.start", "status": status, "headers": pairs})

    async def write(self, data: bytes, *, more: bool = True) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": more})

    async def answer(
        self, status: int, body: bytes, *, content_type: str = "application/json", headers: dict[str, str] | None = None
    ) -> None:
        await self.start(
            status, content_type=content_type, headers={"content-length": str(len(body)), **(headers or {})}
        )
        await self.write(body, more=False)

    async def answer_json(self, status: int, value: Any, headers: dict[str, str] | None = None) -> None:
        await self.answer(status, json.dumps(value).encode(), headers=headers)


class Served:
    """A server in a thread. Its state is guarded by `condition`, which both sides take; nothing is awaited under it."""

    def __init__(self) -> None:
        self.condition = threading.Condition(threading.RLock())
        self.journal = Journal(self.condition)
        self.crashes: list[BaseException] = []
        self.port = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None

    async def handle(self, exchange: Exchange) -> None:
        """Answer one request."""
        raise NotImplementedError

    async def after_start(self) -> None:
        """Begin what the server does by itself."""

    async def before_stop(self) -> None:
        """End what the server started by itself."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def in_loop(self, action: Callable[..., object], *args: Any) -> None:
        """Run `action` soon in the server's loop, if it runs."""
        with self.condition:
            if self._loop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(action, *args)

    @contextmanager
    def serving(self, port: int = 0) -> Iterator[None]:
        """Serve while the block runs. It can be entered again afterwards, with its state kept: an outage."""
        listener = _listen(port)
        self.port = listener.getsockname()[1]
        ready = threading.Event()
        thread = threading.Thread(target=self._run, args=(listener, ready), name=type(self).__name__, daemon=True)
        thread.start()
        if not ready.wait(60):
            raise RuntimeError(f"{type(self).__name__} did not start") from (self.crashes[0] if self.crashes else None)
        try:
            yield
        except BaseException as error:
            for crash in self.crashes:
                error.add_note(f"{type(self).__name__} crashed, too: {crash!r}")
            raise
        finally:
            with self.condition:
                if self._loop is not None and self._stop is not None:
                    self._loop.call_soon_threadsafe(self._stop.set)
            thread.join(60)
        if thread.is_alive():
            raise RuntimeError(f"{type(self).__name__} did not stop")
        if self.crashes:
            raise self.crashes[0]

    def _run(self, listener: socket.socket, ready: threading.Event) -> None:
        try:
            asyncio.run(self._main(listener, ready))
        except Exception as error:  # noqa: BLE001 - shown to the test when its block ends
            self.crashes.append(error)
        finally:
            listener.close()

    async def _main(self, listener: socket.socket, ready: threading.Event) -> None:
        config = uvicorn.Config(
            self._app,
            log_config=None,
            log_level=None,
            lifespan="off",
            ws="none",
            proxy_headers=False,
            interface="asgi3",
        )
        config.load()
        state = ServerState()
        quiet = logging.getLogger("standins.uvicorn")
        quiet.disabled = True

        def protocol() -> Any:
            make: Any = config.http_protocol_class
            made = make(config=config, server_state=state, app_state={})
            made.access_log = False  # its lines would carry the token into a test's caplog
            made.logger = quiet
            return made

        loop = asyncio.get_running_loop()
        server = await loop.create_server(protocol, sock=listener)
        with self.condition:
            self._loop, self._stop = loop, asyncio.Event()
        await self.after_start()
        ready.set()
        await self._stop.wait()
        with self.condition:
            self._loop = None
        server.close()
        await self.before_stop()
        for connection in list(state.connections):
            connection.transport.abort()
        if state.tasks:
            await asyncio.wait(set(state.tasks), timeout=5)
        await asyncio.sleep(0)  # lets the aborted transports close their sockets
        await server.wait_closed()

    async def _app(self, scope: Any, receive: Any, send: Any) -> None:
        exchange = Exchange(scope, receive, send)
        try:
            await self.handle(exchange)
        except ClientGoneError:
            pass
        except Exception as error:  # noqa: BLE001 - a fault of the stand-in, shown when its block ends
            self.crashes.append(error)
            await exchange.drop()
