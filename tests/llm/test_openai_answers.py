"""OpenAIChatLLM reads what a server answers, through the real client."""

from typing import Any

import pytest
from standins.openai_api import OpenAIApi, Reply, ToolUse

from botservice import ContextOverflow, LLMError, OpenAIChatLLM, TokenUsage, ToolCall
from botservice.llm.openai.chat_completions import ChatAnswer

HELLO = [{"role": "user", "content": "hello"}]


def schema(name: str = "add") -> dict[str, Any]:
    return {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}},
    }


async def test_the_body_on_the_wire_is_exactly_this(api: OpenAIApi, llm: OpenAIChatLLM) -> None:
    await llm.chat(HELLO, [schema()])
    assert api.bodies() == [
        {
            "messages": [{"role": "user", "content": "hello"}],
            "model": "gpt-5.5",
            "stream": True,
            "stream_options": {"include_usage": True},
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "add",
                        "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}},
                    },
                }
            ],
        }
    ]


async def test_without_tools_none_are_sent(api: OpenAIApi, llm: OpenAIChatLLM) -> None:
    await llm.chat(HELLO)
    assert set(api.bodies()[0]) == {"messages", "model", "stream", "stream_options"}


async def test_the_key_travels_in_its_header(api: OpenAIApi, llm: OpenAIChatLLM) -> None:
    await llm.chat(HELLO)
    assert api.requests()[0].headers["authorization"] == "Bearer sk-test-key-that-nobody-may-see"


async def test_a_text_arrives_in_pieces_that_make_the_whole(api: OpenAIApi, llm: OpenAIChatLLM) -> None:
    pieces: list[str] = []
    api.reply = lambda _: Reply(pieces=["Hel", "lo, ", "wörld 🎉"], usage=(7, 3))
    response = await llm.chat(HELLO, on_text=pieces.append)
    assert pieces == ["Hel", "lo, ", "wörld 🎉"]
    assert response.text == "Hello, wörld 🎉"
    assert response.usage == TokenUsage(7, 3)
    assert response.tool_calls == ()


async def test_parallel_calls_are_put_together_from_their_chunks(api: OpenAIApi, llm: OpenAIChatLLM) -> None:
    calls = [ToolUse("add", {"a": 12345, "b": "a longer text"}, id="one"), ToolUse("add", {"a": 2}, id="two")]
    api.reply = lambda _: Reply(text="I add.", tool_calls=calls, chunk_size=3)
    response = await llm.chat(HELLO, [schema()])
    assert response.text == "I add."
    assert response.tool_calls == (
        ToolCall("one", "add", {"a": 12345, "b": "a longer text"}),
        ToolCall("two", "add", {"a": 2}),
    )


NUMBERS = ['{"a": NaN}', '{"a": [-Infinity]}', '{"a": 1e999}', '{"a": ' + "9" * 400 + "}"]
DEEP = ['{"a": ' * levels + "1" + "}" * levels for levels in (66, 20_000)]


@pytest.mark.parametrize("written", ['{"a": 1', "[1, 2]", '"text"', "add 1 and 2", "[" * 100_000, *NUMBERS, *DEEP])
async def test_arguments_that_are_no_object_are_kept_as_they_were(
    api: OpenAIApi, llm: OpenAIChatLLM, written: str
) -> None:
    api.reply = lambda _: Reply(tool_calls=[ToolUse("add", written, id="one")], chunk_size=len(written))
    (call,) = (await llm.chat(HELLO, [schema()])).tool_calls
    assert call == ToolCall("one", "add", {}, malformed_arguments=written)


async def test_no_arguments_at_all_are_an_empty_object(api: OpenAIApi, llm: OpenAIChatLLM) -> None:
    api.reply = lambda _: ToolUse("now", "", id="one")
    assert (await llm.chat(HELLO, [schema("now")])).tool_calls == (ToolCall("one", "now", {}),)


@pytest.mark.parametrize("ignores_stream", [False, True])
async def test_a_refusal_is_the_answer(api: OpenAIApi, llm: OpenAIChatLLM, ignores_stream: bool) -> None:
    pieces: list[str] = []
    api.reply = lambda _: Reply(refusal="I cannot help with that.", ignores_stream=ignores_stream)
    response = await llm.chat(HELLO, on_text=pieces.append)
    assert response.text == "".join(pieces) == "I cannot help with that."


async def test_a_server_that_does_not_stream_is_read_all_the_same(api: OpenAIApi, llm: OpenAIChatLLM) -> None:
    pieces: list[str] = []
    api.reply = lambda _: Reply(
        text="Whole.", tool_calls=[ToolUse("add", {"a": 1}, id="one")], ignores_stream=True, usage=(5, 6)
    )
    response = await llm.chat(HELLO, [schema()], on_text=pieces.append)
    assert (response.text, pieces, response.usage) == ("Whole.", ["Whole."], TokenUsage(5, 6))
    assert response.tool_calls == (ToolCall("one", "add", {"a": 1}),)


async def test_a_server_that_counts_nothing_gives_no_usage(api: OpenAIApi, llm: OpenAIChatLLM) -> None:
    api.reply = lambda _: Reply(text="hi", with_usage=False)
    assert (await llm.chat(HELLO)).usage is None


# The habits of other servers, which the stand-in is too proper for.


def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}


def part(name: str | None, arguments: Any, *, call_id: str | None = None, index: int | None = 0) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, "id": call_id, "function": {"name": name, "arguments": arguments}}]}


def read(*deltas: dict[str, Any]) -> tuple[ToolCall, ...]:
    answer = ChatAnswer()
    for delta in deltas:
        answer.add(chunk(delta))
    answer.add(chunk({}, "stop"))
    return answer.response().tool_calls


def test_calls_that_all_have_the_index_0_are_kept_apart_by_their_ids() -> None:
    calls = read(part("add", '{"a": 1}', call_id="one"), part("add", '{"a": 2}', call_id="two"))
    assert calls == (ToolCall("one", "add", {"a": 1}), ToolCall("two", "add", {"a": 2}))


def test_calls_without_an_index_are_kept_apart_by_their_ids() -> None:
    calls = read(
        part("add", '{"a":', call_id="one", index=None),
        part(None, " 1}", index=None),
        part("add", '{"a": 2}', call_id="two", index=None),
    )
    assert [call.arguments for call in calls] == [{"a": 1}, {"a": 2}]


def test_a_new_id_in_every_chunk_is_still_one_call() -> None:
    calls = read(part("add", '{"a":', call_id="one"), part(None, " 1}", call_id="other"))
    assert calls == (ToolCall("one", "add", {"a": 1}),)


def test_a_name_that_is_repeated_in_every_chunk_is_still_one_call() -> None:
    calls = read(part("add", '{"a":', call_id="one"), part("add", " 1}", call_id="one"))
    assert calls == (ToolCall("one", "add", {"a": 1}),)


def test_ids_that_are_missing_or_alike_are_made_different() -> None:
    calls = read(
        part("a", "", index=0),
        part("b", "", index=1),
        part("c", "", call_id="x", index=2),
        part("d", "", call_id="x", index=3),
    )
    assert len({call.id for call in calls}) == 4
    assert [call.name for call in calls] == ["a", "b", "c", "d"]
    assert all(call.id for call in calls)


def test_arguments_that_a_server_parsed_are_taken() -> None:
    assert read(part("add", {"a": 1}, call_id="one")) == (ToolCall("one", "add", {"a": 1}),)
    whole = {
        "choices": [{"message": {"tool_calls": [{"id": "one", "function": {"name": "add", "arguments": {"a": 1}}}]}}]
    }
    answer = ChatAnswer()
    answer.add_whole(whole)
    assert answer.response().tool_calls == (ToolCall("one", "add", {"a": 1}),)


def test_an_empty_finish_reason_in_every_chunk_is_no_end() -> None:
    answer = ChatAnswer()
    answer.add(chunk({"content": "Hel"}, ""))
    with pytest.raises(LLMError, match="broke off"):
        answer.response()


def test_chunks_without_choices_or_delta_do_no_harm() -> None:
    answer = ChatAnswer()
    answer.add({"choices": None})
    answer.add({"choices": [{"index": 0, "delta": None, "finish_reason": "stop"}]})
    assert answer.response().text == ""


def test_an_error_in_the_place_of_an_answer_is_one() -> None:
    with pytest.raises(LLMError, match="reported an error"):
        ChatAnswer().add_whole({"error": {"message": "no"}})
    with pytest.raises(ContextOverflow):
        ChatAnswer().add_whole({"error": {"code": "context_length_exceeded"}})
    with pytest.raises(LLMError, match="no choices"):
        ChatAnswer().add_whole({"error": None, "choices": []})
