"""How a server is spoken to: chosen by its address, changed by what it says, within the same call."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest
from standins.openai_api import CHAT, RESPONSES, Failure, OpenAIApi, Reply, ToolUse

from botservice import LLMError, LLMFailure, OpenAIChatLLM
from botservice.llm.openai.http_client import Connections

HELLO = [{"role": "user", "content": "hello"}]
ADD: dict[str, Any] = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
Make = Callable[..., OpenAIChatLLM]
TODAY = ["gpt-5.4", "gpt-5.5", "gpt-5.6", "gpt-6-luna", "gpt-6-astra", "gpt-6.1-terra", "gpt-6.1-sol", "gpt-6.2-astra"]


@pytest.fixture
async def make(api: OpenAIApi) -> AsyncIterator[Make]:
    made: list[OpenAIChatLLM] = []

    def make(model: str = "gpt-6.1-terra", **options: Any) -> OpenAIChatLLM:
        made.append(OpenAIChatLLM(model, **{"base_url": api.base_url, "api_key": "sk-test"} | options))
        return made[-1]

    yield make
    for each in made:
        await each.close()


def paths(api: OpenAIApi) -> list[tuple[str, int]]:
    return [
        (ended.path.removeprefix("/v1/"), ended.status)
        for path in (CHAT, RESPONSES)
        for ended in api.endings(path=path)
    ]


@pytest.mark.parametrize(
    ("url", "wire"),
    [
        (None, "responses"),
        ("https://api.openai.com/v1", "responses"),
        ("https://eu.api.openai.com/v1", "responses"),
        ("https://api.openai.com.example/v1", "chat"),
        ("http://localhost:11434/v1", "chat"),
        ("https://openrouter.ai/api/v1", "chat"),
    ],
)
def test_openai_is_asked_by_responses_and_others_by_chat(make: Make, url: str | None, wire: str) -> None:
    assert make(base_url=url).api == wire
    assert make(base_url=url, api="chat").api == "chat"
    assert make(base_url=url, api="responses").api == "responses"


@pytest.mark.parametrize("model", TODAY)
@pytest.mark.parametrize("api_setting", ["auto", "responses"])
async def test_every_model_of_today_takes_tools_and_none(
    api: OpenAIApi, make: Make, model: str, api_setting: str
) -> None:
    llm = make(model, api=api_setting)
    assert (await llm.chat(HELLO)).text == "You said: hello"
    api.reply = lambda _: ToolUse("add", {"a": 1}, id="call_1")
    assert (await llm.chat(HELLO, [ADD])).tool_calls[0].name == "add"


async def test_a_refusal_that_points_to_responses_is_followed_at_once_and_remembered(
    api: OpenAIApi, make: Make
) -> None:
    llm = make()
    both = await asyncio.gather(llm.chat(HELLO, [ADD]), llm.chat(HELLO, [ADD]))
    assert [each.text for each in both] == ["You said: hello"] * 2
    asked = len(api.requests(CHAT))
    await llm.chat(HELLO, [ADD])
    await llm.chat(HELLO)
    assert len(api.requests(CHAT)) == asked
    assert llm.api == "responses"


@pytest.mark.parametrize(
    "missing",
    [
        Failure(404, "", raw=b"404 page not found"),
        Failure(404, "File Not Found", type="not_found_error"),
        Failure(405, "Method Not Allowed"),
        None,
    ],
)
async def test_a_server_without_responses_is_asked_by_chat(api: OpenAIApi, make: Make, missing: Failure | None) -> None:
    llm = await _like_openai(make(base_url=None), api)
    if missing is None:
        api.speaks = (CHAT,)
    else:
        api.reply = lambda body: missing if "input" in body else "by chat"
    assert (await llm.chat(HELLO)).text in ("by chat", "You said: hello")
    await llm.chat(HELLO)
    assert paths(api) == [("chat/completions", 200)] * 2 + [
        ("responses", 405 if missing and missing.status == 405 else 404)
    ]


@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (Failure(404, "The model `x` does not exist", code="model_not_found"), LLMFailure.UNKNOWN_MODEL),
        (Failure(404, "The model `x` has been deprecated"), LLMFailure.UNKNOWN_MODEL),
        (Failure(404, "Item with id 'rs_1' not found."), LLMFailure.BAD_REQUEST),
        (Failure(400, "no such parameter"), LLMFailure.BAD_REQUEST),
        (Failure(401, "no", code="invalid_api_key"), LLMFailure.UNAUTHORIZED),
        (Failure(402, "no"), LLMFailure.OUT_OF_QUOTA),
        (Failure(429, "no", code="insufficient_quota"), LLMFailure.OUT_OF_QUOTA),
        (Failure(429, "no"), LLMFailure.RATE_LIMITED),
        (Failure(503, "no"), LLMFailure.UNAVAILABLE),
    ],
)
async def test_other_failures_change_no_wire(api: OpenAIApi, make: Make, failure: Failure, kind: LLMFailure) -> None:
    llm = await _like_openai(make(base_url=None), api)
    api.reply = lambda _: failure
    with pytest.raises(LLMError) as caught:
        await llm.chat(HELLO)
    assert (caught.value.kind, caught.value.status_code, caught.value.code) == (kind, failure.status, failure.code)
    assert paths(api) == [("responses", failure.status)]
    assert llm.api == "responses"


async def test_a_wire_that_somebody_chose_stays_and_the_error_says_what_to_do(api: OpenAIApi, make: Make) -> None:
    llm = make(api="chat")
    with pytest.raises(LLMError, match="OPENAI_API=responses") as caught:
        await llm.chat(HELLO, [ADD])
    assert not caught.value.is_transient
    api.speaks = (CHAT,)
    with pytest.raises(LLMError, match="404"):
        await make(api="responses").chat(HELLO)


async def test_a_server_that_points_to_what_it_does_not_have_is_not_asked_for_ever(api: OpenAIApi, make: Make) -> None:
    api.speaks = (CHAT,)
    llm = make()
    for _ in range(2):
        with pytest.raises(LLMError, match="OPENAI_REASONING_EFFORT=none"):
            await llm.chat(HELLO, [ADD])
    assert paths(api) == [("chat/completions", 400)] * 2 + [("responses", 404)] * 2
    assert (await llm.chat(HELLO)).text == "You said: hello"


@pytest.mark.parametrize(("model", "effort"), [("gpt-6-astra", "none"), ("gpt-6.1-sol", "minimal")])
async def test_an_effort_that_the_model_does_not_know_says_so(make: Make, model: str, effort: str) -> None:
    with pytest.raises(LLMError, match="OPENAI_REASONING_EFFORT"):
        await make(model, reasoning_effort=effort).chat(HELLO, [ADD])


async def test_a_model_that_does_not_think_takes_tools_by_chat(api: OpenAIApi, make: Make) -> None:
    llm = make(reasoning_effort="none")
    await llm.chat(HELLO, [ADD])
    assert (llm.api, api.bodies()[0]["reasoning_effort"]) == ("chat", "none")


@pytest.mark.parametrize("field", ["stream_options", "max_completion_tokens"])
async def test_what_an_older_server_does_not_know_is_left_out_from_then_on(
    api: OpenAIApi, make: Make, field: str
) -> None:
    api.refuses = [field]
    llm = make("llama", max_answer_tokens=100)
    for _ in range(2):
        assert (await llm.chat(HELLO, [ADD])).text == "You said: hello"
    assert [status for _, status in paths(api)] == [400, 200, 200]
    last = api.bodies()[-1]
    assert field not in last
    assert (last.get("max_tokens"), last.get("max_completion_tokens")) == (
        (100, None) if field == "max_completion_tokens" else (None, 100)
    )


async def test_a_model_without_reasoning_is_asked_for_none_of_it(api: OpenAIApi, make: Make) -> None:
    llm = make("gpt-4.1", api="responses")
    for _ in range(2):
        assert (await llm.chat(HELLO)).text == "You said: hello"
    assert [status for _, status in paths(api)] == [400, 200, 200]


async def test_other_servers_get_no_field_that_chat_completions_did_not_always_have(api: OpenAIApi, make: Make) -> None:
    await make("llama3.2:3b").chat(HELLO, [ADD])
    assert set(api.bodies()[0]) == {"messages", "model", "stream", "stream_options", "tools"}


async def test_a_retired_model_says_so(api: OpenAIApi, make: Make) -> None:
    for wire in ("chat", "responses"):
        with pytest.raises(LLMError, match="OPENAI_MODEL") as caught:
            await make("gpt-4.5-preview", api=wire).chat(HELLO)
        assert caught.value.kind is LLMFailure.UNKNOWN_MODEL


async def _like_openai(llm: OpenAIChatLLM, api: OpenAIApi) -> OpenAIChatLLM:
    """Return a model of OpenAI's own address, behind which the server on loopback stands."""

    class Redirected(httpx2.AsyncHTTPTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            request.url = httpx2.URL(f"{api.url}{request.url.path}")
            return await super().handle_async_request(request)

    connections = Connections(httpx2.AsyncClient(transport=Redirected()), api_key="sk-test", base_url=llm.base_url)
    llm._clients._of_loop[asyncio.get_running_loop()] = connections
    await connections.open()
    return llm


async def test_a_reply_of_either_wire_is_the_same_answer(api: OpenAIApi, make: Make) -> None:
    api.reply = lambda _: Reply(
        text="I add.", tool_calls=[ToolUse("add", {"a": 1}, id="call_1")], usage=(9, 8), cached=7
    )
    one, other = [await make("m", api=wire).chat(HELLO, [ADD]) for wire in ("chat", "responses")]
    assert (one.text, one.tool_calls, one.usage, one.model, one.finish_reason) == (
        other.text,
        other.tool_calls,
        other.usage,
        other.model,
        other.finish_reason,
    )
