"""What a model refuses silences nobody, wherever people write: in Telegram, in Slack and in the browser.

A picture that is refused is answered with what was left out; words that are refused with the way out. The next plain
question is answered, in private and in groups, also that of another person.
"""

import asyncio
import base64
import contextlib
import itertools
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any, Protocol

import httpx
import pytest
from standins.bot_api import BotApi, Person
from standins.openai_api import OpenAIApi, Recorded
from standins.slack_api import BOT_USER, SlackApi
from standins.web_server import web_server

from botservice.app import running
from botservice.config.settings import Settings
from botservice.factories import build_service
from botservice.texts import template_in_language
from botservice.transport_plugins import build_transports

PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
GROUP = -1001000000001
ADA, BOB = Person(1, "Ada"), Person(2, "Bob")
REFUSALS = {
    "a picture, by a server that says so": ("image input is not supported", 400),
    "a picture, by llama.cpp": ("image input is not supported - hint: you may need to provide the mmproj", 500),
    "a picture, by a server that does not say so": ("Something is wrong.", 400),
    "a picture, as too large": ("", 413),
}
FILTERS = {
    "Azure": {"error": {"message": "The response was filtered", "code": "content_filter", "status": 400}},
    "DeepSeek": {"error": {"message": "Content Exists Risk", "type": "invalid_request_error"}},
    "a server that does not say so": {"detail": "Bad."},
}


class Place(Protocol):
    """Where a person writes."""

    async def say(self, text: str, picture: bytes | None = None) -> str:
        """Return what is answered to a message."""


class InTelegram:
    def __init__(self, api: BotApi, chat: int, people: Iterator[Person | None], mention: str = "") -> None:
        self._api, self._chat, self._people, self._mention = api, chat, people, mention

    async def say(self, text: str, picture: bytes | None = None) -> str:
        before = len(self._shown())
        who: dict[str, Any] = {"chat_id": self._chat}
        if (user := next(self._people)) is not None:
            who["user"] = user
        if picture is None:
            self._api.person_says(self._mention + text, **who)
        else:
            self._api.person_sends_photo(picture, caption=self._mention + text, **who)
        told = "it answers"
        await asyncio.to_thread(self._api.wait_until, lambda: len(self._shown()) > before, timeout=60, what=told)
        return self._shown()[-1]

    def _shown(self) -> list[str]:
        return [text for text in self._api.visible_texts(self._chat) if text != "…"]


class InSlack:
    def __init__(self, api: SlackApi, channel: str, people: Iterator[str], mention: str = "") -> None:
        self._api, self._channel, self._people, self._mention = api, channel, people, mention
        self._thread: str | None = None

    async def say(self, text: str, picture: bytes | None = None) -> str:
        before = len(self._posts())
        files = [] if picture is None else [self._api.add_file("cat.png", picture, "image/png")]
        said = self._api.person_says(
            self._mention + text, channel=self._channel, user=next(self._people), thread_ts=self._thread, files=files
        )
        self._thread = self._thread or said
        await self._api.until(lambda: self._posts()[before:], timeout=60)
        return self._posts()[-1]

    def _posts(self) -> list[str]:
        return [
            each.shown
            for each in self._api.bot_posts(self._channel)
            if each.thread_ts == self._thread and not each.is_streaming
        ]


class InBrowser:
    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client
        self._numbers = itertools.count(1)

    async def say(self, text: str, picture: bytes | None = None) -> str:
        await self._client.get("/", headers={"Accept": "text/html"})
        files = [] if picture is None else [{"name": "cat.png", "mime_type": "image/png", "data": encoded(picture)}]
        async with self._client.stream("GET", "/web/events") as events:
            name = f"message-{next(self._numbers)}"
            sent = await self._client.post("/web/messages", json={"id": name, "text": text, "files": files})
            assert sent.status_code == 202, sent.text
            is_shown = False
            async for line in events.aiter_lines():
                data = json.loads(line.removeprefix("data: ")) if line.startswith("data: {") else {}
                is_shown = is_shown or data.get("text") == text
                is_apology = "place" in data and "text" in data  # which is no part of the conversation
                if is_shown and (data.get("role") == "assistant" or is_apology):
                    return str(data["text"])
        raise AssertionError("the stream ended without an answer")


def is_told(said: str, key: str, value: str) -> bool:
    """Return whether a person is told something, in the language that they have set on the platform."""
    for language in ("en", "de"):
        before, _, after = template_in_language(key, language).partition(value)
        if before.strip("(") in said and after.strip(")") in said:
            return True
    return False


def encoded(data: bytes) -> str:
    return base64.b64encode(data).decode()


class Platforms:
    """One bot on all platforms, and a mind for its model."""

    def __init__(self, telegram: BotApi, slack: SlackApi, llm: OpenAIApi) -> None:
        self.telegram, self.slack, self.llm = telegram, slack, llm
        self.url = ""

    @contextlib.asynccontextmanager
    async def bot(self, database_url: str) -> AsyncIterator[None]:
        settings = Settings(
            _env_file=None,
            database_url=database_url,
            openai_api_key="sk-stand-in",
            openai_base_url=self.llm.base_url,
            openai_model="m",
            openai_embedding_model="none",
            telegram_bot_token=self.telegram.token,
            telegram_api_url=self.telegram.url,
            slack_bot_token=self.slack.bot_token,
            slack_signing_secret=self.slack.signing_secret,
            slack_api_url=self.slack.url,
        )
        transports = build_transports(settings)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
            async with running(settings, build_service(settings), transports):
                routes = [route for transport in transports for route in transport.routes]
                async with web_server(routes, listener):
                    self.slack.events.http_url = f"{self.url}/slack/events"
                    yield


@pytest.fixture
def platforms() -> Iterator[Platforms]:
    with BotApi.running() as telegram, SlackApi.running() as slack, OpenAIApi.running(lambda _: "fine") as llm:
        telegram.add_group(GROUP, members=[ADA, BOB])
        yield Platforms(telegram, slack, llm)


@contextlib.asynccontextmanager
async def place(platforms: Platforms, name: str) -> AsyncIterator[Place]:
    """Yield a place; in those of several people they speak in turn."""
    telegram, slack = platforms.telegram, platforms.slack
    match name:
        case "telegram":
            yield InTelegram(telegram, 42, itertools.repeat(None))
        case "telegram group":
            yield InTelegram(telegram, GROUP, itertools.cycle([ADA, BOB]), f"@{telegram.username} ")
        case "slack":
            yield InSlack(slack, "D0ALICE", itertools.repeat("U0ALICE"))
        case "slack channel":
            yield InSlack(slack, "C0GENERAL", itertools.cycle(["U0ALICE", "U0BOB"]), f"<@{BOT_USER}> ")
        case _:
            async with httpx.AsyncClient(base_url=platforms.url, timeout=60, verify=False) as client:
                yield InBrowser(client)


PLACES = ("telegram", "telegram group", "slack", "slack channel", "browser")
Play = Callable[[Place, str], Awaitable[None]]


async def everywhere(platforms: Platforms, database_url: str, play: Play) -> None:
    """Play in all places at once: platforms want messages of one chat to come some seconds apart."""

    async def play_in(name: str) -> None:
        async with place(platforms, name) as found:
            await play(found, name)

    async with platforms.bot(database_url):
        await asyncio.gather(*map(play_in, PLACES))


async def check_next_questions(platforms: Platforms, there: Place, name: str) -> None:
    """Check that plain questions are answered, each with one call of the model."""
    for question in (f"and now, {name}?", f"and then, {name}?"):
        assert (await there.say(question)).endswith("fine")
        bodies = [body for body in platforms.llm.bodies() if question in json.dumps(body["messages"][-1])]
        assert len(bodies) == 1, "nothing is sent again that was refused"


@pytest.mark.parametrize("refusal", REFUSALS)
async def test_a_picture_that_is_refused_is_answered_and_silences_nobody(
    sqlite_url: str, platforms: Platforms, refusal: str
) -> None:
    wording, status = REFUSALS[refusal]
    body = json.dumps({"error": {"message": wording, "code": status}}).encode()

    def mind(asked: dict[str, Any]) -> Any:
        is_shown = "image_url" in json.dumps(asked["messages"])
        return Recorded(body, "application/json", status) if is_shown else "fine"

    platforms.llm.reply = mind

    async def play(there: Place, name: str) -> None:
        answer = await there.say("what is this?", PNG)
        assert "fine" in answer
        assert is_told(answer, "answer.not_seen", "{names}")
        await check_next_questions(platforms, there, name)

    await everywhere(platforms, sqlite_url, play)


@pytest.mark.parametrize("server", FILTERS)
async def test_words_that_are_refused_name_the_way_out_which_works_and_silence_nobody(
    sqlite_url: str, platforms: Platforms, server: str
) -> None:
    body = json.dumps(FILTERS[server]).encode()

    def mind(asked: dict[str, Any]) -> Any:
        is_said = "poison" in json.dumps(asked["messages"])
        return Recorded(body, "application/json", 400) if is_said else "fine"

    platforms.llm.reply = mind

    async def play(there: Place, name: str) -> None:
        assert is_told(await there.say("poison"), "answer.apology_refused", "{error_id}")
        await check_next_questions(platforms, there, name)

    await everywhere(platforms, sqlite_url, play)
