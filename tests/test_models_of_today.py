"""Every family of OpenAI's models answers people, with tools and without, by the rules of its own."""

import asyncio
from collections.abc import Iterator

import pytest
from standins.bot_api import BotApi
from standins.openai_api import CHAT, RESPONSES, OpenAIApi

from botservice.app import build_service, running
from botservice.settings import Settings
from transports.registry import build_transports

MODELS = ["gpt-5.5", "gpt-5.6", "gpt-6-luna", "gpt-6-astra", "gpt-6.1-terra", "gpt-6.1-sol", "gpt-6.2-sol", "llama3.2"]


@pytest.fixture
def telegram() -> Iterator[BotApi]:
    with BotApi.running() as api:
        yield api


@pytest.fixture
def llm() -> Iterator[OpenAIApi]:
    with OpenAIApi.running() as api:
        yield api


@pytest.mark.parametrize("api", ["auto", "responses"])
@pytest.mark.parametrize("model", MODELS)
async def test_it_answers_in_telegram(sqlite_url: str, telegram: BotApi, llm: OpenAIApi, model: str, api: str) -> None:
    chosen = Settings(
        _env_file=None,
        database_url=sqlite_url,
        openai_api_key=None,
        openai_base_url=llm.base_url,
        openai_model=model,
        openai_api=api,
        telegram_bot_token=telegram.token,
        telegram_api_url=telegram.url,
    )
    async with running(chosen, build_service(chosen), build_transports(chosen)):
        telegram.person_says("hello", chat_id=1000)
        await shows(telegram, ["You said: hello"])
        telegram.person_says("use current_time {}", chat_id=1000)
        await shows(telegram, ["You said: hello", "The tool says: "])
    refused = [ended for path in (CHAT, RESPONSES) for ended in llm.endings(path=path) if ended.status != 200]
    assert len(refused) == (api == "auto" and model not in ("gpt-5.5", "llama3.2")), "one refusal points the way"


async def shows(telegram: BotApi, texts: list[str]) -> None:
    def holds() -> bool:
        seen = telegram.visible_texts(1000)
        return len(seen) == len(texts) and all(map(str.startswith, seen, texts))

    await asyncio.to_thread(telegram.wait_until, holds, timeout=60, what=f"the chat shows {texts}")
