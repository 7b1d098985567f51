"""The real LiteLLM proxy, in an environment of its own: with models that it mocks, and as a gateway to OpenAI."""

import asyncio
import json
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from cli.examining import free_port
from standins.openai_api import RESPONSES, OpenAIApi, ToolUse

from botservice import ContextOverflow, LLMError, OpenAIChatLLM, ToolCall
from botservice.core.errors import LLMFailure
from botservice.llm.chat import SaidMessage

pytestmark = pytest.mark.slow

PROGRAM: Final = Path(__file__).parents[2] / ".model-servers" / "litellm" / "bin" / "litellm"
KEY: Final = "sk-Zq8vT3nLw7RkY2mX9pB4cD6fG1hJ5sA0"
HELLO: Final = [{"role": "user", "content": "hello"}]
TOOLS: Final = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object", "properties": {}}}}]
PIXEL: Final = (
    "data:image/png;base64,"
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
MOCKED: Final = {
    "plain": "Hello from the mock",
    "overflow": "litellm.ContextWindowExceededError",
    "rate": "litellm.RateLimitError",
    "error": "litellm.InternalServerError",
}


def _mind(body: dict[str, Any]) -> Any:
    if any(message["role"] == "tool" for message in body["messages"]):
        return "done"
    is_two = "two" in json.dumps(body["messages"])
    return [ToolUse("add", {"a": 1}), ToolUse("add", {"a": 2})] if is_two else "plain"


@pytest.fixture(scope="module")
def openai() -> Iterator[OpenAIApi]:
    with OpenAIApi.running(_mind, context_window=2_000) as api:
        yield api


@pytest.fixture(scope="module")
def proxy(openai: OpenAIApi, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not PROGRAM.exists():
        pytest.skip("scripts/model-servers installs it")
    port = free_port()
    models = [
        {"model_name": name, "litellm_params": {"model": "openai/mock", "api_key": "x", "mock_response": said}}
        for name, said in MOCKED.items()
    ] + [
        {"model_name": name, "litellm_params": {"model": f"openai/{name}", "api_key": "x", "api_base": openai.base_url}}
        for name in ("gpt-5.5", "gpt-6.1-terra")
    ]
    config = tmp_path_factory.mktemp("litellm") / "config.yaml"
    config.write_text(json.dumps({"model_list": models, "general_settings": {"master_key": KEY}}))
    environment = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    log = config.with_name("log").open("wb")
    asked = [PROGRAM, "--config", config, "--host", "127.0.0.1", "--port", str(port), "--telemetry", "False"]
    process = subprocess.Popen(asked, env=environment, cwd=config.parent, stdout=log, stderr=log)
    try:
        asyncio.run(_wait(port, process))
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.terminate()
        process.wait(30)
        log.close()


async def _wait(port: int, process: "subprocess.Popen[bytes]") -> None:
    async with asyncio.timeout(120), httpx2.AsyncClient() as client:
        while process.poll() is None:
            try:
                if (await client.get(f"http://127.0.0.1:{port}/health/liveliness")).is_success:
                    return
            except httpx2.RequestError:
                await asyncio.sleep(0.2)  # it is not there yet
    raise AssertionError("the proxy has ended")


@pytest.fixture
async def ask(proxy: str) -> AsyncIterator[Any]:
    made: list[OpenAIChatLLM] = []

    async def asked(name: str, messages: Any = HELLO, tools: Any = TOOLS, *, api: str = "chat", key: str = KEY) -> Any:
        made.append(OpenAIChatLLM(name, base_url=proxy, api_key=key, api=api))
        return await made[-1].chat(messages, tools)

    yield asked
    for each in made:
        await each.close()


async def test_a_plain_answer_is_read(ask: Any) -> None:
    response = await ask("plain")
    assert (response.text, response.finish_reason) == ("Hello from the mock", "stop")
    assert response.usage.output_tokens > 0


async def test_an_overflow_is_one(ask: Any) -> None:
    with pytest.raises(ContextOverflow):
        await ask("overflow")


@pytest.mark.parametrize(
    ("name", "key", "kind"),
    [
        ("rate", KEY, LLMFailure.RATE_LIMITED),
        ("error", KEY, LLMFailure.UNAVAILABLE),
        ("nobody", KEY, LLMFailure.UNKNOWN_MODEL),
        ("plain", "sk-wrong", LLMFailure.UNAUTHORIZED),
    ],
)
async def test_a_failure_has_its_kind(ask: Any, name: str, key: str, kind: LLMFailure) -> None:
    with pytest.raises(LLMError) as caught:
        await ask(name, key=key)
    assert caught.value.kind is kind


@pytest.mark.parametrize(("api", "name"), [("chat", "gpt-5.5"), ("responses", "gpt-6.1-terra")])
async def test_two_calls_of_tools_and_their_results_go_through_a_gateway(ask: Any, api: str, name: str) -> None:
    question = [{"role": "user", "content": "two"}]
    response = await ask(name, question, api=api)
    assert [(call.name, dict(call.arguments)) for call in response.tool_calls] == [("add", {"a": 1}), ("add", {"a": 2})]
    said = SaidMessage(
        {"role": "assistant", "content": None, "tool_calls": _calls(response.tool_calls)}, response.items
    )
    results = [{"role": "tool", "tool_call_id": call.id, "content": "3"} for call in response.tool_calls]
    assert (await ask(name, [*question, said, *results], api=api)).text == "done"


@pytest.mark.parametrize(("api", "name"), [("chat", "gpt-5.5"), ("responses", "gpt-6.1-terra")])
async def test_earlier_answers_pictures_and_long_prompts_go_through_a_gateway(
    ask: Any, openai: OpenAIApi, api: str, name: str
) -> None:
    shown = [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": PIXEL}}]
    prompt = [*HELLO, {"role": "assistant", "content": "hi"}, {"role": "user", "content": shown}]
    assert (await ask(name, prompt, api=api)).text == "plain"
    assert "image/png;base64" in json.dumps(
        openai.bodies(RESPONSES if api == "responses" else "/v1/chat/completions")[-1]
    )
    with pytest.raises(ContextOverflow):
        await ask(name, [{"role": "user", "content": "word " * 20_000}], api=api)


def _calls(calls: tuple[ToolCall, ...]) -> list[dict[str, Any]]:
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(dict(call.arguments))},
        }
        for call in calls
    ]
