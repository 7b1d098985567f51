"""The Discord transport of the examples, against a stand-in of Discord's API."""

import asyncio
import contextlib
import json
import socket
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from crash.served import ServedBot
from standins.discord_api import APPLICATION, TOKEN, DiscordApi, Shown
from standins.models import Typist, echo
from standins.openai_api import Gate, OpenAIApi, Reply
from standins.web_server import web_server

from botservice import AgentService, Button, FunctionsBasedAgent, ScriptedChatLLM, ToolCall, tool
from botservice.app import running
from botservice.config.settings import Settings

pytestmark = pytest.mark.slow

FOLDER = Path(__file__).parents[2] / "examples" / "discord_transport"
MODULES = ("answers", "client", "growing", "interactions", "plugin", "transport")


@pytest.fixture
def api() -> Iterator[DiscordApi]:
    with DiscordApi.running() as server:
        yield server


@pytest.fixture
def discord(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The module of the transport, as it is imported in its own folder."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import transport  # type: ignore[import-not-found]  # a script's folder

    yield transport
    for name in MODULES:
        sys.modules.pop(name, None)


@contextlib.asynccontextmanager
async def bot(discord: Any, api: DiscordApi, url: str, script: Any = echo, **options: Any) -> AsyncIterator[Any]:
    made = discord.DiscordTransport(
        application_id=APPLICATION, public_key=api.public_key, token=TOKEN, api_url=api.url, edit_pause_seconds=0
    )
    llm = script if isinstance(script, Typist) else ScriptedChatLLM(script)
    service = AgentService(FunctionsBasedAgent(llm=llm, search_k=0, **options), transports=[made])
    settings = Settings(_env_file=None, openai_api_key=None, openai_base_url=None, database_url=url)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        api.bot_url = f"http://127.0.0.1:{listener.getsockname()[1]}{discord.PATH}"
        async with running(settings, service, service.transports), web_server(made.routes, listener):
            yield made


async def until(api: DiscordApi, content: str) -> Shown:
    return await asyncio.to_thread(api.journal.wait_for, Shown, lambda shown: shown.content == content)


@pytest.mark.any_database
async def test_a_question_is_answered_where_discord_said_that_the_bot_thinks(discord, api, storage_url):
    async with bot(discord, api, storage_url):
        assert await asyncio.to_thread(api.asks, "Hello") == {"type": 5}
        await until(api, "You said: Hello")
    assert api.visible() == ["You said: Hello"]
    assert [command["name"] for command in api.commands] == ["ask"]


@pytest.mark.any_database
async def test_an_answer_grows_while_it_is_written(discord, api, storage_url):
    typist = Typist()
    async with bot(discord, api, storage_url, typist):
        await asyncio.to_thread(api.asks, "Tell me")
        typist.write("Once upon ")
        await until(api, "Once upon ")
        typist.write("a time.")
        typist.finish()
        await until(api, "Once upon a time.")
    assert api.visible() == ["Once upon a time."]


async def test_a_delivery_that_discord_sends_twice_is_answered_once(discord, api, storage_url):
    async with bot(discord, api, storage_url, ["first", "second"]):
        for number in ("77", "77"):
            body = {"id": number, "token": "t", "channel_id": "7", "user": {"id": "5", "username": "ann"}, "type": 2}
            body["data"] = {"options": [{"value": "Hello"}]}
            assert (await asyncio.to_thread(api.deliver, json.dumps(body).encode())).json() == {"type": 5}
        await until(api, "first")
        await asyncio.to_thread(api.asks, "And now?")
        await until(api, "second")
    assert api.visible().count("first") == 1


@pytest.mark.any_database
async def test_an_answer_that_comes_after_a_quarter_of_an_hour_goes_to_the_channel_once(discord, api, storage_url):
    typist = Typist()
    async with bot(discord, api, storage_url, typist):
        await asyncio.to_thread(api.asks, "Take your time")
        api.expire_tokens()
        typist.write("Late.")
        typist.finish()
        await until(api, "Late.")
    assert api.visible() == ["is thinking…", "Late."]


@pytest.mark.any_database
async def test_what_discord_fails_to_take_is_sent_again(discord, api, storage_url):
    typist = Typist()
    async with bot(discord, api, storage_url, typist):
        await asyncio.to_thread(api.asks, "Hello")
        api.failures = [429, 500, 502]
        typist.write("Here.")
        typist.finish()
        await until(api, "Here.")
    assert api.visible() == ["Here."]


@pytest.mark.any_database
async def test_a_long_answer_is_cut_between_lines(discord, api, storage_url):
    lines = [f"{number} {'x' * 90}" for number in range(50)]
    async with bot(discord, api, storage_url, ["\n".join(lines)]):
        await asyncio.to_thread(api.asks, "All of it")
        await asyncio.to_thread(api.journal.wait_for, Shown, lambda shown: lines[-1] in shown.content)
    assert "\n".join(api.visible()).split("\n") == lines
    assert len(api.visible()) == 3


@pytest.mark.any_database
async def test_a_press_says_what_stands_behind_the_button(discord, api, storage_url):
    @tool(is_final=True)
    async def offer() -> list[Any]:
        """Offer."""
        return [
            "Which size?",
            Button("Small"),
            Button("Large", "A large one, please"),
            Button("Map", url="https://x.y"),
        ]

    async with bot(discord, api, storage_url, [ToolCall("", "offer", {}), echo], tools=[offer]):
        await asyncio.to_thread(api.asks, "Tea")
        await until(api, "Which size?")
        large = next(each for each in api.buttons() if each["label"] == "Large")
        await asyncio.to_thread(api.presses, large["custom_id"])
        await until(api, "You said: A large one, please")


@pytest.mark.any_database
async def test_a_call_that_asks_first_is_allowed_by_a_button(discord, api, storage_url):
    done = []

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        """Pay."""
        done.append(amount)
        return "paid"

    async with bot(discord, api, storage_url, [ToolCall("c", "pay", {"amount": 3}), "It is paid."], tools=[pay]):
        await asyncio.to_thread(api.asks, "Pay 3")
        await asyncio.to_thread(api.journal.wait_for, Shown, lambda _: bool(api.buttons()))
        assert done == []
        allow = next(each for each in api.buttons() if each["custom_id"].startswith("/allow"))
        await asyncio.to_thread(api.presses, allow["custom_id"])
        await until(api, "It is paid.")
    assert done == [3]


@pytest.mark.any_database
async def test_a_stop_is_said_to_have_been_heard(discord, api, storage_url):
    typist = Typist()
    async with bot(discord, api, storage_url, typist):
        await asyncio.to_thread(api.asks, "Tell me")
        typist.write("Once upon ")
        await until(api, "Once upon ")
        assert (await asyncio.to_thread(api.asks, "/stop"))["data"]["content"] == "Stopped."


@pytest.mark.any_database
async def test_what_discord_has_not_signed_is_not_taken(discord, api, storage_url):
    async with bot(discord, api, storage_url):
        for signature in ("00" * 64, "nonsense", "123"):
            refused = await asyncio.to_thread(api.deliver, b'{"type": 1}', signature=signature)
            assert refused.status_code == 401
        assert (await asyncio.to_thread(api.deliver, b'{"type": 1}')).json() == {"type": 1}


def test_an_answer_goes_on_after_its_process_was_killed_and_stands_there_once(api, tmp_path):
    gate = Gate()
    replies = iter([Reply(text="never said", wait=gate), Reply(text="Here I am again.")])
    with OpenAIApi.running(lambda _: next(replies)) as model:
        settings = {
            "DATABASE_URL": f"sqlite:///{tmp_path / 'bot.db'}",
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_MODEL": "gpt-5.5",
            "DISCORD_APPLICATION_ID": APPLICATION,
            "DISCORD_PUBLIC_KEY": api.public_key,
            "DISCORD_BOT_TOKEN": TOKEN,
            "DISCORD_API_URL": api.url,
        }
        with ServedBot(tmp_path, "--app", "bot:service", **settings) as served:
            served._environment["PYTHONPATH"] += f":{FOLDER}"
            served.start()
            api.bot_url = f"{served.url}/discord/interactions"
            api.asks("Are you there?")
            model.wait_for_call()
            served.kill()
            served.start()
            api.journal.wait_for(Shown, lambda shown: shown.content == "Here I am again.")
    assert api.visible() == ["Here I am again."]
