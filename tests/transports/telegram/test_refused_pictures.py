"""A picture that the model does not take silences neither the person who sent it nor the group."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from standins import openai_providers as providers
from standins.bot_api import BotApi, Person
from standins.openai_api import OpenAIApi

from botservice import FallbackLLM, OpenAIChatLLM

PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
GROUP = -1001000000001
ADA, BOB = Person(1, "Ada"), Person(2, "Bob")


def mind(body: dict[str, Any]) -> Any:
    return providers.text_only(body) or f"I am {body['model']}"


@pytest.fixture
def server() -> Iterator[OpenAIApi]:
    with OpenAIApi.running(mind) as running:
        yield running


@pytest.fixture
async def llm(server: OpenAIApi) -> Any:
    made = FallbackLLM([OpenAIChatLLM(name, base_url=server.base_url, api_key="k") for name in ("first", "second")])
    yield made
    await made.close()


async def test_a_photo_in_a_private_chat_is_answered_with_what_was_not_seen(api: BotApi, bot_on: Any, llm: Any) -> None:
    async with bot_on(api, llm):
        api.person_sends_photo(PNG, chat_id=42, caption="what is this?")
        (answer,) = await api.messages(42, 1)
        assert answer.text.startswith("I am first\n\n(The model couldn’t see the picture. It does")
        api.person_says("and now?", chat_id=42)
        assert (await api.messages(42, 2))[-1].text == "I am first"


async def test_a_photo_of_one_person_silences_nobody_in_a_group_and_takes_no_model_away(
    api: BotApi, bot_on: Any, llm: Any, server: OpenAIApi
) -> None:
    api.add_group(GROUP, members=[ADA, BOB])
    async with bot_on(api, llm):
        api.person_sends_photo(PNG, chat_id=GROUP, user=ADA, caption=f"@{api.username} what is this?")
        await api.messages(GROUP, 1)
        api.person_says(f"@{api.username} hello", chat_id=GROUP, user=BOB)
        assert (await api.messages(GROUP, 2))[-1].text == "I am first"
    assert {body["model"] for body in server.bodies()} == {"first"}
    assert sum("image_url" in json.dumps(body) for body in server.bodies()) == 1
