"""The way to a model's server: what goes with a request, and what happens to connections, redirects and proxies."""

import asyncio
import gc
import gzip
import json
import logging
import subprocess
import sys
import zlib
from base64 import b64encode

import pytest
from standins.openai_api import OpenAIApi
from standins.raw_http import RawRequest, RawServer, begun, chunk, raw_server, response

from botservice import InvalidArgument, LLMError, OpenAIChatLLM
from botservice.llm.openai.catalogue import read_catalogue

HELLO = [{"role": "user", "content": "hello"}]
KEY = "sk-test-key-that-nobody-may-see"
ENDED = b"data: [DONE]\n\n"
COMPLETED = {"type": "response.completed", "response": {"status": "completed", "output": []}}
# The client comes later than an answer may; there is no server.
_SLOW_LOADING = """
import asyncio, sys, threading
from botservice import LLMError, OpenAIChatLLM

may_end = threading.Event()

class Slow:
    def find_spec(self, name, path, target=None):
        if name == "openai":
            may_end.wait(5)

async def ask():
    asyncio.get_running_loop().call_later(0.6, may_end.set)
    try:
        await OpenAIChatLLM("m", base_url="http://127.0.0.1:9/v1", timeout_seconds=0.5).chat([])
    except LLMError as error:
        print(error)
    finally:
        may_end.set()

sys.meta_path.insert(0, Slow())
asyncio.run(ask())
"""


def said(text: str, reason: str | None = "stop") -> bytes:
    """Return a piece of an answer by chat.completions."""
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": reason}
    return b"data: %s\n\n" % json.dumps({"choices": [choice]}).encode()


def by_responses(text: str) -> bytes:
    """Return an answer by Responses."""
    delta = {"type": "response.output_text.delta", "item_id": "m", "delta": text}
    return b"".join(b"data: %s\n\n" % json.dumps(event).encode() for event in (delta, COMPLETED))


def model(base_url: str, api: str = "chat") -> OpenAIChatLLM:
    return OpenAIChatLLM("m", base_url=base_url, api_key=KEY, api=api)


async def greet(_: RawRequest, writer: asyncio.StreamWriter) -> None:
    writer.write(response(said("hi") + ENDED))


async def ask(base_url: str, api: str = "chat") -> str:
    """Return what a server answers to a person who asks once."""
    llm = model(base_url, api)
    try:
        return (await llm.chat(HELLO)).text
    finally:
        await llm.close()


async def test_a_request_says_who_asks_and_what_the_environment_says_of_the_account(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj-1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Route: a:b\nnonsense\nUser-Agent: mine\nCookie: a=b")
    async with raw_server(greet) as server:
        assert await ask(server.base_url) == "hi"
    (asked,) = server.requests
    assert asked.line == "POST /v1/chat/completions HTTP/1.1"
    sent = {"authorization": f"Bearer {KEY}", "openai-organization": "org-1", "openai-project": "proj-1"}
    sent |= {"x-route": "a:b", "user-agent": "mine", "cookie": "a=b", "content-type": "application/json"}
    assert sent.items() <= asked.headers.items()
    assert not [name for name in asked.headers if name.lower().startswith("x-stainless-")]
    assert json.loads(asked.body)["messages"] == HELLO


@pytest.mark.slow
def test_the_time_that_loading_takes_is_no_silence_of_the_server() -> None:
    done = subprocess.run([sys.executable, "-c", _SLOW_LOADING], capture_output=True, text=True, check=True)
    assert "cannot be reached" in done.stdout


async def test_a_name_and_a_password_in_the_address_go_in_the_place_of_the_key() -> None:
    async with raw_server(greet) as server:
        await ask(server.base_url.replace("//", "//ann:secret%20word@"))
    assert server.requests[0].headers["authorization"] == "Basic " + b64encode(b"ann:secret word").decode()
    assert server.requests[0].headers["host"] == f"127.0.0.1:{server.port}"


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_calls_one_after_the_other_share_a_connection(api: str) -> None:
    async def answer(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(begun())
        writer.write(chunk(said("hi") + ENDED if api == "chat" else by_responses("hi")))
        await writer.drain()
        await asyncio.sleep(0)  # the end of the stream comes by itself
        writer.write(chunk(b""))

    async with raw_server(answer) as server:
        llm = model(server.base_url, api)
        for _ in range(3):
            assert (await llm.chat(HELLO)).text == "hi"
        await llm.close()
    assert [request.connection for request in server.requests] == [1, 1, 1]


async def test_calls_at_once_use_the_connections_of_earlier_ones_again() -> None:
    arrived = asyncio.Barrier(3)

    async def answer(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        await arrived.wait()
        writer.write(response(said("hi") + ENDED))

    async with raw_server(answer) as server:
        llm = model(server.base_url)
        for _ in range(3):
            await asyncio.gather(*(llm.chat(HELLO) for _ in range(3)))
        await llm.close()
    assert sorted(request.connection for request in server.requests) == [1, 1, 1, 2, 2, 2, 3, 3, 3]


def test_connections_that_nobody_closes_end_with_their_event_loop() -> None:
    async def chat(llm: OpenAIChatLLM) -> str:
        return (await llm.chat(HELLO)).text

    with OpenAIApi.running() as api:
        for _ in range(2):
            assert asyncio.run(chat(model(api.base_url)))
        gc.collect()  # what is open would be complained about here


async def test_connections_end_with_the_model_that_nobody_has_any_more() -> None:
    asked_by = []

    async def answer(request: RawRequest, writer: asyncio.StreamWriter) -> None:
        asked_by.append(writer)
        await greet(request, writer)

    async with raw_server(answer) as server:
        await model(server.base_url).chat(HELLO)
        gc.collect()
        await asked_by[0].wait_closed()


async def test_a_call_that_is_under_way_ends_where_its_client_is_closed() -> None:
    has_come, may_end = asyncio.Event(), asyncio.Event()

    async def answer(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        has_come.set()
        await may_end.wait()
        writer.write(response(said("hi") + ENDED))

    async with raw_server(answer) as server:
        llm = model(server.base_url)
        call = asyncio.create_task(llm.chat(HELLO))
        await has_come.wait()
        await llm.close()
        may_end.set()
        assert (await call).text == "hi"


@pytest.mark.parametrize("api", ["chat", "responses"])
@pytest.mark.parametrize("how", ["cut", "silence", "more", "more without end"])
async def test_an_answer_that_is_whole_counts_whatever_becomes_of_its_connection(api: str, how: str) -> None:
    async def answer(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(begun())
        writer.write(chunk(said("hi") + ENDED if api == "chat" else by_responses("hi")))
        if how == "cut":
            writer.close()
        elif how == "more":
            writer.write(chunk(b"data: no JSON\n\n"))
        while how == "more without end":
            writer.write(chunk(b"data: {}\n\n"))
            await writer.drain()
            await asyncio.sleep(0.01)

    async with raw_server(answer) as server:
        assert await ask(server.base_url, api) == "hi"


async def test_a_piece_is_heard_before_the_next_is_sent() -> None:
    is_heard = asyncio.Event()

    async def answer(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(begun() + chunk(said("one ", None)))
        await is_heard.wait()
        writer.write(chunk(said("two") + ENDED) + chunk(b""))

    async with raw_server(answer) as server:
        llm = model(server.base_url)
        assert (await llm.chat(HELLO, on_text=lambda _: is_heard.set())).text == "one two"
        await llm.close()


async def test_comments_are_signs_of_life_but_not_for_ever() -> None:
    async def answer(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(begun())
        while True:
            writer.write(chunk(b": still here\n\n"))
            await writer.drain()
            await asyncio.sleep(0.01)

    async with raw_server(answer) as server:
        llm = model(server.base_url)
        llm.timeout_seconds = 0.3
        with pytest.raises(LLMError, match=r"nothing for 0\.3 seconds"):
            await llm.chat(HELLO)
        await llm.close()


async def test_what_was_said_before_nonsense_is_heard() -> None:
    async def answer(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(response(said("one ", None) + said("two ", None) + b"data: {no JSON\n\n"))

    heard: list[str] = []
    async with raw_server(answer) as server:
        llm = model(server.base_url)
        with pytest.raises(LLMError, match="could not be read"):
            await llm.chat(HELLO, on_text=heard.append)
        await llm.close()
    assert heard == ["one ", "two "]


async def test_nonsense_in_the_place_of_an_answer_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def answer(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(response(b"[1", kind="application/json"))

    async with raw_server(answer) as server:
        with pytest.raises(LLMError, match="could not be read"):
            await ask(server.base_url)
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == ["model.unreadable"]


@pytest.mark.parametrize("error", [{"code": "server_error"}, "overloaded", {"code": "context_length_exceeded"}])
async def test_an_error_in_a_stream_of_either_wire_is_one(error: object) -> None:
    async def answer(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(response(b"data: %s\n\n" % json.dumps({"error": error}).encode()))

    async with raw_server(answer) as server:
        for api in ("chat", "responses"):
            with pytest.raises(LLMError, match=r"reported an error while it answered|context window"):
                await ask(server.base_url, api)


async def test_a_compressed_stream_is_read() -> None:
    async def answer(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(response(gzip.compress(said("hi") + ENDED), "content-encoding: gzip"))

    async with raw_server(answer) as server:
        assert await ask(server.base_url) == "hi"


async def test_an_answer_that_has_no_end_once_it_is_unpacked_is_not_read_on() -> None:
    packing = zlib.compressobj(wbits=31)
    beginning = packing.compress(b"[") + packing.flush(zlib.Z_FULL_FLUSH)
    megabytes = packing.compress(b" " * 8_000_000) + packing.flush(zlib.Z_FULL_FLUSH)

    async def answer(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-encoding: gzip\r\n\r\n" + beginning)
        while True:
            writer.write(megabytes)
            await writer.drain()

    async with raw_server(answer) as server:
        with pytest.raises(LLMError, match="says more than"):
            await ask(server.base_url)


async def test_an_answer_that_is_whole_counts_however_much_comes_after_it() -> None:
    packed = gzip.compress(said("hi") + ENDED + bytes(130 * 1024 * 1024), compresslevel=1)

    async def answer(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(response(packed, "content-encoding: gzip"))

    async with raw_server(answer) as server:
        assert await ask(server.base_url) == "hi"


async def test_a_prompt_of_many_megabytes_arrives_whole() -> None:
    picture = "x" * 3_000_000
    async with raw_server(greet) as server:
        llm = model(server.base_url)
        assert (await llm.chat([{"role": "user", "content": picture}])).text == "hi"
        await llm.close()
    assert json.loads(server.requests[0].body)["messages"][0]["content"] == picture


async def test_headers_may_be_as_long_as_proxies_make_them() -> None:
    async def answer(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(response(said("hi") + ENDED, "x-policy: " + "x" * 50_000))

    async with raw_server(answer) as server:
        assert await ask(server.base_url) == "hi"


async def test_a_server_that_says_its_length_twice_is_asked_once_more_by_the_first_call_alone() -> None:
    async def answer(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        body = said("hi") + ENDED
        writer.write(response(body, f"content-length: {len(body)}"))

    async with raw_server(answer) as server:
        llm = model(server.base_url)
        assert (await llm.chat(HELLO)).text == "hi"
        await asyncio.gather(*(llm.chat(HELLO) for _ in range(3)))
        await llm.close()
    assert len(server.requests) == 2 + 3


async def test_a_server_that_is_gone_after_an_odd_answer_is_named() -> None:
    async def answer(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        body = said("hi") + ENDED
        writer.write(response(body, f"content-length: {len(body)}", "connection: close"))
        writer.close()

    async with raw_server(answer) as server:
        llm = model(server.base_url)
        assert (await llm.chat(HELLO)).text == "hi"
    with pytest.raises(LLMError, match=r"server \(127\.0\.0\.1\) cannot be reached"):
        await llm.chat(HELLO)
    await llm.close()


async def test_a_cookie_goes_with_the_next_request() -> None:
    async def answer(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(response(said("hi") + ENDED, "set-cookie: route=a; Path=/"))

    async with raw_server(answer) as server:
        llm = model(server.base_url)
        for _ in range(2):
            assert (await llm.chat(HELLO)).text == "hi"
        await llm.close()
    assert [request.headers.get("cookie") for request in server.requests] == [None, "route=a"]


async def test_a_redirect_is_followed_with_the_prompt_and_the_key_stays_with_its_server() -> None:
    def to(server: RawServer, path: str) -> bytes:
        place = f"location: http://127.0.0.1:{server.port}{path}"
        return response(b"", place, status="307 Temporary Redirect")

    async def moved(request: RawRequest, writer: asyncio.StreamWriter) -> None:
        is_first = request.line.split()[1] == "/v1/chat/completions"
        writer.write(to(here, "/v2/chat/completions") if is_first else to(elsewhere, "/v1/chat/completions"))

    async with raw_server(greet) as elsewhere, raw_server(moved) as here:
        assert await ask(here.base_url) == "hi"
    assert [request.headers.get("authorization") for request in here.requests] == [f"Bearer {KEY}"] * 2
    assert [request.headers.get("authorization") for request in elsewhere.requests] == [None]
    assert len({request.body for request in (*here.requests, *elsewhere.requests)}) == 1


async def test_a_redirect_says_nothing_of_who_asks() -> None:
    async def moved(request: RawRequest, writer: asyncio.StreamWriter) -> None:
        place = f"location: http://ann:secret@127.0.0.1:{server.port}/moved"
        if request.line.split()[1] == "/moved":
            await greet(request, writer)
        else:
            writer.write(response(b"", place, status="308 Permanent Redirect"))

    async with raw_server(moved) as server:
        assert await ask(server.base_url) == "hi"
    assert {request.headers.get("authorization") for request in server.requests} == {f"Bearer {KEY}"}


async def test_a_server_that_a_redirect_names_is_the_one_that_cannot_be_reached() -> None:
    async def moved(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(response(b"", "location: http://localhost:1/v1", status="307 Temporary Redirect"))

    async with raw_server(moved) as server:
        with pytest.raises(LLMError, match=r"server \(localhost\) cannot be reached"):
            await ask(server.base_url)


async def test_redirects_without_end_are_no_way_to_the_server() -> None:
    async def moved(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        writer.write(response(b"", "location: /v1/chat/completions", status="307 Temporary Redirect"))

    async with raw_server(moved) as server:
        with pytest.raises(LLMError, match="cannot be reached"):
            await ask(server.base_url)


@pytest.mark.parametrize("variable", ["HTTP_PROXY", "http_proxy", "ALL_PROXY"])
async def test_a_proxy_that_the_environment_names_is_asked(monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    async with raw_server(greet) as proxy:
        monkeypatch.setenv(variable, f"http://ann:secret@127.0.0.1:{proxy.port}")
        assert await ask("http://models.example/v1") == "hi"
        assert await ask("http://models.example/v1") == "hi"
    asked = proxy.requests[0]
    assert asked.line == "POST http://models.example/v1/chat/completions HTTP/1.1"
    assert asked.headers["proxy-authorization"] == "Basic " + b64encode(b"ann:secret").decode()
    assert asked.headers["authorization"] == f"Bearer {KEY}"


async def test_a_server_that_needs_no_proxy_is_asked_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    async with raw_server(greet) as server:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        assert await ask(server.base_url) == "hi"


async def test_a_proxy_is_found_without_its_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    async with raw_server(greet) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"127.0.0.1:{proxy.port}")
        assert await ask("http://models.example/v1") == "hi"


@pytest.mark.parametrize("begin", ["", "http://", "http://ann:secret@"])
async def test_a_proxy_that_cannot_be_reached_is_named_without_its_password(
    monkeypatch: pytest.MonkeyPatch, begin: str
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"{begin}127.0.0.1:1")
    with pytest.raises(
        LLMError, match=r"cannot be reached through the proxy 127\.0\.0\.1:1 of the environment"
    ) as told:
        await ask("http://models.example/v1")
    assert "secret" not in str(told.value)


@pytest.mark.parametrize("url", ["http://", "ftp://127.0.0.1/v1", "127.0.0.1/v1", "http://[::1/v1"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(InvalidArgument, match="base_url= is"):
        OpenAIChatLLM("m", base_url=url)


@pytest.mark.slow
async def test_a_script_that_closes_nothing_ends_without_complaints() -> None:
    script = (
        "import asyncio, sys\n"
        "from botservice import OpenAIChatLLM\n"
        "llm = OpenAIChatLLM('m', base_url=sys.argv[1], api='chat')\n"
        "for _ in range(2):\n"
        "    print(asyncio.run(llm.chat([{'role': 'user', 'content': 'hello'}])).text)\n"
    )
    async with raw_server(greet) as server:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", script, server.base_url, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        out, complaints = await process.communicate()
    assert (out.decode().split(), complaints.decode()) == (["hi", "hi"], "")


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_a_query_of_the_base_url_stays_behind_the_path(api: str) -> None:
    asked: list[str] = []

    async def answer(request: RawRequest, writer: asyncio.StreamWriter) -> None:
        asked.append(request.line.split()[1])
        writer.write(response(b'{"error": {"message": "no"}}', kind="application/json"))

    async with raw_server(answer) as server:
        llm = OpenAIChatLLM("m", base_url=f"{server.base_url}/?api-version=2026-10-01&x=1", api_key="none", api=api)
        with pytest.raises(LLMError):
            await llm.chat(HELLO)
        assert await read_catalogue(llm.clients) == {}
        await llm.close()
    path = "/v1/chat/completions" if api == "chat" else "/v1/responses"
    assert asked == [f"{path}?api-version=2026-10-01&x=1", "/v1/models?api-version=2026-10-01&x=1"]
