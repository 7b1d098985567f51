"""Answers of many servers, as they came, read by the real client over real HTTP: one file and one line for each.

`table.jsonl` says of each file which servers answer so and what is read: text, calls, why it ended, the figures, what
the model thought, the fields that go back to it; or which error it is.
"""

import json
from pathlib import Path
from typing import Any, Final

import pytest
from standins.openai_api import OpenAIApi, Recorded

from botservice import LLMError, OpenAIChatLLM

FOLDER: Final = Path(__file__).parents[1] / "data" / "answers"
ANSWERS: Final = [json.loads(line) for line in (FOLDER / "table.jsonl").read_text().splitlines()]
HELLO: Final = [{"role": "user", "content": "hello"}]
TOOLS: Final = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": {}}}}
    for name in ("add", "mul")
]


def recorded(answer: dict[str, Any]) -> Recorded:
    body = (FOLDER / answer["file"]).read_bytes()
    return Recorded(body, answer.get("content_type", "text/event-stream"), then=answer.get("then", "close"))


@pytest.mark.parametrize("answer", ANSWERS, ids=[answer["file"] for answer in ANSWERS])
async def test_an_answer_is_read_as_its_server_means_it(api: OpenAIApi, answer: dict[str, Any]) -> None:
    api.reply = lambda _: recorded(answer)
    llm = OpenAIChatLLM(answer.get("model", "m"), base_url=api.base_url, api_key="none")
    shown: list[str] = []
    try:
        if "error" in answer:
            with pytest.raises(LLMError) as caught:
                await llm.chat(HELLO, TOOLS, on_text=shown.append)
            assert (caught.value.kind.value, caught.value.is_transient) == (answer["error"], answer["transient"])
            return
        response = await llm.chat(HELLO, TOOLS, on_text=shown.append)
    finally:
        await llm.close()
    assert response.text == "".join(shown) == answer["text"]
    calls = [[call.id, call.name, dict(call.arguments)] for call in response.tool_calls]
    assert (calls, response.finish_reason) == (answer["calls"], answer["finish"])
    usage = None if response.usage is None else [response.usage.input_tokens, response.usage.output_tokens]
    assert usage == answer.get("usage")
    item = response.items[0] if response.items else {}
    assert item.get("thinking") == answer.get("thinking")
    assert item.get("fields") == answer.get("fields")
    assert item.get("calls") == answer.get("of_calls")


async def test_a_piece_that_is_cut_anywhere_never_leaves_the_rest_for_the_whole(api: OpenAIApi) -> None:
    llm = OpenAIChatLLM("m", base_url=api.base_url, api_key="none")
    pieces = [json.dumps({"choices": [{"delta": {"content": text}}]}).encode() for text in ("Do ", "nöt ", "go.")]
    end = json.dumps({"choices": [{"delta": {}, "finish_reason": "stop"}]}).encode()
    for size in range(1, len(pieces[1])):
        events = [pieces[0], pieces[1][:size], pieces[2], end, b"[DONE]"]
        sent = Recorded(b"".join(b"data: " + each + b"\n\n" for each in events), "text/event-stream")
        api.reply = lambda _, sent=sent: sent
        with pytest.raises(LLMError) as caught:
            await llm.chat(HELLO)
        assert caught.value.is_transient, size
    await llm.close()


def test_every_recorded_file_has_its_line() -> None:
    assert sorted(path.name for path in FOLDER.iterdir()) == sorted(
        [*(each["file"] for each in ANSWERS), "table.jsonl"]
    )
