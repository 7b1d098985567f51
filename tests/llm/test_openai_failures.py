"""Whatever goes wrong with a model's server becomes an LLMError that says what to do and nothing that is secret."""

import asyncio
import logging
import socket
from typing import Any

import httpx2
import openai
import pytest
from standins.openai_api import (
    Ending,
    Failure,
    Gate,
    OpenAIApi,
    Reply,
    context_length_exceeded,
    not_json,
    quota_exceeded,
    rate_limited,
    server_error,
)
from standins.raw_http import RawRequest, raw_server, response

from botservice import ContextOverflow, LLMError, OpenAIChatLLM
from botservice.llm.openai.errors import translate
from botservice.llm.openai.http_client import Connections
from botservice.llm.proxies_and_tls import tls_context

HELLO = [{"role": "user", "content": "hello, my secret is 12345"}]
KEY = "sk-test-key-that-nobody-may-see"


@pytest.mark.parametrize(
    ("failure", "transient", "retry_after", "says"),
    [
        (Failure(401, f"Incorrect API key provided: {KEY}", code="invalid_api_key"), False, None, "OPENAI_API_KEY"),
        (Failure(403, "no"), False, None, "OPENAI_API_KEY"),
        (Failure(404, "no such model", code="model_not_found"), False, None, "'gpt-5.5'"),
        (Failure(400, "my secret is 12345"), False, None, "400"),
        (rate_limited(7), True, 7.0, "rate_limit_exceeded"),
        (Failure(429, "slow down", headers={"Retry-After": "soon"}), True, None, "429"),
        (Failure(429, "slow down", headers={"Retry-After": "-5"}), True, 0.0, "429"),
        (Failure(429, "slow down", headers={"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}), True, 0.0, "429"),
        (Failure(429, "slow down", headers={"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"}), True, 86_400.0, "429"),
        (Failure(429, "slow down", headers={"retry-after-ms": "1500", "Retry-After": "2"}), True, 1.5, "429"),
        (Failure(429, "slow down", headers={"Retry-After": "1" + "0" * 30}), True, 86_400.0, "429"),
        (quota_exceeded(), False, None, "no credit"),
        (server_error(500), True, None, "500"),
        (server_error(503), True, None, "503"),
        (not_json(502), True, None, "502"),
        (Failure(500, "x", code="my secret is 12345"), True, None, "InternalServerError"),
    ],
)
async def test_a_refusal_says_its_status_and_whether_asking_again_helps(
    api: OpenAIApi, llm: OpenAIChatLLM, failure: Failure, transient: bool, retry_after: float | None, says: str
) -> None:
    api.reply = lambda _: failure
    with pytest.raises(LLMError) as caught:
        await llm.chat(HELLO)
    error = caught.value
    assert (error.is_transient, error.retry_after_seconds) == (transient, retry_after)
    assert says in str(error)
    assert KEY not in str(error)
    assert "12345" not in str(error)
    assert len(api.requests()) == 1, "asking again is for the service to decide"


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 409, 418, 422, 429, 499, 500, 503, 529])
async def test_a_refusal_comes_from_the_error_that_the_openai_client_raises(
    api: OpenAIApi, llm: OpenAIChatLLM, status: int
) -> None:
    api.reply = lambda _: Failure(status, "no")
    with pytest.raises(LLMError) as caught:
        await llm.chat(HELLO)
    async with openai.AsyncOpenAI(api_key=KEY, base_url=api.base_url, max_retries=0) as client:
        with pytest.raises(openai.APIStatusError) as as_its_own:
            await client.chat.completions.create(model="m", messages=HELLO)
    ours = caught.value.__cause__
    assert isinstance(ours, openai.APIStatusError)
    assert type(ours) is as_its_own.type
    assert ours.status_code == status
    assert ours.response.json()["error"]["message"] == "no"


@pytest.mark.parametrize(
    "failure",
    [
        context_length_exceeded(),
        Failure(400, "the request exceeds the available context size, try increasing it"),
        Failure(400, "prompt is too long: 209000 tokens > 200000 maximum"),
        Failure(413, "Request too large: please reduce the length of the messages"),
        Failure(422, "The input token count (40000) exceeds the maximum number of tokens allowed"),
    ],
)
async def test_a_prompt_that_is_too_long_is_told_apart(api: OpenAIApi, llm: OpenAIChatLLM, failure: Failure) -> None:
    api.reply = lambda _: failure
    with pytest.raises(ContextOverflow):
        await llm.chat(HELLO)


async def test_nobody_listens_at_the_address() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        llm = OpenAIChatLLM("m", base_url=f"http://127.0.0.1:{taken.getsockname()[1]}/v1")
        with pytest.raises(LLMError, match="OPENAI_BASE_URL") as caught:
            await llm.chat(HELLO)
        assert caught.value.is_transient
        await llm.close()


@pytest.mark.parametrize(
    "reply", [Reply(drop_after=0), Reply(text="Hello, this breaks off", drop_after=2), Reply(text="x", fail_after=1)]
)
async def test_an_answer_that_is_cut_off_is_no_answer(api: OpenAIApi, llm: OpenAIChatLLM, reply: Reply) -> None:
    api.reply = lambda _: reply
    with pytest.raises(LLMError) as caught:
        await llm.chat(HELLO)
    assert caught.value.is_transient


@pytest.mark.parametrize("reply", [Reply(hang=True), Reply(text="Hello, this hangs", hang_after=2)])
async def test_a_server_that_sends_nothing_is_given_up(api: OpenAIApi, reply: Reply) -> None:
    llm = OpenAIChatLLM("m", base_url=api.base_url)
    await llm.chat(HELLO)  # it is connected: what follows is about the silence alone
    llm.timeout_seconds = 0.3
    api.reply = lambda _: reply
    with pytest.raises(LLMError, match=r"nothing for 0\.3 seconds") as caught:
        await llm.chat(HELLO)
    assert caught.value.is_transient
    assert (await api.end(api.requests()[1].seq)).ending is Ending.ABORTED
    await llm.close()


async def test_a_server_that_keeps_sending_may_take_longer_than_its_limit(api: OpenAIApi) -> None:
    llm = OpenAIChatLLM("m", base_url=api.base_url)
    await llm.chat(HELLO)
    llm.timeout_seconds = 1.5
    api.reply = lambda _: Reply(pieces=list("a long story, told"), chunk_delay=0.1)  # 1.8 seconds and more
    assert (await llm.chat(HELLO)).text == "a long story, told"
    await llm.close()


@pytest.mark.parametrize(
    ("model", "options", "says"),
    [
        ("gpt-6-astra", {"reasoning_effort": "none"}, "does not take this OPENAI_REASONING_EFFORT: unset it"),
        ("gpt-5.6", {"api": "chat"}, "OPENAI_API=responses"),
        ("gpt-4-turbo", {}, "OPENAI_MODEL, OPENAI_FALLBACK_MODELS"),
    ],
)
async def test_a_setting_that_a_model_does_not_take_is_named_with_what_to_do(
    api: OpenAIApi, model: str, options: dict[str, str], says: str
) -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": {"type": "object", "properties": {}}}}
    llm = OpenAIChatLLM(model, base_url=api.base_url, api_key=KEY, **options)
    with pytest.raises(LLMError, match=says):
        await llm.chat(HELLO, [tool])
    await llm.close()


async def test_idle_connections_are_let_go_before_servers_do(llm: OpenAIChatLLM) -> None:
    pool = (await llm.clients._connections())._http._transport._pool
    assert pool._keepalive_expiry <= 3, "uvicorn and Node close theirs after 5 s, maybe while a call is on its way"
    assert pool._max_connections >= 4096, "MAX_TURNS may be that many"


async def test_a_page_of_a_broken_proxy_is_no_answer(api: OpenAIApi, llm: OpenAIChatLLM) -> None:
    api.reply = lambda _: not_json(200)
    with pytest.raises(LLMError):
        await llm.chat(HELLO)


async def test_nonsense_is_logged_and_no_answer(
    api: OpenAIApi, llm: OpenAIChatLLM, caplog: pytest.LogCaptureFixture
) -> None:
    def respond(_: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "application/json"}, content=b"[1")

    llm._clients._of_loop[asyncio.get_running_loop()] = Connections(
        httpx2.AsyncClient(transport=httpx2.MockTransport(respond)), api_key="x", base_url=llm.base_url
    )
    with pytest.raises(LLMError, match="could not be read"):
        await llm.chat(HELLO)
    assert [record.message for record in caplog.records if record.levelno >= logging.WARNING] == ["model.unreadable"]


async def test_a_listener_that_fails_is_seen(llm: OpenAIChatLLM, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_: str) -> None:
        raise RuntimeError("broken page")

    with pytest.raises(LLMError):
        await llm.chat(HELLO, on_text=fail)
    assert "broken page" in caplog.text


@pytest.mark.parametrize("status", [400, 422])
async def test_an_older_server_is_asked_without_stream_options(api: OpenAIApi, llm: OpenAIChatLLM, status: int) -> None:
    def reply(body: dict[str, Any]) -> Reply | Failure:
        refused = Failure(status, "Unrecognized request argument supplied: stream_options")
        return refused if "stream_options" in body else Reply(text="hi")

    api.reply = reply
    both = await asyncio.gather(llm.chat(HELLO), llm.chat(HELLO))
    assert [each.text for each in both] == ["hi", "hi"]
    asked = len(api.requests())
    assert (await llm.chat(HELLO)).usage is None
    assert len(api.requests()) == asked + 1, "it is remembered"


async def test_a_call_that_is_cancelled_ends_at_the_server(api: OpenAIApi, llm: OpenAIChatLLM) -> None:
    gate = Gate()
    api.reply = lambda _: Reply(text="a long answer, in many pieces", chunk_wait=gate, wait_at=2)
    arrived = asyncio.Event()
    call = asyncio.create_task(llm.chat(HELLO, on_text=lambda _: arrived.set()))
    async with asyncio.timeout(60):
        await arrived.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (await api.end(api.requests()[0].seq)).ending is Ending.ABORTED
    gate.open()


def _all_errors(kind: type[BaseException]) -> list[type[BaseException]]:
    return [kind, *(each for sub in kind.__subclasses__() for each in _all_errors(sub))]


@pytest.mark.parametrize("kind", _all_errors(openai.OpenAIError))
def test_every_error_of_the_client_is_translated(kind: type[openai.OpenAIError]) -> None:
    request = httpx2.Request("POST", "http://127.0.0.1/v1/chat/completions")
    status = getattr(kind, "status_code", None) or (500 if kind is openai.InternalServerError else 418)
    error: Any = kind.__new__(kind)
    error.args = ("my secret is 12345",)
    error.response = httpx2.Response(int(status), request=request)
    error.request, error.code, error.status_code = request, None, int(status)
    translated = translate(error, "gpt-5.5")
    assert isinstance(translated, LLMError)
    assert "12345" not in str(translated)
    assert ("the openai client failed" in str(translated)) == (not issubclass(kind, openai.APIError))
    if issubclass(kind, openai.APIStatusError):
        assert str(status) in str(translated)
        assert translated.is_transient == (int(status) in (409, 429) or int(status) >= 500)


@pytest.mark.parametrize("headers", [["content-length: 900"], ["content-encoding: gzip", "content-length: 9"]])
@pytest.mark.parametrize("status", ["401 Unauthorized", "429 Too Many Requests"])
async def test_a_refusal_of_which_nobody_can_read_the_rest_keeps_its_status(headers: list[str], status: str) -> None:
    async def refuse(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        head = [f"HTTP/1.1 {status}", "content-type: application/json", "retry-after: 7", *headers, "", "no reason"]
        writer.write("\r\n".join(head).encode())
        writer.close()

    async with raw_server(refuse) as server:
        llm = OpenAIChatLLM("m", base_url=server.base_url, api_key="none")
        with pytest.raises(LLMError) as caught:
            await llm.chat(HELLO)
        await llm.close()
    assert (caught.value.status_code, caught.value.retry_after_seconds) == (int(status[:3]), 7.0)
    assert caught.value.is_transient is status.startswith("429")


async def test_a_cookie_that_no_header_can_hold_spoils_no_later_call() -> None:
    async def answer(_: RawRequest, writer: asyncio.StreamWriter) -> None:
        said = b'data: {"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
        writer.write(response(said, "Set-Cookie: lb=\u00e9"))

    async with raw_server(answer) as server:
        llm = OpenAIChatLLM("m", base_url=server.base_url, api_key="none")
        assert [(await llm.chat(HELLO)).text for _ in range(3)] == ["hi"] * 3
        await llm.close()


async def test_headers_of_one_s_own_count_whichever_case_they_are_in(
    api: OpenAIApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "authorization: Basic Zm9v")
    llm = OpenAIChatLLM("gpt-5.5", base_url=api.base_url, api_key="none")
    await llm.chat(HELLO)
    await llm.close()
    assert api.requests()[-1].headers["authorization"] == "Basic Zm9v"


async def test_a_proxy_that_models_cannot_be_asked_by_is_named_and_holds_up_no_server_that_needs_none(
    api: OpenAIApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks5://ann:secret@127.0.0.1:9")
    llm = OpenAIChatLLM("gpt-5.5", base_url=api.base_url, api_key="none")
    with pytest.raises(LLMError, match="ALL_PROXY") as caught:
        await llm.chat(HELLO)
    assert not caught.value.is_transient
    assert "secret" not in str(caught.value)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert (await llm.chat(HELLO)).text
    await llm.close()


async def test_a_file_of_authorities_that_cannot_be_read_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such/file.pem")
    tls_context.cache_clear()
    llm = OpenAIChatLLM("m", base_url="https://127.0.0.1:9/v1", api_key="none")
    try:
        with pytest.raises(LLMError, match=r"SSL_CERT_FILE=/no/such/file\.pem") as caught:
            await llm.chat(HELLO)
    finally:
        tls_context.cache_clear()
        await llm.close()
    assert not caught.value.is_transient
