"""The real server of llama.cpp, with a tiny random model that the test makes: both wires, and what it refuses."""

import asyncio
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from botservice import ContextOverflow, OpenAIChatLLM
from botservice.llm.chat import SaidMessage

pytestmark = pytest.mark.slow

ROOT: Final = Path(__file__).parents[2]
PYTHON: Final = ROOT / ".model-servers" / "llama" / "bin" / "python"
HELLO: Final = [{"role": "user", "content": "hello"}]
TOOLS: Final = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}]
CALL: Final = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
PIXEL: Final = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not PYTHON.exists():
        pytest.skip("scripts/model-servers installs it")
    folder = tmp_path_factory.mktemp("llama")
    asked = [PYTHON, ROOT / "tests" / "standins" / "llama_server.py", folder]
    with (folder / "log").open("wb") as log, subprocess.Popen(asked, stdout=subprocess.PIPE, stderr=log) as process:
        assert process.stdout is not None
        try:
            line = next((each for each in process.stdout if each.startswith(b"http://")), None)
            assert line is not None, (folder / "log").read_text()
            yield f"{line.decode().strip()}/v1"
        finally:
            process.terminate()


@pytest.fixture(params=["chat", "responses"])
async def llm(address: str, request: pytest.FixtureRequest) -> AsyncIterator[OpenAIChatLLM]:
    made = OpenAIChatLLM("tiny", base_url=address, api_key="x", api=request.param, max_answer_tokens=20, temperature=0)
    yield made
    await made.close()


async def test_an_answer_arrives_in_pieces(llm: OpenAIChatLLM) -> None:
    pieces: list[str] = []
    response = await llm.chat([{"role": "system", "content": "Be brief."}, *HELLO], on_text=pieces.append)
    assert response.text == "".join(pieces) != ""
    assert response.usage is not None
    assert response.usage.output_tokens == 20


async def test_the_second_message_of_a_chat_is_answered(llm: OpenAIChatLLM) -> None:
    earlier = [*HELLO, {"role": "assistant", "content": "hi"}, {"role": "user", "content": "and now?"}]
    assert (await llm.chat(earlier)).text


async def test_calls_of_tools_go_back_with_their_results(llm: OpenAIChatLLM) -> None:
    asked: list[Any] = [*HELLO, SaidMessage({"role": "assistant", "content": None, "tool_calls": [CALL]})]
    assert (await llm.chat([*asked, {"role": "tool", "tool_call_id": "call_1", "content": "3"}], TOOLS)).text


async def test_a_prompt_that_is_too_long_is_told_apart(llm: OpenAIChatLLM) -> None:
    with pytest.raises(ContextOverflow):
        await llm.chat([{"role": "user", "content": "word " * 2_000}])


async def test_a_picture_is_left_out_and_not_sent_again(llm: OpenAIChatLLM) -> None:
    shown = [{"type": "text", "text": "what is it?"}, {"type": "image_url", "image_url": {"url": PIXEL}}]
    response = await llm.chat([{"role": "user", "content": shown}])
    assert response.text
    assert response.left_out == ("image/png",)
    assert llm.refused == {"image"}


async def test_a_call_that_is_stopped_ends_at_the_server_which_answers_one_at_a_time(
    address: str, llm: OpenAIChatLLM
) -> None:
    endless = OpenAIChatLLM("tiny", base_url=address, api_key="x", api=llm.api, max_answer_tokens=100_000)
    heard = asyncio.Event()
    call = asyncio.create_task(endless.chat(HELLO, on_text=lambda _: heard.set()))
    async with asyncio.timeout(60):
        await heard.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert (await llm.chat(HELLO)).text
    await endless.close()


async def test_many_calls_in_a_row_need_no_second_try(llm: OpenAIChatLLM) -> None:
    for _ in range(12):
        assert (await llm.chat(HELLO)).text
