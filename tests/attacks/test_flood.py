"""Flood: whoever is not let in holds neither memory nor connections, and no request whatever gives a failure."""

import asyncio
import contextlib
import logging
import os
import socket
import tracemalloc
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
import uvicorn
from attacks.requests_of_anybody import ADMIN_TOKEN, SLACK_SECRET, TELEGRAM_SECRET, requests
from standins.web_server import WebServer
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from botservice import AgentService, FunctionsBasedAgent, ScriptedChatLLM, Storage
from botservice.app import Application
from botservice.config.settings import Settings
from botservice.server.connection_limits import GuardedConnection, most_connections
from botservice.server.web_app import BodyLimit, build_web_app
from botservice.turns.inbox import Inbox
from transports.common.requests import Unproven
from transports.slack.app import SlackTransport
from transports.telegram.app import TelegramTransport
from transports.web.app import WebTransport
from transports.web.owner_token import PageAccess

PATIENCE_SECONDS = 60
MEGABYTE = 1024 * 1024
REQUESTS = int(os.environ.get("FLOOD_REQUESTS", "1500"))


@contextlib.asynccontextmanager
async def all_routes(storage: Storage) -> AsyncIterator[Starlette]:
    """Run every transport that has routes, with nobody at work behind them, and give the web server's application."""
    settings = Settings(host="0.0.0.0", admin_token=ADMIN_TOKEN)
    nowhere = "http://127.0.0.1:9"
    telegram = TelegramTransport(
        token="1:x", api_url=nowhere, public_url="https://bot.example", webhook_secret=TELEGRAM_SECRET
    )
    slack = SlackTransport(token="xoxb-1", signing_secret=SLACK_SECRET, api_url=f"{nowhere}/")
    transports = [telegram, slack, WebTransport(access=PageAccess.of(settings))]
    service = AgentService(FunctionsBasedAgent(llm=ScriptedChatLLM([])), storage)
    inbox = Inbox(storage, lambda *_: None)
    try:
        for transport in transports:
            await transport.start(inbox, storage)
        yield build_web_app(Application(settings, service, storage, None, transports))
    finally:
        for transport in transports:
            await transport.stop()
            await transport.close()


async def answers(app: Starlette, count: int, seed: int) -> dict[int, int]:
    """Return how many of so many requests got each status."""
    found: dict[int, int] = {}
    transport = httpx.ASGITransport(app=app, raise_app_exceptions=False)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
        for method, path, headers, body in requests(count, seed):
            raw = {name: value.encode() for name, value in headers.items()}
            if method == "GET" and path == "/web/events":
                continue  # a stream of its own, which the tests of the pages look at
            answer = await client.request(method, path, headers=raw, content=body)
            found[answer.status_code] = found.get(answer.status_code, 0) + 1
            if answer.status_code >= 500:
                assert answer.status_code == 503, (method, path, headers, body)
    return found


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.slow
async def test_no_request_whatever_gives_a_failure(
    sqlite_storage: Storage, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with all_routes(sqlite_storage) as app:
        found = await answers(app, 600, seed)
    assert found[200] > 50
    assert 503 not in found, "what is odd is not what cannot be stored"
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.slow
@pytest.mark.timeout(3600)
async def test_many_requests_leave_nothing_behind(sqlite_storage: Storage) -> None:
    async with all_routes(sqlite_storage) as app:
        await answers(app, 500, 1)
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        found = await answers(app, REQUESTS, 2)
        after, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert 503 not in found
    assert after - before < 1024 * REQUESTS


@pytest.mark.parametrize("subtype", [["message_changed"], {"a": 1}, 7, [["x"]]])
async def test_a_subtype_that_is_no_text_is_taken_as_nothing(sqlite_storage: Storage, subtype: Any) -> None:
    from transports.slack.inbound_events import read_message
    from transports.slack.intake import read_change

    event = {"type": "message", "subtype": subtype, "channel": "D1", "user": "U1", "text": "hi", "ts": "1.000001"}
    body = {"team_id": "T1", "event_id": "E1", "event": event}
    assert read_message(body) is None
    assert read_change(body) is None
    odd = {
        **event,
        "subtype": "message_changed",
        "message": {**event, "files": [[], {"id": []}]},
        "previous_message": [],
    }
    assert read_change({**body, "event": odd}) is None


async def _request(endpoint: Any, headers: dict[str, str], pieces: list[bytes], *, is_whole: bool) -> tuple[int, int]:
    """Return the status of an answer, and how many pieces of the body were taken."""
    taken, statuses = 0, []

    async def receive() -> dict[str, Any]:
        nonlocal taken
        if taken < len(pieces):
            taken += 1
            return {"type": "http.request", "body": pieces[taken - 1], "more_body": taken < len(pieces) or not is_whole}
        await asyncio.sleep(3600)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": "/slack/events", "query_string": b"", "headers": raw}
    await endpoint(scope, receive, send)
    return statuses[0], taken


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-slack-signature": "v0=" + "0" * 64},
        {"x-slack-signature": "v0=" + "0" * 64, "x-slack-request-timestamp": "1"},
        {"x-slack-signature": "v0=x", "x-slack-request-timestamp": "{now}"},
        {"x-slack-signature": "v0=" + "0" * 64, "x-slack-request-timestamp": "²"},
    ],
)
async def test_of_a_body_without_a_signature_nothing_is_read(sqlite_storage: Storage, headers: dict[str, str]) -> None:
    async with all_routes(sqlite_storage) as app:
        assert await _request(app, headers, [b"x" * MEGABYTE] * 4, is_whole=False) == (401, 0)


async def test_large_bodies_that_nobody_has_proven_share_little_room() -> None:
    room, held, refused = Unproven(16 * MEGABYTE), 0, 0
    gate = asyncio.Event()

    async def deliver(pieces: int) -> None:
        nonlocal held, refused

        async def receive() -> dict[str, Any]:
            nonlocal pieces
            if pieces == 0:
                await gate.wait()
                return {"type": "http.request", "body": b"", "more_body": False}
            pieces -= 1
            return {"type": "http.request", "body": b"x" * 65_536, "more_body": True}

        try:
            await room.read(Request({"type": "http", "headers": []}, receive), 4 * MEGABYTE, lambda _: None)
            held += 1
        except HTTPException as error:
            refused += error.status_code == 503

    large = [asyncio.create_task(deliver(63)) for _ in range(100)]
    await asyncio.sleep(0)
    small = [asyncio.create_task(deliver(1)) for _ in range(10)]
    while refused + 4 < 100:  # noqa: ASYNC110 - they run until they wait for the gate
        await asyncio.sleep(0)
    gate.set()
    async with asyncio.timeout(PATIENCE_SECONDS):
        await asyncio.gather(*large, *small)
    assert refused >= 95
    assert held >= 10, "small ones need no room"
    assert room._free == 16 * MEGABYTE


async def test_a_body_that_does_not_come_is_not_waited_for_for_ever() -> None:
    async def echo(request: Request) -> Response:
        return PlainTextResponse(await request.body())

    app = BodyLimit(Starlette(routes=[Route("/slack/events", echo, methods=["POST"])]), 1000, seconds=0.01)
    async with asyncio.timeout(PATIENCE_SECONDS):
        assert (await _request(app, {}, [b"x"], is_whole=False))[0] == 408
        assert (await _request(app, {}, [b"x" * 600] * 2, is_whole=True))[0] == 413


class _Hasty(GuardedConnection):
    head_seconds = 0.05


@contextlib.asynccontextmanager
async def hasty_server(limit: int | None = None) -> AsyncIterator[int]:
    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok")

    app = Starlette(routes=[Route("/healthz", healthz)])
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        ws="none",
        http=_Hasty,
        limit_concurrency=limit,
        timeout_keep_alive=1,
    )
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with WebServer(config).serving(listener):
            yield listener.getsockname()[1]


@pytest.mark.parametrize("begin", [b"", b"GET /healthz HTTP/1.1\r\nHost: x\r\nX-Slow: "])
@pytest.mark.parametrize("is_second", [False, True])
async def test_a_head_that_does_not_end_is_not_waited_for(
    begin: bytes, is_second: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_second:  # the first one has to come in time, however busy the machine is
        monkeypatch.setattr(_Hasty, "head_seconds", 2.0)
    async with hasty_server() as port, asyncio.timeout(PATIENCE_SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        if is_second:
            writer.write(b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"200" in await reader.readline()
        writer.write(begin)
        while await reader.read(4096):  # it ends when the server closes it
            pass
        writer.close()


ODD_CHUNKS = {
    "at once": [b"zz\r\n"],
    "after the answer, or while it is read": [b"", b"zz\r\n"],
    "after a piece": [b"5\r\nhello\r\n", b"zz\r\n"],
    "and more": [b"zz\r\n", b"hello\r\n0\r\n\r\n"],
}


@pytest.mark.parametrize("path", ["/nowhere", "/healthz", "/slack/events", "/telegram/webhook", "/web/messages"])
@pytest.mark.parametrize("pieces", ODD_CHUNKS.values(), ids=ODD_CHUNKS)
async def test_a_body_in_chunks_that_are_none_gets_its_answer_and_no_traceback(
    sqlite_storage: Storage, path: str, pieces: list[bytes], caplog: pytest.LogCaptureFixture
) -> None:
    signed = f"X-Telegram-Bot-Api-Secret-Token: {TELEGRAM_SECRET}\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n"
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{signed}Transfer-Encoding: chunked\r\n\r\n".encode()
    async with all_routes(sqlite_storage) as app, connected(app) as (reader, writer):
        writer.write(head + pieces[0])
        for piece in pieces[1:]:
            for _ in range(20):  # rounds of the loop in which the server takes what is there
                await asyncio.sleep(0)
            writer.write(piece)
        answer = await reader.read()
    assert answer.startswith(b"HTTP/1.1 4")
    assert answer.count(b"HTTP/1.1 ") == 1
    assert of_the_server(caplog) in ([], ["WARNING"])


@pytest.mark.parametrize("path", ["/slack/events", "/telegram/webhook", "/web/messages"])
async def test_who_leaves_in_the_middle_of_a_body_leaves_no_traceback(
    sqlite_storage: Storage, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    signed = f"X-Telegram-Bot-Api-Secret-Token: {TELEGRAM_SECRET}\r\nAuthorization: Bearer {ADMIN_TOKEN}\r\n"
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{signed}Content-Length: 50\r\n\r\nhello".encode()
    async with all_routes(sqlite_storage) as app, connected(app) as (_, writer):
        writer.write(head)
        writer.close()
        await writer.wait_closed()
    assert of_the_server(caplog) == []


def of_the_server(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the levels of what was logged of connections and requests; transports complain of their platforms."""
    said = [record for record in caplog.records if record.name.startswith(("uvicorn", "asyncio", "botservice"))]
    return [record.levelname for record in said if record.levelno >= logging.WARNING]


@contextlib.asynccontextmanager
async def connected(app: Starlette) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Serve with the service's own connections until the block is left, and give one to it."""
    config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", ws="none", http=GuardedConnection)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        async with WebServer(config).serving(listener), asyncio.timeout(PATIENCE_SECONDS):
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            yield reader, writer
            writer.close()


async def test_connections_beyond_the_limit_are_turned_away() -> None:
    async with hasty_server(limit=5) as port, asyncio.timeout(PATIENCE_SECONDS):
        opened = [await asyncio.open_connection("127.0.0.1", port) for _ in range(100)]
        ends = await asyncio.gather(*(reader.read() for reader, _ in opened), return_exceptions=True)
        assert len(ends) == 100
        for _, writer in opened:
            writer.close()
        async with httpx.AsyncClient(verify=False) as client:
            assert (await client.get(f"http://127.0.0.1:{port}/healthz")).status_code in (200, 503)
    assert 64 <= most_connections() <= 4096


def test_odd_requests_are_the_same_every_time() -> None:
    first, again = ([each[3] for each in requests(200, 7)] for _ in range(2))
    assert sum(a == b for a, b in zip(first, again, strict=True)) == 200
