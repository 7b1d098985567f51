"""The stand-in of Responses, through the real client: it refuses what the real one refuses."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import openai
import pytest
from openai import AsyncOpenAI
from standins.openai_api import RESPONSES, Ending, OpenAIApi, Reply, ToolUse

pytestmark = pytest.mark.slow

HELLO: list[Any] = [{"role": "user", "content": "hello"}]
TOOL: dict[str, Any] = {"type": "function", "name": "add", "parameters": {"type": "object"}, "strict": False}
SEALED = ["reasoning.encrypted_content"]
CALL = {"type": "function_call", "call_id": "call_1", "name": "add", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "3"}


@pytest.fixture
def api() -> Iterator[OpenAIApi]:
    with OpenAIApi.running() as server:
        yield server


@pytest.fixture
async def client(api: OpenAIApi) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(base_url=api.base_url, api_key="sk-test", max_retries=0) as client:
        yield client


async def respond(client: AsyncOpenAI, /, **body: Any) -> Any:
    asked = {"model": "gpt-6.1-terra", "input": HELLO, "store": False, "include": SEALED}
    return await client.responses.create(**(asked | body))


def as_input(response: Any) -> list[Any]:
    return [item.model_dump(exclude_none=True) for item in response.output]


async def test_an_answer_in_one_piece(api: OpenAIApi, client: AsyncOpenAI) -> None:
    answer = await respond(client)
    assert answer.output_text == "You said: hello"
    assert [item.type for item in answer.output] == ["reasoning", "message"]
    assert answer.output[1].phase == "final_answer"
    assert answer.usage.output_tokens_details.reasoning_tokens > 0


async def test_a_stream_has_the_real_ones_events_and_no_done(api: OpenAIApi, client: AsyncOpenAI) -> None:
    api.reply = lambda _: Reply(text="Once upon", tool_calls=[ToolUse("add", {"a": 1})], chunk_size=5)
    events = [event async for event in await respond(client, stream=True, tools=[TOOL])]
    assert [event.type.removeprefix("response.") for event in events] == [
        *("created", "in_progress", "output_item.added", "output_item.done"),
        *("output_item.added", "output_text.delta", "output_text.delta", "output_item.done"),
        *("output_item.added", "function_call_arguments.delta", "function_call_arguments.delta", "output_item.done"),
        "completed",
    ]
    assert [event.sequence_number for event in events] == list(range(len(events)))
    sealed = [
        event.item.encrypted_content
        for event in events
        if getattr(event, "item", None) and event.item.type == "reasoning"
    ]
    assert sealed[0] == "gAAAAAunfinished"
    assert sealed[1] == events[-1].response.output[0].encrypted_content


async def test_a_step_goes_on_with_its_items(api: OpenAIApi, client: AsyncOpenAI) -> None:
    api.reply = lambda body: "done" if body["messages"][-1]["role"] == "tool" else ToolUse("add", {}, id="call_1")
    step = as_input(await respond(client, tools=[TOOL]))
    assert (await respond(client, input=[*HELLO, *step, OUTPUT], tools=[TOOL])).output_text == "done"
    assert api.endings(Ending.REFUSED, path=RESPONSES) == []


@pytest.mark.parametrize(
    ("change", "status", "problem"),
    [
        (lambda step: step[:1], 400, "without its required following item"),
        (lambda step: step[1:], 400, "without its required 'reasoning' item: 'rs_"),
        (lambda step: [{**step[0], "encrypted_content": None}, *step[1:]], 404, "' not found. Items are not persisted"),
        (lambda step: [{**step[0], "encrypted_content": "xx"}, *step[1:]], 400, "could not be verified"),
        (lambda step: [{k: v for k, v in step[0].items() if k != "summary"}, *step[1:]], 400, "input[1].summary"),
        (lambda step: [step[0], {**step[1], "id": "call_1"}], 400, "Expected an ID that begins with 'fc'"),
    ],
)
async def test_a_step_that_is_not_whole_is_refused(
    api: OpenAIApi, client: AsyncOpenAI, change: Any, status: int, problem: str
) -> None:
    api.reply = lambda _: ToolUse("add", {}, id="call_1")
    step = as_input(await respond(client, tools=[TOOL]))
    given = [*HELLO, *change(step)]
    with pytest.raises(openai.APIStatusError) as caught:
        await respond(
            client, input=[*given, OUTPUT] if len(given) > 2 or given[1]["type"] == "function_call" else given
        )
    assert (caught.value.status_code, problem in caught.value.message) == (status, True), caught.value.message


@pytest.mark.parametrize("other", [{"model": "gpt-6-luna"}, {"key": "sk-other"}])
async def test_a_seal_is_good_for_its_model_and_its_key(
    api: OpenAIApi, client: AsyncOpenAI, other: dict[str, str]
) -> None:
    step = as_input(await respond(client))
    key = other.pop("key", "sk-test")
    async with AsyncOpenAI(base_url=api.base_url, api_key=key, max_retries=0) as asking:
        with pytest.raises(openai.BadRequestError) as caught:
            await respond(asking, input=[*HELLO, *step, *HELLO], **other)
    assert caught.value.code == "invalid_encrypted_content"


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"extra_body": {"messages": HELLO}}, "moved to 'input'"),
        ({"extra_body": {"reasoning_effort": "low"}}, "moved to 'reasoning.effort'"),
        ({"extra_body": {"top_k": 3}}, "Unknown parameter: 'top_k'"),
        (
            {"stream": True, "stream_options": {"include_usage": True}},
            "Unknown parameter: 'stream_options.include_usage'",
        ),
        ({"max_output_tokens": 15}, "Expected a value >= 16, but got 15"),
        ({"temperature": 0}, "'temperature' does not support 0"),
        ({"include": ["everything"]}, "Invalid value: 'everything'"),
        ({"previous_response_id": "resp_1"}, "not found"),
        ({"prompt_cache_key": "x" * 65}, "maximum length 64"),
        ({"reasoning": {"effort": "extreme"}}, "'extreme' is not supported"),
        ({"model": "gpt-6-astra", "reasoning": {"effort": "none"}}, "'none' is not supported"),
        ({"model": "gpt-6.1-sol", "reasoning": {"effort": "minimal"}}, "'minimal' is not supported"),
        ({"model": "gpt-4.1"}, "Encrypted content is not supported"),
        ({"tools": [{k: v for k, v in TOOL.items() if k != "strict"}]}, "'tools[0].strict'"),
        ({"tools": [{"type": "function", "function": TOOL}]}, "'tools[0].name'"),
        (
            {"tools": [TOOL | {"strict": True, "parameters": {"type": "object", "properties": {}}}]},
            "additionalProperties",
        ),
        ({"input": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]}, "Invalid value: 'text'"),
        ({"input": [{"role": "user", "content": None}]}, "Invalid type for 'input[0].content'"),
        ({"input": [{"role": "user", "name": "a", "content": "x"}]}, "Unknown parameter: 'input[0].name'"),
        ({"input": [{"role": "tool", "content": "x"}]}, "Invalid value: 'tool'"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": {"url": "x"}}]}]},
            "expected an image URL string, but got an object",
        ),
        ({"input": [*HELLO, CALL]}, "No tool output found for function call call_1"),
        ({"input": [*HELLO, OUTPUT]}, "No tool call found for function call output with call_id call_1"),
        ({"input": [*HELLO, CALL, CALL, OUTPUT]}, "Duplicate function call"),
    ],
)
async def test_wrong_requests_are_refused(
    api: OpenAIApi, client: AsyncOpenAI, body: dict[str, Any], problem: str
) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        await respond(client, **body)
    assert problem in caught.value.message
    assert [ended.ending for ended in api.endings(path=RESPONSES)] == [Ending.REFUSED]


@pytest.mark.parametrize(
    ("model", "passing"),
    [
        ("gpt-5.5", [None, "none"]),
        ("gpt-5.4", [None, "none"]),
        ("gpt-5.6", ["none"]),
        ("gpt-6-luna", ["none"]),
        ("gpt-6.1-terra", ["none"]),
        ("gpt-6-astra", []),
        ("gpt-6.1-sol", []),
        ("gpt-6.2-sol", []),
        ("llama", [None]),
    ],
)
async def test_chat_completions_takes_tools_by_the_rules_of_each_model(
    client: AsyncOpenAI, model: str, passing: list[str | None]
) -> None:
    function: Any = {"type": "function", "function": {"name": "add"}}
    taken, told = [], set()
    for effort in (None, "none", "low", "high"):
        given: Any = {} if effort is None else {"reasoning_effort": effort}
        try:
            await client.chat.completions.create(model=model, messages=HELLO, tools=[function], **given)
        except openai.BadRequestError as error:
            told.add((error.param, model == "llama" or "/v1/responses" in error.message))
        else:
            taken.append(effort)
    assert (taken, told) == (passing, {("reasoning_effort", True)})


async def test_what_is_gone_or_nowhere_is_a_404(api: OpenAIApi, client: AsyncOpenAI) -> None:
    for body, code in (
        ({"model": "gpt-4.5-preview"}, "model_not_found"),
        ({"input": [{"type": "item_reference", "id": "rs_1"}]}, None),
    ):
        with pytest.raises(openai.NotFoundError) as caught:
            await respond(client, **body)
        assert caught.value.code == code
    api.speaks = ()
    with pytest.raises(openai.NotFoundError, match="Invalid URL"):
        await respond(client)


@pytest.mark.parametrize(("reason", "told"), [("length", "max_output_tokens"), ("content_filter", "content_filter")])
async def test_an_incomplete_response_may_hold_reasoning_alone(
    api: OpenAIApi, client: AsyncOpenAI, reason: str, told: str
) -> None:
    api.reply = lambda _: Reply(finish_reason=reason)
    answer = await respond(client)
    assert (answer.status, answer.incomplete_details.reason) == ("incomplete", told)
    assert [item.type for item in answer.output] == ["reasoning"]


async def test_errors_in_mid_stream_come_in_three_ways(api: OpenAIApi, client: AsyncOpenAI) -> None:
    api.reply = lambda _: Reply(text="0123456789", fail_after=2, fails_as="event")
    *_, last = [event async for event in await respond(client, stream=True)]
    assert (last.type, last.code) == ("error", "server_error")
    api.reply = lambda _: Reply(text="0123456789", fail_after=2, fails_as="failed")
    *_, last = [event async for event in await respond(client, stream=True)]
    assert (last.type, last.response.error.code) == ("response.failed", "server_error")
    api.reply = lambda _: Reply(text="0123456789", fail_after=2, fails_as="nested")
    with pytest.raises(openai.APIError, match="The server had an error"):
        _ = [event async for event in await respond(client, stream=True)]
