"""Asking a server that no proxy stands before: when connections are used again, and what is said where they break."""

import asyncio
import contextlib
import inspect
import ssl
from collections.abc import AsyncIterator
from pathlib import Path

import aiohttp
import httpx2
import pytest
from aiohttp.client_proto import ResponseHandler
from standins.certificates import certificate_for
from standins.raw_http import RawRequest, chunk, raw_server, response

from botservice.llm.openai.aiohttp_transport import AiohttpTransport
from botservice.llm.proxies_and_tls import tls_context


def client(tls: ssl.SSLContext | None = None, idle_seconds: float = 60.0) -> httpx2.AsyncClient:
    tls = tls or tls_context()
    return httpx2.AsyncClient(transport=AiohttpTransport(tls, idle_seconds=idle_seconds), timeout=None)


async def say_hi(_: RawRequest, writer: asyncio.StreamWriter) -> None:
    writer.write(response(b"hi"))


async def test_the_next_request_goes_on_the_same_connection() -> None:
    async with raw_server(say_hi) as server, client() as http:
        for _ in range(3):
            assert (await http.post(server.base_url, content=b"hello")).text == "hi"
    assert [(each.connection, each.body) for each in server.requests] == [(1, b"hello")] * 3


async def test_a_connection_that_was_idle_for_too_long_is_not_used_again() -> None:
    async with raw_server(say_hi) as server, client(idle_seconds=-1.0) as http:
        for _ in range(2):
            await http.get(server.base_url)
    assert [each.connection for each in server.requests] == [1, 2]


async def test_a_connection_that_its_server_has_closed_is_not_used_again() -> None:
    is_closed = asyncio.Event()

    async def answer_and_close(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(response(b"hi"))
        writer.close()
        await writer.wait_closed()
        is_closed.set()

    async with raw_server(answer_and_close) as server, client() as http:
        for _ in range(3):
            assert (await http.get(server.base_url)).text == "hi"
            await is_closed.wait()
            is_closed.clear()
    assert [each.connection for each in server.requests] == [1, 2, 3]


async def test_a_connection_on_which_somebody_says_what_nobody_asked_for_is_not_used_again() -> None:
    may_speak, has_spoken = asyncio.Event(), asyncio.Event()

    async def answer_twice(request: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(response(b"hi"))
        if request.connection == 1:
            await may_speak.wait()
            writer.write(response(b"of another"))
            await writer.drain()
            has_spoken.set()

    async with raw_server(answer_twice) as server, client() as http:
        assert (await http.get(server.base_url)).text == "hi"
        may_speak.set()
        await has_spoken.wait()
        assert (await http.get(server.base_url)).text == "hi"
    assert [each.connection for each in server.requests] == [1, 2]


async def test_an_answer_that_is_not_read_to_its_end_takes_its_connection_along() -> None:
    async def say_half(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(response(b"hi")[:-1])

    async with raw_server(say_half) as server, client() as http:
        for _ in range(2):
            async with http.stream("GET", server.base_url):
                pass
    assert [each.connection for each in server.requests] == [1, 2]


async def test_an_answer_without_a_length_ends_with_its_connection() -> None:
    async def speak(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\nHTTP/1.1 200 OK\r\n\r\nhi")
        writer.close()

    async with raw_server(speak) as server, client() as http:
        assert (await http.get(server.base_url)).text == "hi"


async def test_a_refusal_is_read_though_the_server_did_not_hear_all() -> None:
    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(response(b"too long", status="413 Content Too Large"))
        await writer.drain()
        writer.close()

    async def long() -> AsyncIterator[bytes]:
        for _ in range(200):
            yield b"x" * 100_000

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server, client() as http:
        port = server.sockets[0].getsockname()[1]
        assert (await http.post(f"http://127.0.0.1:{port}", content=long())).status_code == 413


@pytest.mark.parametrize(
    "says", [b"", response(b"too long", status="413 Content Too Large")], ids=["cancelled", "refused"]
)
async def test_a_request_that_its_server_does_not_take_ends_with_whoever_asks(says: bytes) -> None:
    is_asked, has_given_up = asyncio.Event(), asyncio.Event()
    taken: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def take_late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(says)
        is_asked.set()
        await has_given_up.wait()
        size = 0
        with contextlib.suppress(ConnectionError):
            while piece := await reader.read(1_000_000):
                size += len(piece)
        taken.set_result(size)
        writer.close()

    async with await asyncio.start_server(take_late, "127.0.0.1", 0) as server, client() as http:
        port = server.sockets[0].getsockname()[1]
        asking = asyncio.create_task(http.post(f"http://127.0.0.1:{port}", content=b"x" * 30_000_000))
        await is_asked.wait()
        if says:
            assert (await asking).status_code == 413
        asking.cancel()
        await asyncio.wait([asking])
        has_given_up.set()
        assert await taken < 30_000_000


async def test_a_long_answer_is_taken_in_as_it_is_read() -> None:
    sent = 0

    async def speak(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 100000000\r\n\r\n")
        for sent in range(1, 1_001):  # noqa: B007 - looked at below
            writer.write(b"x" * 100_000)
            await writer.drain()

    async with raw_server(speak) as server, client() as http:
        size = 0
        async with http.stream("GET", server.base_url) as answer:
            for _ in range(2_000):
                await asyncio.sleep(0)
            assert sent < 500, "nobody has read any of it"
            async for piece in answer.aiter_bytes():
                size += len(piece)
    assert size == 100_000_000


@pytest.mark.parametrize(
    ("says", "error"),
    [
        (b"", httpx2.RemoteProtocolError),
        (b"nonsense\r\n\r\n", httpx2.RemoteProtocolError),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhi", httpx2.RemoteProtocolError),
        (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n", httpx2.RemoteProtocolError),
    ],
)
async def test_what_is_no_answer_is_an_error_of_the_server(says: bytes, error: type[Exception]) -> None:
    async def speak(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(says)
        writer.close()

    async with raw_server(speak) as server, client() as http:
        with pytest.raises(error):
            await http.get(server.base_url)


@pytest.mark.parametrize(
    "says", [b"<html>bad gateway</html>\r\n", b"zz\r\n", b"HTTP/1.1 502 Bad Gateway\r\n\r\n", b"2\r\nhiX"]
)
async def test_a_stream_that_goes_on_with_what_is_no_http_fails_at_once_with_what_was_read_before(says: bytes) -> None:
    """The server keeps the connection open, and no limit is set: nothing else would end it."""
    has_read, is_over = asyncio.Event(), asyncio.Event()

    async def break_off(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n" + chunk(b"hello"))
        await has_read.wait()
        writer.write(says)
        await is_over.wait()

    pieces = []

    async def read_on(answer: httpx2.Response) -> None:
        async for piece in answer.aiter_bytes():
            pieces.append(piece)
            has_read.set()

    async with raw_server(break_off) as server, client() as http, http.stream("GET", server.base_url) as answer:
        with pytest.raises(httpx2.RemoteProtocolError):
            await read_on(answer)
        is_over.set()
    assert pieces[0] == b"hello"


async def test_a_connection_that_is_cut_is_an_error_of_the_network() -> None:
    async def cut(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhi")
        await writer.drain()
        writer.transport.abort()

    async with raw_server(cut) as server, client() as http:
        with pytest.raises(httpx2.TransportError):
            await http.get(server.base_url)


async def test_what_cannot_be_said_by_http_is_not_sent() -> None:
    async with raw_server(say_hi) as server, client() as http:
        with pytest.raises(httpx2.LocalProtocolError):
            await http.get(server.base_url, headers={"x-name": "a\r\nx-other: b"})
    assert not server.requests


async def test_each_request_waits_as_long_as_it_may() -> None:
    async def say_nothing(_: RawRequest, __: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    async with raw_server(say_nothing) as server, client() as http:
        with pytest.raises(httpx2.ReadTimeout):
            await http.get(server.base_url, timeout=httpx2.Timeout(None, read=0.01))


async def test_nobody_at_an_address_is_an_error_of_the_connection() -> None:
    async with client() as http:
        with pytest.raises(httpx2.ConnectError):
            await http.get("http://127.0.0.1:1/")


async def test_a_server_has_to_prove_its_name(tmp_path: Path) -> None:
    server_side, client_side = certificate_for("localhost", tmp_path)
    async with raw_server(say_hi, server_side) as server, client(client_side) as http:
        for _ in range(2):
            assert (await http.get(f"https://localhost:{server.port}/")).text == "hi"
        with pytest.raises(httpx2.ConnectError, match="certificate"):
            await http.get(f"https://127.0.0.1:{server.port}/")
    assert [each.connection for each in server.requests] == [1, 1]


async def test_long_headers_of_an_answer_are_read() -> None:
    async def speak(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nx-long: " + b"x" * 50_000 + b"\r\n\r\nhi")

    async with raw_server(speak) as server, client() as http:
        assert len((await http.get(server.base_url)).headers["x-long"]) == 50_000


async def test_a_body_has_one_length_whatever_is_said_of_it() -> None:
    async with raw_server(say_hi) as server, client() as http:
        said = {"transfer-encoding": "chunked", "content-length": "5"}
        await http.send(httpx2.Request("POST", server.base_url, headers=said, stream=httpx2.ByteStream(b"hello")))
    (request,) = server.requests
    assert request.body == b"hello"
    assert {name.lower() for name in request.headers} & {"content-length", "transfer-encoding"} == {"content-length"}


async def test_a_request_says_of_itself_what_its_client_says_and_no_more() -> None:
    async with raw_server(say_hi) as server, client() as http:
        await http.post(server.base_url, content=b"{}", headers={"user-agent": "mine"})
    (request,) = server.requests
    names = {name.lower(): value for name, value in request.headers.items()}
    assert names["user-agent"] == "mine"
    assert "content-type" not in names


@pytest.mark.parametrize(
    "headers",
    [
        ("content-length: 2", "content-length: 2"),
        ("content-length: 2", "transfer-encoding: chunked"),
        ("content-length: 2", *(f"x-{number}: y" for number in range(200))),
    ],
    ids=["two lengths", "length and chunks", "many"],
)
async def test_an_answer_that_httpx_alone_understands_is_asked_for_once_more_and_understood_from_then_on(
    headers: tuple[str, ...],
) -> None:
    async def speak(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        body = chunk(b"hi") + chunk(b"") if "transfer-encoding: chunked" in headers else b"hi"
        writer.write("\r\n".join(["HTTP/1.1 200 OK", *headers, "", ""]).encode() + body)

    async with raw_server(speak) as server, client() as http:
        for _ in range(3):
            assert (await http.post(server.base_url, content=b"hello")).text == "hi"
    assert [(each.connection, each.body) for each in server.requests] == [(1, b"hello"), *[(2, b"hello")] * 3]


async def test_an_answer_may_name_its_status_in_any_encoding() -> None:
    async def speak(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write("HTTP/1.1 200 Schön\r\ncontent-length: 2\r\n\r\nhi".encode("latin-1"))

    async with raw_server(speak) as server, client() as http:
        for _ in range(2):
            answer = await http.post(server.base_url, content=b"hello")
            assert (answer.text, answer.reason_phrase) == ("hi", "Schn")
    assert [each.connection for each in server.requests] == [1, 1]


async def test_what_nobody_understands_is_asked_for_no_more_than_twice() -> None:
    async def speak(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(b"nonsense\r\n\r\n")

    async with raw_server(speak) as server, client() as http:
        for asked in (2, 3, 4):
            with pytest.raises(httpx2.RemoteProtocolError):
                await http.post(server.base_url, content=b"hello")
            assert len(server.requests) == asked


@pytest.mark.parametrize("path", ["/a%2Fb", "/a+b", "/a%20b", "/%7Eann", "/a?b=%2F&c=+&d=%e4", "/[a]|b"])
async def test_an_address_is_written_as_its_client_writes_it(path: str) -> None:
    async with raw_server(say_hi) as server, client() as http:
        await http.get(f"http://127.0.0.1:{server.port}{path}")
    assert server.requests[0].line == f"GET {path} HTTP/1.1"


async def test_an_address_that_aiohttp_refuses_is_asked() -> None:
    async with raw_server(say_hi) as server, client() as http:
        assert (await http.get(f"http://127.1:{server.port}/")).text == "hi"
    assert len(server.requests) == 1


@pytest.mark.parametrize("is_reset", [False, True])
async def test_a_request_that_meets_a_connection_which_its_server_no_longer_wants_is_sent_once_more(
    is_reset: bool,
) -> None:
    seen: list[int] = []

    async def answer_once_on_each(request: RawRequest, writer: asyncio.StreamWriter) -> None:
        seen.append(request.connection)
        if seen.count(request.connection) == 1:
            writer.write(response(b"hi", "Keep-Alive: timeout=5, max=100"))
        elif is_reset:
            writer.transport.abort()
        else:
            writer.close()  # as llama.cpp does after a stream, whatever it says

    async with raw_server(answer_once_on_each) as server, client() as http:
        for _ in range(3):
            assert (await http.post(server.base_url, content=b"hello")).text == "hi"
    assert seen == [1, 1, 2, 2, 3]


async def test_a_request_is_sent_once_on_a_new_connection_and_twice_at_most() -> None:
    seen: list[int] = []

    async def answer_the_first(request: RawRequest, writer: asyncio.StreamWriter) -> None:
        seen.append(request.connection)
        if len(seen) == 1:
            writer.write(response(b"hi"))
        else:
            writer.close()

    async with raw_server(answer_the_first) as server, client() as http:
        await http.post(server.base_url, content=b"hello")
        for _ in range(2):
            with pytest.raises(httpx2.RemoteProtocolError):
                await http.post(server.base_url, content=b"hello")
    assert seen == [1, 1, 2, 3]


def test_aiohttp_still_has_the_private_members_that_the_connector_overrides() -> None:
    connector = inspect.getsource(aiohttp.connector)
    assert [
        each for each in ("_factory", "_get", "_loop", "_release", "_close") if f"self.{each}" not in connector
    ] == []
    assert "self._payload" in inspect.getsource(ResponseHandler)
