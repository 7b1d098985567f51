"""A person in Telegram is answered once, whichever model can, and may ask which one it was."""

import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from standins.bot_api import BotApi
from standins.openai_api import OpenAIApi, Reply, ToolUse, quota_exceeded, rate_limited, server_error
from standins.openai_catalogue import model_not_found

from botservice import FallbackLLM, OpenAIChatLLM, tool


@tool
async def current_hour() -> str:
    """Tell the hour."""
    return "noon"


class Minds:
    """What each model replies, and what it was asked."""

    def __init__(self) -> None:
        self.replies: dict[str, Any] = {}
        self.asked: list[str] = []

    def __call__(self, body: dict[str, Any]) -> Any:
        self.asked.append(body["model"])
        given = self.replies.get(body["model"], f"I am {body['model']}")
        return given(body) if callable(given) else given


@pytest.fixture
def minds() -> Minds:
    return Minds()


@pytest.fixture
def server(minds: Minds) -> Iterator[OpenAIApi]:
    with OpenAIApi.running(minds) as running:
        yield running


@contextlib.asynccontextmanager
async def two_models(server: OpenAIApi) -> AsyncIterator[FallbackLLM]:
    llm = FallbackLLM([OpenAIChatLLM(name, base_url=server.base_url, api_key="k") for name in ("first", "second")])
    yield llm
    await llm.close()


@pytest.mark.parametrize(
    "failure", [model_not_found("first"), rate_limited(60), quota_exceeded(), server_error(500), server_error(503)]
)
async def test_the_second_model_answers_where_the_first_cannot(
    api: BotApi, bot_on: Any, server: OpenAIApi, minds: Minds, failure: Any
) -> None:
    minds.replies["first"] = failure
    async with two_models(server) as llm, bot_on(api, llm):
        api.person_says("hello", chat_id=42)
        await api.message(42, "I am second")
        api.person_says("/why", chat_id=42)
        why = await api.message(42, lambda shown: "the model" in shown.text)
    assert "the model second: 1 call," in why.text
    assert [message.text for message in api.visible_messages(42) if message.text.startswith("I am")] == ["I am second"]


async def test_a_model_that_hangs_is_passed_over(api: BotApi, bot_on: Any, server: OpenAIApi, minds: Minds) -> None:
    async with two_models(server) as llm:
        await llm.chat([{"role": "user", "content": "hello"}])  # it is connected
        minds.replies["first"] = Reply(hang=True)
        llm.llms[0].timeout_seconds = 0.5  # type: ignore[attr-defined]  # it is an OpenAIChatLLM
        async with bot_on(api, llm):
            api.person_says("hello", chat_id=42)
            await api.message(42, "I am second")


async def test_an_answer_that_broke_off_is_begun_anew_and_shown_once(
    api: BotApi, bot_on: Any, server: OpenAIApi, minds: Minds
) -> None:
    minds.replies["first"] = Reply(text="Once upon a time there was", drop_after=3)
    async with two_models(server) as llm, bot_on(api, llm):
        api.person_says("a story", chat_id=42)
        await api.message(42, "I am second")
    assert minds.asked == ["first", "second"], "the service tries again, and the first one is left alone meanwhile"
    assert not [message.text for message in api.visible_messages(42) if "Once" in message.text]


async def test_a_turn_goes_on_with_the_second_model_between_two_steps(
    api: BotApi, bot_on: Any, server: OpenAIApi, minds: Minds
) -> None:
    def first(body: dict[str, Any]) -> Any:
        return server_error(503) if body["messages"][-1]["role"] == "tool" else ToolUse("current_hour")

    minds.replies["first"] = first
    async with two_models(server) as llm, bot_on(api, llm, tools=[current_hour]):
        api.person_says("what time is it?", chat_id=42)
        await api.message(42, "I am second")
        api.person_says("/why", chat_id=42)
        why = await api.message(42, lambda shown: "the model" in shown.text)
    assert minds.asked == ["first", "first", "second"]
    assert "the model first, second: 2 calls" in why.text
