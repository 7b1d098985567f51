"""OpenAIChatLLM speaks Responses, through the real client, to a server as strict as the real one."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from standins.openai_api import RESPONSES, Ending, Failure, OpenAIApi, Reply, ToolUse, script

from botservice import ContextOverflow, LLMError, LLMFailure, OpenAIChatLLM, TokenUsage, ToolCall
from botservice.llm.openai.responses import ResponsesAnswer

HELLO = [{"role": "user", "content": "hello"}]
ADD: dict[str, Any] = {
    "type": "function",
    "function": {"name": "add", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}},
}


@pytest.fixture
async def terra(api: OpenAIApi) -> AsyncIterator[OpenAIChatLLM]:
    model = OpenAIChatLLM(base_url=api.base_url, api_key="sk-test", api="responses")
    yield model
    await model.close()


async def test_the_body_on_the_wire_is_exactly_this(api: OpenAIApi, terra: OpenAIChatLLM) -> None:
    await terra.chat(HELLO, [ADD])
    assert api.bodies(RESPONSES) == [
        {
            "model": "gpt-6.1-terra",
            "input": [{"role": "user", "content": "hello"}],
            "stream": True,
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "tools": [
                {
                    "type": "function",
                    "name": "add",
                    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
                    "strict": False,
                }
            ],
        }
    ]


async def test_a_text_arrives_in_pieces_that_make_the_whole(api: OpenAIApi, terra: OpenAIChatLLM) -> None:
    pieces: list[str] = []
    api.reply = lambda _: Reply(pieces=["Hel", "lo, ", "wörld 🎉"], usage=(70, 30), cached=50, cache_written=15)
    response = await terra.chat(HELLO, on_text=pieces.append)
    assert pieces == ["Hel", "lo, ", "wörld 🎉"]
    assert response.text == "Hello, wörld 🎉"
    assert (response.model, response.finish_reason, response.tool_calls) == ("gpt-6.1-terra", "stop", ())
    assert response.usage is not None
    assert response.usage == TokenUsage(70, 30, 50, response.usage.reasoning_tokens, 15)
    assert (response.usage.reasoning_tokens or 0) > 0


async def test_calls_come_with_the_items_that_the_model_gave(api: OpenAIApi, terra: OpenAIChatLLM) -> None:
    calls = [ToolUse("add", {"a": 1}, id="call_one"), ToolUse("add", {"a": 2}, id="call_two")]
    api.reply = lambda _: Reply(text="I add.", tool_calls=calls, chunk_size=3)
    response = await terra.chat(HELLO, [ADD])
    assert (response.text, response.finish_reason) == ("I add.", "tool_calls")
    assert response.tool_calls == (ToolCall("call_one", "add", {"a": 1}), ToolCall("call_two", "add", {"a": 2}))
    assert [item["type"] for item in response.items] == ["reasoning", "message", "function_call", "function_call"]
    reasoning, message, *_ = response.items
    assert reasoning["summary"] == []
    assert "unfinished" not in reasoning["encrypted_content"], "it is whole in the item's last event alone"
    assert message["phase"] == "commentary"


@pytest.mark.parametrize("ignores_stream", [False, True])
async def test_a_refusal_is_an_answer(api: OpenAIApi, terra: OpenAIChatLLM, ignores_stream: bool) -> None:
    pieces: list[str] = []
    api.reply = lambda _: Reply(refusal="I cannot help with that.", ignores_stream=ignores_stream)
    response = await terra.chat(HELLO, on_text=pieces.append)
    assert response.text == "".join(pieces) == "I cannot help with that."
    assert response.finish_reason == "refusal"


@pytest.mark.parametrize("ignores_stream", [False, True])
@pytest.mark.parametrize(
    ("reason", "text", "finish_reason"),
    [("length", "It begins wi", "length"), ("length", "", "length"), ("content_filter", "", "refusal")],
)
async def test_an_answer_that_was_cut_says_so_and_is_not_read_again(
    api: OpenAIApi, terra: OpenAIChatLLM, reason: str, text: str, finish_reason: str, ignores_stream: bool
) -> None:
    api.reply = lambda _: Reply(text=text, finish_reason=reason, ignores_stream=ignores_stream)
    response = await terra.chat(HELLO)
    assert (response.text, response.finish_reason, response.items) == (text, finish_reason, ())


async def test_a_server_that_does_not_stream_is_read_all_the_same(api: OpenAIApi, terra: OpenAIChatLLM) -> None:
    pieces: list[str] = []
    api.reply = lambda _: Reply(
        text="Whole.", tool_calls=[ToolUse("add", {"a": 1}, id="call_one")], ignores_stream=True, usage=(5, 6)
    )
    response = await terra.chat(HELLO, [ADD], on_text=pieces.append)
    assert (response.text, pieces) == ("Whole.", ["Whole."])
    assert response.tool_calls == (ToolCall("call_one", "add", {"a": 1}),)
    assert [item["type"] for item in response.items] == ["reasoning", "message", "function_call"]


@pytest.mark.parametrize("fails_as", ["event", "nested", "failed", "nothing"])
@pytest.mark.parametrize("after", [1, 3])
async def test_an_answer_that_fails_in_the_middle_is_none(
    api: OpenAIApi, terra: OpenAIChatLLM, fails_as: str, after: int
) -> None:
    api.reply = lambda _: Reply(text="Hello, this fails", fail_after=after, fails_as=fails_as)
    with pytest.raises(LLMError, match="broke off" if fails_as == "nothing" else "server_error") as caught:
        await terra.chat(HELLO)
    assert caught.value.is_transient
    assert caught.value.kind is LLMFailure.UNAVAILABLE


async def test_a_connection_that_breaks_is_an_error(api: OpenAIApi, terra: OpenAIChatLLM) -> None:
    api.reply = lambda _: Reply(text="Hello, this breaks off", drop_after=3)
    with pytest.raises(LLMError) as caught:
        await terra.chat(HELLO)
    assert caught.value.is_transient


async def test_a_server_that_falls_silent_is_given_up(api: OpenAIApi, terra: OpenAIChatLLM) -> None:
    await terra.chat(HELLO)
    terra.timeout_seconds = 0.3
    api.reply = lambda _: Reply(text="Hello, this hangs", hang_after=3)
    with pytest.raises(LLMError, match=r"nothing for 0\.3 seconds"):
        await terra.chat(HELLO)
    assert (await api.end(api.requests(RESPONSES)[1].seq)).ending is Ending.ABORTED


@pytest.mark.parametrize(
    ("code", "kind", "transient"),
    [
        ("rate_limit_exceeded", LLMFailure.RATE_LIMITED, True),
        ("insufficient_quota", LLMFailure.OUT_OF_QUOTA, False),
        ("invalid_prompt", LLMFailure.CONTENT_FILTER, False),
        ("server_error", LLMFailure.UNAVAILABLE, True),
        ("my secret is 12345", LLMFailure.UNAVAILABLE, True),
    ],
)
@pytest.mark.parametrize("kind_of_event", ["error", "response.failed"])
def test_the_code_of_an_error_says_what_kind_it_is(
    code: str, kind: LLMFailure, transient: bool, kind_of_event: str
) -> None:
    error = {"code": code, "message": "my secret is 12345"}
    event = {"type": "error", **error} if kind_of_event == "error" else {"response": {"error": error}}
    with pytest.raises(LLMError) as caught:
        ResponsesAnswer().add({"type": kind_of_event, **event})
    assert (caught.value.kind, caught.value.is_transient) == (kind, transient)
    assert "12345" not in str(caught.value)


async def test_a_prompt_that_is_too_long_is_told_apart(api: OpenAIApi, terra: OpenAIChatLLM) -> None:
    api.context_window = 100
    with pytest.raises(ContextOverflow):
        await terra.chat([{"role": "user", "content": "x" * 1000}])
    with pytest.raises(ContextOverflow):
        ResponsesAnswer().add({"type": "error", "code": "context_length_exceeded", "message": "too long"})


async def test_a_summary_of_thoughts_comes_only_where_it_is_asked_for(api: OpenAIApi, terra: OpenAIChatLLM) -> None:
    thoughts: list[str] = []
    await terra.chat(HELLO, on_thought=thoughts.append)
    assert thoughts == []
    assert not terra.shows_thoughts
    telling = OpenAIChatLLM(base_url=api.base_url, api_key="sk-test", api="responses", reasoning_summary="auto")
    response = await telling.chat(HELLO, on_thought=thoughts.append)
    assert telling.shows_thoughts
    await telling.close()
    assert api.bodies(RESPONSES)[-1]["reasoning"] == {"summary": "auto"}
    assert thoughts == ["**Weighing the question**\n\nIt is not hard."]
    assert "Weighing" not in response.text


async def test_what_is_asked_for_is_sent_in_the_words_of_the_wire(api: OpenAIApi) -> None:
    llm = OpenAIChatLLM(
        base_url=api.base_url, api="responses", reasoning_effort="none", max_answer_tokens=5, temperature=0.5
    )
    await llm.chat(HELLO)
    await llm.close()
    body = api.bodies(RESPONSES)[0]
    assert (body["reasoning"], body["max_output_tokens"], body["temperature"]) == ({"effort": "none"}, 16, 0.5)


async def test_two_messages_of_one_answer_are_two_paragraphs() -> None:
    pieces: list[str] = []
    answer = ResponsesAnswer(pieces.append)
    said = [("msg_1", "I look."), ("msg_2", "It is "), ("msg_2", "there.")]
    for item_id, delta in said:
        answer.add({"type": "response.output_text.delta", "item_id": item_id, "delta": delta})
    items = [_message("msg_1", "I look."), _message("msg_2", "It is there.")]
    for place, item in enumerate(items):
        answer.add({"type": "response.output_item.done", "output_index": place, "item": item})
    answer.add({"type": "response.completed", "response": {"status": "completed", "output": items}})
    assert answer.response().text == "".join(pieces) == "I look.\n\nIt is there."


def _message(item_id: str, text: str) -> dict[str, Any]:
    return {"type": "message", "id": item_id, "content": [{"type": "output_text", "text": text}]}


async def test_events_that_nobody_knows_do_no_harm() -> None:
    answer = ResponsesAnswer()
    for event in ({"type": "response.new_thing", "delta": 7}, {}, {"type": "keepalive"}):
        answer.add(event)
    assert not answer.is_over


async def test_an_error_in_the_place_of_an_answer_is_one() -> None:
    with pytest.raises(LLMError, match="no output"):
        ResponsesAnswer().add_whole({"message": "no"})
    with pytest.raises(LLMError, match="invalid_prompt"):
        ResponsesAnswer().add_whole({"error": {"code": "invalid_prompt"}})


@pytest.mark.parametrize("written", ['{"a": 1', "[1, 2]", "add 1 and 2"])
async def test_arguments_that_are_no_object_are_kept_as_they_were(
    api: OpenAIApi, terra: OpenAIChatLLM, written: str
) -> None:
    api.reply = lambda _: ToolUse("add", written, id="call_one")
    (call,) = (await terra.chat(HELLO, [ADD])).tool_calls
    assert call == ToolCall("call_one", "add", {}, malformed_arguments=written)


async def test_a_failure_before_the_answer_is_translated_like_on_the_other_wire(
    api: OpenAIApi, terra: OpenAIChatLLM
) -> None:
    api.reply = script(Failure(429, "slow", code="rate_limit_exceeded", headers={"Retry-After": "3"}))
    with pytest.raises(LLMError) as caught:
        await terra.chat(HELLO)
    assert (caught.value.kind, caught.value.retry_after_seconds) == (LLMFailure.RATE_LIMITED, 3.0)
