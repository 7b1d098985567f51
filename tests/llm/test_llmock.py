"""LLMock, a real server that answers as several providers do and breaks as they do, and judges how a client took it."""

import asyncio
import os
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from cli.examining import free_port
from standins.tools import add

from botservice import (
    AgentContext,
    AgentService,
    Attachment,
    FunctionsBasedAgent,
    LLMError,
    MessageWindowMessageSelector,
    OpenAIChatLLM,
    RetryPolicy,
    Storage,
)
from botservice.core.errors import LLMFailure

pytestmark = pytest.mark.slow

PROGRAM: Final = Path(__file__).parents[2] / ".model-servers" / "llmock" / "bin" / "llmock"
PNG: Final = Attachment("image/png", "cat.png", data=b"\x89PNG\r\n\x1a\n" + bytes(64))
PATIENT: Final = RetryPolicy(max_attempts=5, first_delay_seconds=0.1, max_delay_seconds=1.0, total_seconds=20.0)
WINDOW: Final = 3_000
PROVIDERS: Final = {
    "OpenAI, Responses": ("/v1", "responses"),
    "OpenAI": ("/v1", "chat"),
    "Mistral": ("/mistral/v1", "chat"),
    "Groq": ("/groq/openai/v1", "chat"),
    "Together": ("/together/v1", "chat"),
    "xAI": ("/xai/v1", "chat"),
}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not PROGRAM.exists():
        pytest.skip("scripts/model-servers installs it")
    port = free_port()
    asked = [PROGRAM, "serve", "--port", str(port), "--context-window", str(WINDOW), "--response-style", "echo"]
    folder = tmp_path_factory.mktemp("llmock")
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(asked, cwd=folder, env={**os.environ, "NO_COLOR": "1"}, stdout=log, stderr=log) as process,
    ):
        try:
            asyncio.run(_wait(port, process))
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


async def _wait(port: int, process: "subprocess.Popen[bytes]") -> None:
    async with asyncio.timeout(60), httpx2.AsyncClient() as client:
        while process.poll() is None:
            try:
                if (await client.get(f"http://127.0.0.1:{port}/health")).is_success:
                    return
            except httpx2.RequestError:
                await asyncio.sleep(0.1)  # it is not there yet
    raise AssertionError("the server has ended")


class Server:
    """The server, as one provider by one wire."""

    def __init__(self, address: str, provider: str, control: httpx2.AsyncClient) -> None:
        path, api = PROVIDERS[provider]
        self.llm = OpenAIChatLLM("m", base_url=address + path, api_key="k", api=api, timeout_seconds=3)
        self._control = control

    async def will(self, *behaviors: dict[str, Any]) -> None:
        """Have the next requests go wrong."""
        (await self._control.post("/_llmock/scenario", json={"behaviors": behaviors})).raise_for_status()

    async def mistakes(self) -> list[str]:
        """Return what a client has made wrong, in the server's eyes."""
        verdict = (await self._control.get("/_llmock/verdict")).json()
        return [each["code"] for each in verdict["findings"] if each["severity"] == "error"]

    async def requests(self) -> list[dict[str, Any]]:
        requests: list[dict[str, Any]] = (await self._control.get("/_llmock/requests")).json()["requests"]
        return requests


@pytest.fixture(params=PROVIDERS)
async def server(address: str, request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    async with httpx2.AsyncClient(base_url=address) as control:
        (await control.post("/_llmock/reset")).raise_for_status()
        made = Server(address, request.param, control)
        yield made
        await made.llm.close()


def serve(storage: Storage, server: Server, tools: Any = ()) -> AgentService:
    selector = MessageWindowMessageSelector(50)
    agent = FunctionsBasedAgent(tools, server.llm, message_selector=selector, prompt="Be brief.", search_k=0)
    return AgentService(agent=agent, storage=storage, model_retries=PATIENT)


async def test_an_answer_arrives_in_pieces(server: Server) -> None:
    pieces: list[str] = []
    response = await server.llm.chat([{"role": "user", "content": "hello there"}], on_text=pieces.append)
    assert "hello there" in response.text
    assert "".join(pieces) == response.text
    assert len(pieces) > 1
    assert response.usage is not None


async def test_a_tool_that_the_server_calls_is_run_and_its_result_read(
    server: Server, context: AgentContext, storage: Storage
) -> None:
    calls = [{"name": "add", "arguments": {"a": 1, "b": number}} for number in (2, 3)]
    await server.will({"type": "reply", "tool_calls": calls})
    answer = await serve(storage, server, [add]).prompt(context, "add them")
    assert answer.text
    (step,) = context.completed_steps
    assert [(call.name, dict(call.arguments)) for call in step.tool_calls or ()] == [
        ("add", {"a": 1, "b": 2}),
        ("add", {"a": 1, "b": 3}),
    ]
    assert "3" in str(step.observations)
    assert await server.mistakes() == []


@pytest.mark.parametrize("kind", ["malformed_arguments", "unknown_tool"])
async def test_a_call_that_cannot_be_run_goes_back_to_the_model(
    server: Server, context: AgentContext, storage: Storage, kind: str
) -> None:
    await server.will({"type": "tool_fault", "kind": kind})
    assert (await serve(storage, server, [add]).prompt(context, "add them")).text
    assert await server.mistakes() == []


@pytest.mark.parametrize("kind", ["disconnect", "truncate", "malformed", "stall"])
async def test_a_stream_that_breaks_is_no_answer_and_is_asked_for_again(
    server: Server, context: AgentContext, storage: Storage, kind: str
) -> None:
    await server.will({"type": "stream_fault", "kind": kind, "after_chunks": 6, "stall_seconds": 30})
    answer = await serve(storage, server).prompt(context, "please say all of these words once more")
    assert "please say all of these words once more" in answer.text
    assert await server.mistakes() == []


async def test_a_rate_limit_is_waited_for_as_long_as_the_server_says(
    server: Server, context: AgentContext, storage: Storage
) -> None:
    await server.will({"type": "fail", "status": 429, "retry_after": 0.6, "times": 2})
    assert "hello" in (await serve(storage, server).prompt(context, "hello")).text
    assert [each["status"] for each in await server.requests()] == [429, 429, 200]
    assert await server.mistakes() == []


@pytest.mark.parametrize(
    ("status", "kind", "tries"),
    [(401, LLMFailure.UNAUTHORIZED, 1), (400, LLMFailure.BAD_REQUEST, 1), (503, LLMFailure.UNAVAILABLE, 5)],
)
async def test_a_failure_is_tried_again_only_where_that_may_help(
    server: Server, context: AgentContext, storage: Storage, status: int, kind: LLMFailure, tries: int
) -> None:
    await server.will({"type": "fail", "status": status, "times": None})
    with pytest.raises(LLMError) as caught:
        await serve(storage, server).prompt(context, "hello")
    assert caught.value.kind is kind
    assert len(await server.requests()) == tries
    assert await server.mistakes() == []


async def test_a_prompt_that_is_too_long_is_shortened(server: Server, context: AgentContext, storage: Storage) -> None:
    for number in range(20):
        await context.chat_history.append_user_message(f"{number} " + "word " * 400)
    assert (await serve(storage, server).prompt(context, "hello")).text
    assert [each["status"] for each in await server.requests()][:1] == [400]
    assert await server.mistakes() == []


async def test_a_picture_and_what_was_said_before_are_taken(
    server: Server, context: AgentContext, storage: Storage
) -> None:
    service = serve(storage, server)
    await service.prompt(context, "hello")
    assert "couldn’t see" not in (await service.prompt(context, "what is this?", attachments=[PNG])).text


async def test_a_call_that_is_stopped_leaves_the_next_one_an_answer(
    server: Server, context: AgentContext, storage: Storage
) -> None:
    await server.will({"type": "stream_fault", "kind": "stall", "after_chunks": 6, "stall_seconds": 30})
    heard = asyncio.Event()
    call = asyncio.create_task(
        server.llm.chat([{"role": "user", "content": "say many words " * 9}], on_text=lambda _: heard.set())
    )
    async with asyncio.timeout(20):
        await heard.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert "and now?" in (await serve(storage, server).prompt(context, "and now?")).text
