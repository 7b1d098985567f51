"""The model server stand-in, through the real client: it fails as the real one does."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI
from standins.openai_api import (
    Ending,
    Failure,
    Gate,
    OpenAIApi,
    Reply,
    ToolUse,
    context_length_exceeded,
    not_json,
    quota_exceeded,
    rate_limited,
    script,
    server_error,
)

pytestmark = pytest.mark.slow

HELLO: list[Any] = [{"role": "user", "content": "hello"}]
TOOL: dict[str, Any] = {
    "type": "function",
    "function": {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}},
}
PNG_URL = "data:image/png;base64,iVBORw0KGgo="


@pytest.fixture
def api() -> Iterator[OpenAIApi]:
    with OpenAIApi.running() as server:
        yield server


@pytest.fixture
async def model(api: OpenAIApi) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=api.base_url, api_key="sk-test", max_retries=0) as client:
        yield client


async def chat(client: AsyncOpenAI, /, **body: Any) -> Any:
    return await client.chat.completions.create(**({"model": "gpt-5.5", "messages": HELLO} | body))


async def chunks(client: AsyncOpenAI, /, **body: Any) -> list[Any]:
    stream = await chat(client, stream=True, stream_options={"include_usage": True}, **body)
    return [chunk async for chunk in stream]


async def test_an_answer_in_one_piece(api: OpenAIApi, model: AsyncOpenAI) -> None:
    api.reply = lambda body: Reply(text=f"{len(body['messages'])} messages", usage=(7, 2))
    answer = await chat(model)
    assert answer.choices[0].message.content == "1 messages"
    assert (answer.choices[0].finish_reason, answer.usage.total_tokens) == ("stop", 9)
    assert api.bodies() == [{"model": "gpt-5.5", "messages": HELLO}]
    assert [ended.ending for ended in api.endings()] == [Ending.COMPLETED]


async def test_a_stream_comes_in_deltas_and_ends_with_usage(api: OpenAIApi, model: AsyncOpenAI) -> None:
    api.reply = lambda body: Reply(text="Once upon a time", chunk_size=5, usage=(3, 4))
    got = await chunks(model)
    assert got[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].delta.content for chunk in got[1:5]] == ["Once ", "upon ", "a tim", "e"]
    assert (got[5].choices[0].finish_reason, got[5].usage) == ("stop", None)
    assert (got[6].choices, got[6].usage.total_tokens) == ([], 7)
    assert len({chunk.id for chunk in got}) == 1


async def test_parallel_tool_calls_are_split_as_the_real_one_splits_them(api: OpenAIApi, model: AsyncOpenAI) -> None:
    api.reply = lambda body: [
        "Let me see.",
        ToolUse("add", {"a": 1, "b": [2, "three"]}, id="call_1"),
        ToolUse("add", '{"a": broken'),
    ]
    got = await chunks(model, tools=[TOOL])
    pieces = [call for chunk in got if chunk.choices for call in chunk.choices[0].delta.tool_calls or ()]
    openings = [piece for piece in pieces if piece.id]
    assert [(piece.index, piece.function.name, piece.function.arguments) for piece in openings] == [
        (0, "add", ""),
        (1, "add", ""),
    ]
    arguments = ["".join(p.function.arguments for p in pieces if p.index == index) for index in (0, 1)]
    assert arguments == ['{"a": 1, "b": [2, "three"]}', '{"a": broken']
    assert len(pieces) > 4
    assert all(piece.function.name is None for piece in pieces if not piece.id)
    assert got[-2].choices[0].finish_reason == "tool_calls"
    whole = await chat(model, tools=[TOOL])
    assert [call.function.name for call in whole.choices[0].message.tool_calls] == ["add", "add"]
    assert len({call.id for call in whole.choices[0].message.tool_calls}) == 2


async def test_a_server_may_ignore_stream_refuse_or_know_no_usage(api: OpenAIApi, model: AsyncOpenAI) -> None:
    api.reply = script(
        Reply(text="plain", ignores_stream=True), Reply(refusal="I can't."), Reply(text="x", with_usage=False)
    )
    stream = await chat(model, stream=True)
    assert stream.response.headers["content-type"] == "application/json"
    await stream.close()
    assert (await chat(model)).choices[0].message.refusal == "I can't."
    assert all(chunk.usage is None and chunk.choices for chunk in await chunks(model))


async def test_keys_models_and_paths_are_checked() -> None:
    with OpenAIApi.running(api_key="sk-right-key-1234", models=["gpt-5.5"]) as api:
        async with AsyncOpenAI(base_url=api.base_url, api_key="sk-wrong-key-5678", max_retries=0) as wrong:
            with pytest.raises(openai.AuthenticationError, match="Incorrect API key provided") as caught:
                await chat(wrong)
            assert (caught.value.code, caught.value.type) == ("invalid_api_key", "invalid_request_error")
        async with AsyncOpenAI(base_url=api.base_url, api_key="sk-right-key-1234", max_retries=0) as right:
            await chat(right)
            assert [model.id async for model in right.models.list()] == ["gpt-5.5"]
            with pytest.raises(openai.NotFoundError, match="does not exist"):
                await chat(right, model="gpt-2")
            with pytest.raises(openai.NotFoundError, match="Invalid URL"):
                await right.get("/nowhere", cast_to=object)


CALL = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
ASKED = {"role": "assistant", "content": None, "tool_calls": [CALL, CALL | {"id": "call_2"}]}


def answered(call_id: str) -> dict[str, str]:
    return {"role": "tool", "tool_call_id": call_id, "content": "3"}


def with_function(**function: Any) -> dict[str, Any]:
    return {"tools": [{"type": "function", "function": function}]}


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"messages": []}, "Invalid 'messages': empty array"),
        ({"messages": [{"role": "robot", "content": "x"}]}, "Invalid value: 'robot'. Supported values are: 'system'"),
        ({"messages": [{"role": "user", "content": None}]}, "Invalid value for 'content': expected a string, got null"),
        ({"messages": [{"role": "user", "content": 3}]}, "expected one of a string or array of objects"),
        ({"messages": [{"role": "user", "content": [{"type": "smell"}]}]}, "Invalid value: 'smell'"),
        ({"messages": [{"role": "user", "name": "a b", "content": "x"}]}, "string does not match pattern"),
        ({"messages": [*HELLO, ASKED, answered("call_1")]}, "did not have response messages: call_2"),
        ({"messages": [*HELLO, ASKED, *HELLO]}, "did not have response messages: call_1, call_2"),
        ({"messages": [*HELLO, answered("call_1")]}, "must be a response to a prece"),
        ({"messages": [ASKED, answered("call_1"), answered("call_2"), answered("call_9")]}, "'call_9' not found in"),
        ({"messages": [{"role": "assistant", "content": "x", "tool_calls": []}]}, "tool_calls': empty array"),
        (
            {"messages": [{"role": "system", "content": [{"type": "image_url", "image_url": {"url": PNG_URL}}]}]},
            "Image URLs are only allowed for messages with role 'user'",
        ),
        (with_function(name="no spaces"), "tools[0].function.name': string does not match pattern"),
        (with_function(name="x" * 65), "maximum length 64, but got a string with length 65"),
        (with_function(name="f", parameters={"type": "string"}), "must be a JSON Schema of 'type: \"object\"'"),
        (
            with_function(name="f", parameters={"type": "object", "properties": {"x": {"type": "array"}}}),
            "In context=('properties', 'x'), array schema missing items",
        ),
        (with_function(name="f", strict=True, parameters={"type": "object", "properties": {}}), "additionalProperties"),
        ({"tools": []}, "Invalid 'tools': empty array"),
        ({"tool_choice": "auto"}, "'tool_choice' is only allowed when 'tools' are specified"),
        (
            {"tools": [TOOL], "tool_choice": {"type": "function", "function": {"name": "sub"}}},
            "'sub' is not in 'tools'",
        ),
        ({"extra_body": {"top_k": 3}}, "Unrecognized request argument supplied: top_k"),
        ({"extra_body": {"a": 3, "b": 4}}, "Unrecognized request arguments supplied: a, b"),
        ({"stream_options": {"include_usage": True}}, "only allowed when 'stream' is enabled"),
        ({"max_tokens": 5}, "Use 'max_completion_tokens' instead"),
        ({"temperature": 0}, "'temperature' does not support 0 with this model"),
    ],
)
async def test_wrong_requests_are_refused(
    api: OpenAIApi, model: AsyncOpenAI, body: dict[str, Any], problem: str
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await chat(model, **body)
    assert problem in caught.value.message
    assert caught.value.type == "invalid_request_error"
    assert [ended.ending for ended in api.endings()] == [Ending.REFUSED]


@pytest.mark.parametrize("body", ['{"model": "m", ', "[]", '{"model": "\\ud800"}', b"\xff"])
def test_what_is_no_json_is_refused(api: OpenAIApi, body: str | bytes) -> None:
    answer = httpx.post(f"{api.base_url}/chat/completions", content=body, verify=False)
    assert answer.status_code == 400
    assert "could not parse the JSON body" in answer.json()["error"]["message"]


async def test_right_requests_of_every_kind_pass(api: OpenAIApi, model: AsyncOpenAI) -> None:
    messages = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "name": "Alice-1", "content": [{"type": "text", "text": "see"}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": PNG_URL}}]},
        ASKED,
        answered("call_2"),
        answered("call_1"),
        {"role": "assistant", "content": "3"},
        *HELLO,
    ]
    answer = await chat(model, messages=messages, tools=[TOOL], tool_choice="auto", parallel_tool_calls=True)
    assert answer.choices[0].message.content == "You said: hello"
    again = await chat(model, messages=[{"role": "user", "content": 'use add {"a": 1}'}], tools=[TOOL])
    assert again.choices[0].message.tool_calls[0].function.arguments == '{"a": 1}'
    assert api.endings(Ending.REFUSED) == []


@pytest.mark.parametrize(
    ("failure", "error", "code"),
    [
        (rate_limited(0.5), openai.RateLimitError, "rate_limit_exceeded"),
        (quota_exceeded(), openai.RateLimitError, "insufficient_quota"),
        (server_error(500), openai.InternalServerError, None),
        (server_error(503), openai.InternalServerError, None),
        (context_length_exceeded(), openai.BadRequestError, "context_length_exceeded"),
        (Failure(404, "gone", code="model_not_found"), openai.NotFoundError, "model_not_found"),
    ],
)
async def test_failures_are_raised_by_the_client(
    api: OpenAIApi, model: AsyncOpenAI, failure: Failure, error: type[openai.APIStatusError], code: str | None
) -> None:
    api.reply = lambda body: failure
    with pytest.raises(error) as caught:
        await chat(model)
    assert caught.value.code == code
    assert caught.value.response.headers.get("retry-after") == failure.headers.get("Retry-After")
    assert api.endings()[0].status == failure.status


async def test_an_answer_that_is_no_json(api: OpenAIApi, model: AsyncOpenAI) -> None:
    api.reply = lambda body: not_json()
    assert await chat(model) == "<html>It works!</html>"


async def test_the_context_window_is_kept(api: OpenAIApi, model: AsyncOpenAI) -> None:
    api.context_window = 100
    await chat(model)
    with pytest.raises(openai.BadRequestError, match="maximum context length is 100 tokens"):
        await chat(model, messages=[{"role": "user", "content": "x" * 1000}])


async def test_a_stream_can_break_or_fail_in_the_middle(api: OpenAIApi, model: AsyncOpenAI) -> None:
    api.reply = script(
        Reply(text="0123456789", chunk_size=1, drop_after=4),
        Reply(text="0123456789", chunk_size=1, fail_after=3),
        Reply(text="never", drop_after=0),
    )
    stream = await chat(model, stream=True)
    got = [(await anext(stream)).choices[0].delta.content for _ in range(4)]
    with pytest.raises(openai.APIConnectionError):
        await anext(stream)
    assert got == ["", "0", "1", "2"]
    with pytest.raises(openai.APIError, match="The server had an error"):
        await chunks(model)
    with pytest.raises(openai.APIConnectionError):
        await chat(model)
    assert [(e.ending, e.chunks) for e in api.endings()] == [
        (Ending.DROPPED, 4),
        (Ending.FAILED, 3),
        (Ending.DROPPED, 0),
    ]


async def test_a_cancelled_call_is_seen(api: OpenAIApi, model: AsyncOpenAI) -> None:
    api.reply = script(
        Reply(hang=True), Reply(text="0123456789", chunk_size=1, hang_after=3), Reply(text="late", delay=60)
    )
    for stream in (False, True, False):
        before = len(api.journal)
        call = asyncio.create_task(chunks(model) if stream else chat(model))
        request = await api.call(since=before)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)
        ended = await api.end(request.seq)
        assert ended.ending is Ending.ABORTED
    assert api.active == 0


async def test_gates_hold_an_answer_until_the_test_lets_it_go(api: OpenAIApi, model: AsyncOpenAI) -> None:
    first, later = Gate(), Gate()
    api.reply = lambda body: Reply(text="ab", chunk_size=1, wait=first, chunk_wait=later, wait_at=2, chunk_delay=0.001)
    call = asyncio.create_task(chat(model, stream=True))
    await api.call()
    assert not call.done()
    first.open()
    stream = await call
    assert (await anext(stream)).choices[0].delta.role == "assistant"
    assert (await anext(stream)).choices[0].delta.content == "a"
    waiting = asyncio.create_task(anext(stream))
    later.open()
    assert (await waiting).choices[0].delta.content == "b"
    await stream.close()


async def test_the_reply_may_be_async_and_sees_calls_side_by_side(api: OpenAIApi, model: AsyncOpenAI) -> None:
    gate = Gate()

    async def reply(body: dict[str, Any]) -> str:
        if api.active == 20:
            gate.open()
        await gate.passed()
        return str(body["messages"][0]["content"])

    api.reply = reply
    answers = await asyncio.gather(
        *[chat(model, messages=[{"role": "user", "content": str(number)}]) for number in range(20)]
    )
    assert [answer.choices[0].message.content for answer in answers] == [str(number) for number in range(20)]
    assert api.peak == 20
    assert [entry.seq for entry in api.journal.entries()] == list(range(1, 41))


async def test_embeddings_are_the_tests_own_and_come_as_base64(api: OpenAIApi, model: AsyncOpenAI) -> None:
    api.embed = lambda text: [float(len(text)), 0.0, 0.0]
    answer = await model.embeddings.create(model="text-embedding-3-small", input=["a", "bcd"])
    assert [item.embedding for item in answer.data] == [[1.0, 0.0, 0.0]] * 2
    assert api.bodies("/v1/embeddings")[0]["encoding_format"] == "base64"
    plain = await model.embeddings.create(model="m", input="a", encoding_format="float", dimensions=2)
    assert plain.data[0].embedding == [1.0, 0.0]
    for wrong in ("", [], ["a", ""], "x" * 40_000):
        with pytest.raises(openai.BadRequestError):
            await model.embeddings.create(model="m", input=wrong)


async def test_speech_is_transcribed(api: OpenAIApi, model: AsyncOpenAI) -> None:
    api.transcribe = lambda data, fields: f"{len(data)} {fields['language']} {fields['filename']}"
    heard = await model.audio.transcriptions.create(
        model="gpt-transcribe", file=("v.ogg", b"OggS\r\n--x"), language="de"
    )
    assert heard.text == "9 de v.ogg"
    for name, data, problem in (("v.txt", b"x", "Unrecognized file format"), ("v.ogg", b"", "too short")):
        with pytest.raises(openai.BadRequestError, match=problem):
            await model.audio.transcriptions.create(model="gpt-transcribe", file=(name, data))
    api.transcribe = lambda data, fields: server_error(500)
    with pytest.raises(openai.InternalServerError):
        await model.audio.transcriptions.create(model="gpt-transcribe", file=("v.ogg", b"x"))


def test_a_fault_of_the_tests_own_reply_shows_when_its_block_ends() -> None:
    def reply(body: dict[str, Any]) -> str:
        raise ValueError("a fault of the test")

    with (
        pytest.raises(ValueError, match="a fault of the test"),
        OpenAIApi.running(reply) as api,
        pytest.raises(httpx.RemoteProtocolError),
    ):
        httpx.post(f"{api.base_url}/chat/completions", json={"model": "m", "messages": HELLO})
