"""Requests to the Bot API: whoever waits for one may go, and takes no connection along."""

import asyncio
import inspect
import random
import socket

import pytest
from standins.bot_api import BotApi
from standins.raw_http import raw_server
from telegram import Bot, InputFile
from telegram.error import Forbidden, InvalidToken, NetworkError, RetryAfter, TelegramError, TimedOut
from telegram.request import RequestData
from telegram.request._requestparameter import RequestParameter

from botservice.core.errors import DeliveryError
from transports.telegram.client import BotClient, Limits, Requests
from transports.telegram.failures import as_delivery_error, reason_of

TYPING = {"chat_id": 7, "action": "typing"}


@pytest.fixture
def api():
    with BotApi.running() as running:
        running.person_says("hello", chat_id=7)
        yield running


def test_the_library_still_has_the_private_member_by_which_any_method_is_called():
    assert {"endpoint", "data", "read_timeout"} <= inspect.signature(Bot._post).parameters.keys()


async def test_calls_that_are_given_up_at_any_moment_leave_their_connections_to_others(api):
    """With httpcore 1.0.9, one call in a hundred that was cancelled kept its connection for good."""
    dice = random.Random(7)
    client = BotClient(api.token, api.url, connections=4)
    await client.initialize()
    try:
        for _ in range(60):
            calls = [asyncio.ensure_future(client.call("sendChatAction", **TYPING)) for _ in range(8)]
            await asyncio.sleep(dice.random() * 0.02)
            for call in calls:
                call.cancel()
            await asyncio.wait(calls)
        assert await client.call("sendChatAction", **TYPING) is True
    finally:
        await client.close_connections()


async def test_a_call_that_is_given_up_is_made_all_the_same(api):
    client = BotClient(api.token, api.url)
    await client.initialize()
    calling = asyncio.ensure_future(client.call("sendMessage", chat_id=7, text="on its way"))
    await asyncio.sleep(0)
    calling.cancel()
    await asyncio.wait([calling])
    assert calling.cancelled()
    await asyncio.to_thread(api.wait_until, lambda: "on its way" in api.visible_texts(7), what="it is visible")
    await client.close_connections()


async def test_closing_cuts_off_what_is_under_way(api):
    client = BotClient(api.token, api.url)
    await client.initialize()
    calling = asyncio.ensure_future(client.call("sendChatAction", **TYPING))
    await asyncio.sleep(0)
    await client.close_connections()
    await asyncio.wait([calling], timeout=60)
    assert calling.done()


async def test_a_file_that_is_not_taken_is_given_up():
    """A server that stops reading gives whoever sends to it neither an answer nor an error."""
    limits = Limits(connect=0.5, pool=0.5, upload=0, bytes_a_second=1e9)
    file = InputFile(bytes(20_000_000), filename="large.bin", attach=True)
    data = RequestData([RequestParameter.from_input("document", file)])
    requests = Requests(1, limits)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/"
        with pytest.raises(TimedOut):
            await requests.do_request(address, "POST", data, read_timeout=0.1)
        await requests.shutdown()


async def test_an_answer_that_nobody_asked_for_is_not_taken_for_the_next_one():
    may_speak, has_spoken = asyncio.Event(), asyncio.Event()

    def said(number):
        body = b'{"ok": true, "result": {"message_id": %d}}' % number
        return b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)

    async def answer(request, writer):
        writer.write(said(len(server.requests)))
        if request.connection == 1:
            await may_speak.wait()
            writer.write(said(999))
            await writer.drain()
            has_spoken.set()

    async with raw_server(answer) as server:
        client = BotClient("1:a", server.base_url)
        try:
            ids = [(await client.call("sendMessage", chat_id=7, text="one"))["message_id"]]
            may_speak.set()
            await has_spoken.wait()
            ids += [(await client.call("sendMessage", chat_id=7, text=text))["message_id"] for text in ("two", "three")]
        finally:
            await client.close_connections()
    assert ids == [1, 2, 3]


@pytest.mark.parametrize("rest", [b"zz\r\n", b"<html>bad gateway</html>\r\n"])
async def test_a_file_that_breaks_off_in_what_is_no_http_is_given_up_at_once(rest):
    is_over = asyncio.Event()

    async def break_off(_, writer):
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await writer.drain()
        await asyncio.sleep(0)
        writer.write(rest)
        await is_over.wait()

    async with raw_server(break_off) as server:
        client = BotClient("1:a", server.base_url)
        try:
            with pytest.raises(NetworkError):
                await client.download("photo.jpg")
        finally:
            is_over.set()
            await client.close_connections()


async def test_a_file_that_comes_too_slowly_or_is_too_long_is_given_up():
    is_over = asyncio.Event()

    async def drip(request, writer):
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n")
        while not is_over.is_set():
            writer.write(b"x" if "slow" in request.line else b"x" * 1_000_000)
            await writer.drain()
            await asyncio.sleep(0.01 if "slow" in request.line else 0)

    async with raw_server(drip) as server:
        hasty, patient = Requests(1, Limits(bytes_a_second=1e9, connect=0.1, pool=0.1)), Requests(1)
        try:
            with pytest.raises(TimedOut):
                await hasty.do_request(f"{server.base_url}/slow", "GET", read_timeout=0.2)
            with pytest.raises(NetworkError, match="ClientPayloadError"):
                await patient.do_request(f"{server.base_url}/long", "GET", read_timeout=60)
        finally:
            is_over.set()
            await hasty.shutdown()
            await patient.shutdown()


async def test_calls_go_through_the_proxy_that_the_environment_names(api, monkeypatch):
    """The stand-in is asked for an address that is nowhere, and answers that it knows no such thing."""
    monkeypatch.setenv("http_proxy", api.url.removeprefix("http://"))
    client = BotClient(api.token, "http://telegram.invalid")
    try:
        with pytest.raises(InvalidToken, match="Not Found"):
            await client.call("sendChatAction", **TYPING)
    finally:
        await client.close_connections()


@pytest.mark.parametrize("name", ["a\tb.txt", "a\0b.txt", "a\x1b[1mb\x7f.txt", "a\r\nb.txt", 'a"b.txt', "a\ud800b.txt"])
async def test_a_file_is_sent_whatever_its_name_holds(api, name):
    client = BotClient(api.token, api.url)
    try:
        file = InputFile(b"words", filename=name)
        sent = await client.call("sendDocument", chat_id=7, document=file)
    finally:
        await client.close_connections()
    shown = sent["document"]["file_name"]
    assert [shown[0], shown[-4:]] == ["a", ".txt"]
    assert shown.isprintable()


async def test_a_proxy_of_another_kind_is_named_and_nothing_is_sent_to_it(monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        monkeypatch.setenv("all_proxy", f"socks5://ann:secret@127.0.0.1:{listening.getsockname()[1]}")
        client = BotClient("1:a", "http://telegram.invalid")
        try:
            with pytest.raises(NetworkError, match="socks5") as raised:
                await client.call("sendChatAction", **TYPING)
        finally:
            await client.close_connections()
        with pytest.raises(BlockingIOError):
            listening.accept()
    assert type(as_delivery_error(raised.value)) is DeliveryError, "it can be sent again: nobody has it"
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("status", ["200 OK", "400 Bad Request", "429 Too Many Requests", "502 Bad Gateway"])
@pytest.mark.parametrize(
    "body", ["null", "[1]", '"slow down"', "{}", '{"description": 5}', '{"description": "x", "parameters": [1]}',
             '{"ok": true}', "[" * 100_000],
    ids=lambda body: body[:20],
)  # fmt: skip
async def test_json_that_is_not_the_bot_api_s_loses_no_answer(status, body):
    async def answer(_, writer):
        writer.write(f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode())

    async with raw_server(answer) as server:
        client = BotClient("1:a", server.base_url)
        try:
            with pytest.raises(TelegramError) as raised:
                await client.call("sendMessage", chat_id=7, text="hello")
        finally:
            await client.close_connections()
    assert type(as_delivery_error(raised.value)) is DeliveryError, "it is sent again"


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ('"error_code": 403, "description": "Forbidden: bot was blocked by the user"', Forbidden),
        ('"error_code": 429, "description": "Slow down", "parameters": {"retry_after": 5}', RetryAfter),
        ('"error_code": "x", "description": "?"', NetworkError),
        ('"description": "?"', NetworkError),
    ],
)
async def test_a_refusal_counts_also_where_its_status_says_that_all_is_well(said, error):
    async def answer(_, writer):
        body = '{"ok": false, ' + said + "}"
        writer.write(f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\n\r\n{body}".encode())

    async with raw_server(answer) as server:
        client = BotClient("1:a", server.base_url)
        with pytest.raises(error):
            await client.call("sendMessage", chat_id=7, text="hello")
        await client.close_connections()


async def test_an_error_names_the_proxy_that_was_used_without_its_password(monkeypatch):
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))  # and does not listen
        port = nobody.getsockname()[1]
        monkeypatch.setenv("http_proxy", f"http://ann:secret@127.0.0.1:{port}")
        client = BotClient("1:a", "http://bot-api.example")
        try:
            with pytest.raises(NetworkError) as failed:
                await client.call("getMe")
        finally:
            await client.close_connections()
    by = f"through the proxy 127.0.0.1:{port} of the environment"
    assert reason_of(failed.value) == f"NetworkError {by}"
    assert str(as_delivery_error(failed.value)) == f"Telegram cannot be reached {by}"
    assert "secret" not in str(failed.value)
