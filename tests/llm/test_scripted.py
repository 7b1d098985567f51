"""ScriptedChatLLM says what its script says: the model for tests of one's own bots."""

from typing import Any

import pytest

from botservice import BotServiceError, LLMError, ScriptedChatLLM, ToolCall
from botservice.llm.chat import ChatResponse

HELLO: list[dict[str, Any]] = [{"role": "user", "content": "hello"}]


async def test_texts_calls_and_lists_come_in_their_order() -> None:
    llm = ScriptedChatLLM(
        ["one", ToolCall("7", "add", {"a": 1}), ["I add. ", ToolCall("", "add"), ToolCall("", "add")]]
    )
    assert (await llm.chat(HELLO)).text == "one"
    assert (await llm.chat(HELLO)).tool_calls == (ToolCall("7", "add", {"a": 1}),)
    third = await llm.chat(HELLO)
    assert third.text == "I add. "
    assert len({call.id for call in third.tool_calls}) == 2
    assert all(call.id for call in third.tool_calls)


async def test_a_whole_response_is_given_as_it_is() -> None:
    response = ChatResponse("done", (), None)
    assert await ScriptedChatLLM([response]).chat(HELLO) is response


async def test_errors_are_raised_as_classes_and_as_instances() -> None:
    error = LLMError("down", is_transient=False)
    llm = ScriptedChatLLM([error, LookupError, "after"])
    with pytest.raises(LLMError) as caught:
        await llm.chat(HELLO)
    assert caught.value is error
    with pytest.raises(LookupError):
        await llm.chat(HELLO)
    assert (await llm.chat(HELLO)).text == "after"


async def test_functions_of_the_prompt_give_any_reply() -> None:
    async def later(prompt: list[Any]) -> ToolCall:
        return ToolCall("1", "echo", {"text": prompt[-1]["content"]})

    llm = ScriptedChatLLM(
        [lambda prompt: prompt[-1]["content"].upper(), later, lambda _: LookupError, lambda _: ["a", "b"]]
    )
    assert (await llm.chat(HELLO)).text == "HELLO"
    assert (await llm.chat(HELLO)).tool_calls[0].arguments == {"text": "hello"}
    with pytest.raises(LookupError):
        await llm.chat(HELLO)
    assert (await llm.chat(HELLO)).text == "ab"


async def test_one_function_gives_every_reply() -> None:
    llm = ScriptedChatLLM(lambda prompt: f"{len(prompt)} messages")
    assert [(await llm.chat(HELLO * n)).text for n in (1, 2)] == ["1 messages", "2 messages"]


async def test_one_reply_alone_is_a_script_of_one() -> None:
    llm = ScriptedChatLLM("hello")
    assert (await llm.chat(HELLO)).text == "hello"


async def test_the_end_of_the_script_says_so_and_asking_again_does_not_help() -> None:
    llm = ScriptedChatLLM(["only"])
    await llm.chat(HELLO)
    with pytest.raises(BotServiceError, match="has ended: this is call 2") as caught:
        await llm.chat(HELLO)
    assert isinstance(caught.value, LLMError)
    assert not caught.value.is_transient


async def test_a_generator_may_be_the_script() -> None:
    llm = ScriptedChatLLM(f"answer {n}" for n in range(2))
    assert [(await llm.chat(HELLO)).text for _ in range(2)] == ["answer 0", "answer 1"]


async def test_what_it_was_asked_stays_as_it_was() -> None:
    llm = ScriptedChatLLM(["one", "two"])
    prompt = list(HELLO)
    await llm.chat(prompt)
    prompt.append({"role": "assistant", "content": "one"})
    await llm.chat(prompt, [{"type": "function"}])
    assert [len(each) for each in llm.prompts] == [1, 2]
    assert llm.tools == [[], [{"type": "function"}]]


@pytest.mark.parametrize("text", ["", " ", "one", " two  words\n", "a\n\nb\tc ", "日本語 のテキスト"])
async def test_the_pieces_of_a_text_make_the_text(text: str) -> None:
    pieces: list[str] = []
    await ScriptedChatLLM([text]).chat(HELLO, on_text=pieces.append)
    assert "".join(pieces) == text
    assert "" not in pieces


@pytest.mark.parametrize("reply", [None, 5, [None], {"a": 1}])
async def test_what_is_no_reply_is_refused_by_name(reply: Any) -> None:
    with pytest.raises(TypeError, match="a script says texts"):
        await ScriptedChatLLM([reply]).chat(HELLO)


async def test_it_counts_roughly() -> None:
    usage = (await ScriptedChatLLM(["x" * 400]).chat([{"role": "user", "content": "y" * 40}])).usage
    assert usage is not None
    assert (usage.input_tokens, usage.output_tokens) == (11, 101)
