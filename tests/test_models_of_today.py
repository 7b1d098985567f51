"""Every family of OpenAI's models answers people wherever they write, with tools and without, by rules of its own."""

import asyncio
import contextlib
import itertools
import json
import socket
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from standins.bot_api import BotApi
from standins.openai_api import CHAT, RESPONSES, OpenAIApi
from standins.slack_api import SlackApi
from standins.web_server import web_server

from botservice.app import running
from botservice.config.settings import Settings
from botservice.factories import build_service
from botservice.llm.server_limits import is_openai
from botservice.transport_plugins import build_transports

MODELS = ["gpt-5.5", "gpt-5.6", "gpt-6-luna", "gpt-6-astra", "gpt-6.1-terra", "gpt-6.1-sol", "gpt-6.2-sol"]
BY_CHAT = ("gpt-5.5", "llama3.2")  # what takes tools there without being told anything
TIMEOUT_SECONDS = 60.0


@pytest.fixture(scope="module")
def llm() -> Iterator[OpenAIApi]:
    with OpenAIApi.running() as api:
        yield api


@pytest.fixture(scope="module")
def platforms() -> Iterator["Platforms"]:
    with BotApi.running() as telegram, SlackApi.running() as slack:
        yield Platforms(telegram, slack)


@dataclass
class Platforms:
    """Where people write. Everyone who asks is a person new there."""

    telegram: BotApi
    slack: SlackApi
    chats: Iterator[int] = field(default_factory=lambda: itertools.count(1000))

    def settings(self, url: str, llm: OpenAIApi, **others: Any) -> Settings:
        return Settings(
            _env_file=None,
            database_url=url,
            openai_api_key="sk-stand-in",
            openai_base_url=llm.base_url,
            openai_embedding_model="none",
            telegram_bot_token=self.telegram.token,
            telegram_api_url=self.telegram.url,
            slack_bot_token=self.slack.bot_token,
            slack_signing_secret=self.slack.signing_secret,
            slack_api_url=self.slack.url,
            **others,
        )

    @contextlib.asynccontextmanager
    async def bot(self, settings: Settings) -> AsyncIterator[str]:
        """Run a bot on all of them until the block is left; yield where its pages are."""
        transports = build_transports(settings)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            async with running(settings, build_service(settings), transports):
                routes = [route for transport in transports for route in transport.routes]
                async with web_server(routes, listener):
                    self.slack.events.http_url = f"{url}/slack/events"
                    yield url

    async def ask_in_telegram(self, text: str) -> str:
        chat = next(self.chats)
        self.telegram.person_says(text, chat_id=chat)

        def is_answered() -> bool:
            return self.telegram.visible_texts(chat) not in ([], ["…"])

        await asyncio.to_thread(self.telegram.wait_until, is_answered, timeout=TIMEOUT_SECONDS, what="it answers")
        return self.telegram.visible_texts(chat)[-1]

    async def ask_in_slack(self, text: str) -> str:
        thread = self.slack.person_says(text)

        def answers() -> list[str]:
            said = [post for post in self.slack.bot_posts() if post.thread_ts == thread and not post.is_streaming]
            return [post.shown for post in said]

        return (await self.slack.until(answers, timeout=TIMEOUT_SECONDS))[-1]


async def ask_in_browser(url: str, text: str) -> str:
    """Return the answer as the page's event stream brings it."""
    async with httpx.AsyncClient(base_url=url, timeout=TIMEOUT_SECONDS, verify=False) as client:
        await client.get("/", headers={"Accept": "text/html"})
        async with client.stream("GET", "/web/events") as events:
            accepted = await client.post("/web/messages", json={"id": "message-1", "text": text})
            assert accepted.status_code == 202, accepted.text
            async for line in events.aiter_lines():
                data = json.loads(line.removeprefix("data: ")) if line.startswith("data: {") else {}
                if data.get("role") == "assistant":
                    return str(data["text"])
    raise AssertionError("the stream ended without an answer")


class Watch:
    """What a model server got and gave since a moment."""

    def __init__(self, llm: OpenAIApi) -> None:
        self._llm = llm
        self._since = len(llm.journal.entries())
        self._given = len(llm.seals.given)

    @property
    def refusals(self) -> list[str]:
        """What was refused, and at which path."""
        ended = [end for path in (CHAT, RESPONSES) for end in self._llm.endings(path=path)]
        return [end.path for end in ended if end.request_seq > self._since and end.status != 200]

    def check_reasoning(self) -> None:
        """Check that what the model thought in a step went back, unchanged, with what the tool then said."""
        bodies = [request.body for request in self._llm.requests(RESPONSES, since=self._since)]
        given = self._llm.seals.given[self._given :]
        assert len(given) == len(bodies), "a model that reasons does it in every answer"
        assert [len(reasoning(body)) for body in bodies] == [int(used_tool(body)) for body in bodies]
        returned = [item for body in bodies for item in reasoning(body)]
        assert all(item in given for item in returned)
        assert len({item["id"] for item in returned}) == len(returned), "each step has its own"


def used_tool(body: dict[str, Any]) -> bool:
    return body["input"][-1].get("type") == "function_call_output"


def reasoning(body: dict[str, Any]) -> list[dict[str, Any]]:
    return [item for item in body["input"] if item.get("type") == "reasoning"]


async def check_answers(platforms: Platforms, settings: Settings) -> None:
    """Check that a bot answers everywhere, with a tool and without."""
    async with platforms.bot(settings) as url:
        assert await platforms.ask_in_telegram("hello") == "You said: hello"
        others = await asyncio.gather(platforms.ask_in_slack("hello"), ask_in_browser(url, "hello"))
        assert others == ["You said: hello"] * 2
        wish = "use current_time {}"
        answers = await asyncio.gather(
            platforms.ask_in_telegram(wish), platforms.ask_in_slack(wish), ask_in_browser(url, wish)
        )
        assert [answer.partition(":")[0] for answer in answers] == ["The tool says"] * 3


@pytest.mark.parametrize("model", MODELS)
async def test_openai_itself_is_asked_in_its_newer_way(
    monkeypatch: pytest.MonkeyPatch, sqlite_url: str, platforms: Platforms, llm: OpenAIApi, model: str
) -> None:
    monkeypatch.setattr("botservice.llm.server_limits._OPENAI_HOST", "127.0.0.1")
    is_openai.cache_clear()
    watch = Watch(llm)
    try:
        await check_answers(platforms, platforms.settings(sqlite_url, llm, openai_model=model))
    finally:
        is_openai.cache_clear()  # elsewhere, a server on loopback is none of OpenAI's
    assert watch.refusals == []
    watch.check_reasoning()


@pytest.mark.parametrize("model", [*MODELS, "llama3.2"])
async def test_another_server_shows_by_a_refusal_which_way_it_wants(
    sqlite_url: str, platforms: Platforms, llm: OpenAIApi, model: str
) -> None:
    watch = Watch(llm)
    await check_answers(platforms, platforms.settings(sqlite_url, llm, openai_model=model))
    assert watch.refusals == ([] if model in BY_CHAT else [CHAT]), "one refusal points the way, once"
    watch.check_reasoning()


async def test_a_way_that_was_chosen_needs_no_refusal(sqlite_url: str, platforms: Platforms, llm: OpenAIApi) -> None:
    watch = Watch(llm)
    settings = platforms.settings(sqlite_url, llm, openai_model="gpt-6.1-sol", openai_api="responses")
    await check_answers(platforms, settings)
    assert watch.refusals == []
    watch.check_reasoning()
