"""Delivering events: signed and with retries over HTTP, or through the sockets that the app has opened."""

import asyncio
import hashlib
import hmac
import json
import time
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import aiohttp
from aiohttp import web

if TYPE_CHECKING:
    from standins.slack_api.server import SlackApi

# Slack gives an app 3 seconds. A machine that stands still for as long is not what tests are about.
ACK_SECONDS = 30.0


@dataclass(slots=True)
class Delivered:
    """One try to deliver a body."""

    kind: str
    body: dict[str, Any]
    retry: int
    status: int | None = None
    answer: str = ""
    seconds: float = 0.0


@dataclass(slots=True)
class Events:
    """What is on its way to the app."""

    api: "SlackApi"
    http_url: str | None = None
    retry_seconds: tuple[float, ...] = (0.0, 0.1, 0.2)
    tries: list[Delivered] = field(default_factory=list)
    sockets: list[web.WebSocketResponse] = field(default_factory=list)
    connections: int = 0
    opened: asyncio.Event = field(default_factory=asyncio.Event)
    acks: dict[str, asyncio.Future[dict[str, Any]]] = field(default_factory=dict)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)
    under_way: int = 0

    def send(self, kind: str, body: dict[str, Any], *, retries: bool = True) -> None:
        """Deliver a body until it is acknowledged; kind is that of Socket Mode: events_api, slash_commands, …"""
        with self.api.condition:
            self.under_way += 1
        self.api.in_loop(self._begin, kind, body, retries)

    def sign(self, body: bytes, *, at: int | None = None) -> dict[str, str]:
        """Return the headers that prove where a body comes from."""
        stamp = str(int(time.time()) if at is None else at)
        base = b"v0:" + stamp.encode() + b":" + body
        digest = hmac.new(self.api.signing_secret.encode(), base, hashlib.sha256).hexdigest()
        return {"X-Slack-Request-Timestamp": stamp, "X-Slack-Signature": f"v0={digest}"}

    def disconnect(self, reason: str = "warning") -> None:
        """Tell every open socket that it will be closed soon, as Slack does every few hours."""
        self.api.in_loop(self._disconnect, reason)

    def cut(self) -> None:
        """Cut every open socket without a word."""
        self.api.in_loop(self._cut)

    async def close(self) -> None:
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        for socket in self.sockets:
            await socket.close()

    async def socket(self, request: web.Request) -> web.WebSocketResponse:
        """Serve one connection of Socket Mode."""
        socket = web.WebSocketResponse()
        await socket.prepare(request)
        await socket.send_json({"type": "hello", "num_connections": 1})
        with self.api.condition:
            self.sockets.append(socket)
            self.connections += 1
            self.opened.set()
            self.api.condition.notify_all()
        try:
            async for message in socket:
                if message.type is aiohttp.WSMsgType.TEXT:
                    answer = json.loads(message.data)
                    waiting = self.acks.get(answer.get("envelope_id", ""))
                    if waiting is not None and not waiting.done():
                        waiting.set_result(answer.get("payload") or {})
        finally:
            with self.api.condition:
                self.sockets.remove(socket)
        return socket

    def _begin(self, kind: str, body: dict[str, Any], retries: bool) -> None:
        task = asyncio.ensure_future(self._deliver(kind, body, retries))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _deliver(self, kind: str, body: dict[str, Any], retries: bool) -> None:
        retry = 0
        while True:
            done = Delivered(kind, body, retry)
            begun = time.monotonic()
            is_taken = await (self._by_socket(done) if self.http_url is None else self._by_http(done))
            done.seconds = time.monotonic() - begun
            with self.api.condition:
                self.tries.append(done)
                is_over = is_taken or not retries
                self.under_way -= is_over
                self.api.condition.notify_all()
            if is_over:
                return
            await asyncio.sleep(self.retry_seconds[min(retry, len(self.retry_seconds) - 1)])
            retry += 1

    async def _by_http(self, done: Delivered) -> bool:
        raw, content_type = encode(done.kind, done.body)
        headers = {**self.sign(raw), "Content-Type": content_type}
        if done.retry:
            headers |= {"X-Slack-Retry-Num": str(done.retry), "X-Slack-Retry-Reason": "http_error"}
        try:
            timeout = aiohttp.ClientTimeout(total=ACK_SECONDS)
            async with (
                aiohttp.ClientSession(timeout=timeout) as session,
                session.post(self.http_url or "", data=raw, headers=headers) as answer,
            ):
                done.status, done.answer = answer.status, await answer.text()
        except (aiohttp.ClientError, TimeoutError) as error:
            done.answer = type(error).__name__
            return False
        return done.status == 200

    async def _by_socket(self, done: Delivered) -> bool:
        while not (open_sockets := [socket for socket in self.sockets if not socket.closed]):
            self.opened.clear()
            await self.opened.wait()
        envelope = str(uuid.uuid4())
        waiting = self.acks[envelope] = asyncio.get_running_loop().create_future()
        message = {
            "envelope_id": envelope,
            "type": done.kind,
            "payload": done.body,
            "accepts_response_payload": done.kind != "events_api",
            "retry_attempt": done.retry,
            "retry_reason": "timeout" if done.retry else "",
        }
        try:
            await open_sockets[-1].send_json(message)
            answer = await asyncio.wait_for(waiting, ACK_SECONDS)
        except (ConnectionError, TimeoutError) as error:
            done.answer = type(error).__name__
            return False
        finally:
            del self.acks[envelope]
        done.status, done.answer = 200, json.dumps(answer) if answer else ""
        return True

    def _disconnect(self, reason: str) -> None:
        for socket in list(self.sockets):
            task = asyncio.ensure_future(socket.send_json({"type": "disconnect", "reason": reason}))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)

    def _cut(self) -> None:
        for socket in list(self.sockets):
            transport = socket._req.transport if socket._req is not None else None
            if transport is not None:
                transport.abort()


def encode(kind: str, body: dict[str, Any]) -> tuple[bytes, str]:
    """Return a body as it travels over HTTP."""
    if kind == "events_api":
        return json.dumps(body).encode(), "application/json"
    form = body if kind == "slash_commands" else {"payload": json.dumps(body)}
    return urlencode(form, errors="replace").encode(), "application/x-www-form-urlencoded"
