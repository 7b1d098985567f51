"""A chat on the terminal next to a running service on the same SQLite file: it is that service that answers."""

import asyncio
import contextlib
import io
import os
import stat
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from botservice import (
    AgentContext,
    AgentService,
    ChatResponse,
    FunctionsBasedAgent,
    ScriptedChatLLM,
    TokenUsage,
    ToolCall,
    tool,
)
from botservice.app import running
from botservice.config.settings import Settings
from botservice.core.errors import BotServiceError
from transports.terminal.joining_client import join, socket_of
from transports.terminal.joining_server import joined_terminals
from transports.terminal.lines import PlainLines
from transports.terminal.screens import PlainScreen

LIMIT_SECONDS = 60.0


def echo(prompt):
    return f"You said: {prompt[-1]['content']}"


@dataclass
class Typed:
    """Lines that a test types when it wants to."""

    lines: asyncio.Queue = field(default_factory=asyncio.Queue)

    async def next(self):
        return await self.lines.get()


class Screen(PlainScreen):
    """A screen that a test can wait for."""

    def __init__(self, *, is_interactive=True):
        self.text = io.StringIO()
        self.has_changed = asyncio.Event()
        super().__init__(self.text, is_interactive=is_interactive)

    def _write(self, text, *, ends_line=True):
        super()._write(text, ends_line=ends_line)
        self.has_changed.set()

    async def until(self, text):
        async with asyncio.timeout(LIMIT_SECONDS):
            while text not in self.text.getvalue():
                self.has_changed.clear()
                await self.has_changed.wait()


@pytest.fixture
def settings(tmp_path, monkeypatch, sqlite_url) -> Settings:
    monkeypatch.chdir(tmp_path)
    return Settings.load(env_file=None, database_url=sqlite_url)


@contextlib.asynccontextmanager
async def served(settings, script=echo, tools=(), bot_name=None) -> AsyncIterator[AgentService]:
    service = AgentService(FunctionsBasedAgent(tools, ScriptedChatLLM(script), search_k=0))
    async with running(settings, service, joined_terminals(settings.database_url, bot_name)):
        yield service


async def joined(tmp_path: Path):
    chat = await join(tmp_path / "bot.db")
    assert chat is not None
    return chat


async def test_a_pipe_is_answered_by_the_service_that_runs(settings, tmp_path):
    async with served(settings) as service:
        screen = Screen(is_interactive=False)
        chat = await joined(tmp_path)
        lines = PlainLines(io.StringIO("one\n\u200b \ufeff\ntwo\n"))
        await chat.converse("pipe", lines, screen, is_interactive=False)
        assert screen.text.getvalue() == "You said: one\nYou said: two\n"
        context = await AgentContext.get_or_create(service.storage, {"transport": "terminal", "session_id": "pipe"})
        assert [each.text for each in await context.chat_history.messages()] == [
            "one",
            "You said: one",
            "two",
            "You said: two",
        ]


async def test_who_is_over_budget_is_told_so(tmp_path, settings):
    limits = "1000 tokens/month"
    settings = Settings.load(
        env_file=None, database_url=settings.database_url, budget_person=limits, max_answer_tokens=100
    )
    async with served(settings, [ChatResponse("one", usage=TokenUsage(800, 50))]):
        screen, chat = Screen(is_interactive=False), await joined(tmp_path)
        lines = PlainLines(io.StringIO("first\nsecond\n"))
        await chat.converse("pipe", lines, screen, is_interactive=False)
    shown = [each for each in screen.text.getvalue().splitlines() if each]
    assert shown[0] == "one"
    assert shown[1].startswith("(More than 80% of your budget is used.")
    assert shown[2].startswith("I can’t answer right now: your budget is used up.")


async def test_an_answer_grows_and_the_tool_that_works_is_named(settings, tmp_path):
    @tool
    async def count() -> str:
        """Count."""
        return "2"

    async with served(settings, [ToolCall("1", "count", {}), "I counted to 2."], [count]):
        screen, typed = Screen(), Typed()
        chat = await joined(tmp_path)
        talking = asyncio.create_task(chat.converse("s", typed, screen, is_interactive=True))
        await screen.until("you> ")
        typed.lines.put_nowait("count")
        await screen.until("(count…)\nI counted to 2.\n\nyou> ")
        typed.lines.put_nowait(None)
        await talking


async def test_the_name_of_the_bot_stands_before_its_answer_once(settings, tmp_path):
    @tool
    async def count() -> str:
        """Count."""
        return "2"

    script = [ChatResponse("Let me see.", [ToolCall("1", "count", {})]), "I counted to 2."]
    async with served(settings, script, [count], bot_name="Ada"):
        screen, typed = Screen(), Typed()
        chat = await joined(tmp_path)
        talking = asyncio.create_task(chat.converse("s", typed, screen, is_interactive=True))
        await screen.until("you> ")
        typed.lines.put_nowait("count")
        await screen.until("Ada> Let me see.\n(count…)\nI counted to 2.\n\nyou> ")
        typed.lines.put_nowait(None)
        await talking


async def test_an_answer_is_stopped_by_the_service(settings, tmp_path):
    has_begun, never = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        has_begun.set()
        await never.wait()
        return ""

    async with served(settings, [ToolCall("1", "wait", {}), "never said"], [wait]):
        screen, typed = Screen(), Typed()
        chat = await joined(tmp_path)
        talking = asyncio.create_task(chat.converse("s", typed, screen, is_interactive=True))
        assert not chat.can_interrupt
        typed.lines.put_nowait("wait for me")
        async with asyncio.timeout(LIMIT_SECONDS):
            await has_begun.wait()
        assert chat.can_interrupt
        chat.interrupt()
        assert not chat.can_interrupt, "the second Ctrl+C leaves"
        await screen.until("(stopped)\n\nyou> ")
        typed.lines.put_nowait(None)
        await talking
        assert "never said" not in screen.text.getvalue()


async def test_whoever_leaves_is_told_the_answer_when_they_come_back(settings, tmp_path):
    has_begun, may_end = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait."""
        has_begun.set()
        await may_end.wait()
        return ""

    async with served(settings, [ToolCall("1", "wait", {}), "here it is"], [wait]):
        screen, typed = Screen(), Typed()
        chat = await joined(tmp_path)
        talking = asyncio.create_task(chat.converse("s", typed, screen, is_interactive=True))
        typed.lines.put_nowait("wait for me")
        async with asyncio.timeout(LIMIT_SECONDS):
            await has_begun.wait()
        talking.cancel()
        await asyncio.gather(talking, return_exceptions=True)
        may_end.set()
        again, later = Screen(), Typed()
        async with asyncio.timeout(LIMIT_SECONDS):
            while True:  # until the service has noticed that the first one has left
                chat = await joined(tmp_path)
                talking = asyncio.create_task(chat.converse("s", later, again, is_interactive=True))
                waiting = asyncio.create_task(again.until("(to what you asked before)\nhere it is\n"))
                await asyncio.wait({talking, waiting}, return_when=asyncio.FIRST_COMPLETED)
                if waiting.done():
                    break
                waiting.cancel()
                assert isinstance(talking.exception(), BotServiceError)
        later.lines.put_nowait(None)
        await talking


async def test_a_conversation_is_open_in_one_terminal_at_a_time(settings, tmp_path):
    async with served(settings):
        screen, typed = Screen(), Typed()
        talking = asyncio.create_task((await joined(tmp_path)).converse("s", typed, screen, is_interactive=True))
        await screen.until("you> ")
        with pytest.raises(BotServiceError, match="open in another terminal"):
            await (await joined(tmp_path)).converse("s", Typed(), Screen(), is_interactive=True)
        typed.lines.put_nowait(None)
        await talking


async def test_the_end_of_the_service_is_told(settings, tmp_path):
    screen = Screen()
    async with served(settings):
        chat = await joined(tmp_path)
        talking = asyncio.create_task(chat.converse("s", Typed(), screen, is_interactive=True))
        await screen.until("you> ")
    with pytest.raises(BotServiceError, match="the service has ended"):
        await talking
    assert not list(tmp_path.glob("*.chat"))


async def test_only_the_owner_may_join_and_what_a_killed_service_left_is_in_nobodys_way(settings, tmp_path):
    path = socket_of(tmp_path / "bot.db")
    path.write_text("left by one that was killed")
    assert await join(tmp_path / "bot.db") is None
    async with served(settings):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        chat = await joined(tmp_path)
        await chat.converse("s", PlainLines(io.StringIO("")), Screen(), is_interactive=False)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
async def test_a_socket_of_somebody_else_hears_nothing_of_what_is_typed(settings, tmp_path):
    path = socket_of(tmp_path / "bot.db")
    heard = []
    async with await asyncio.start_unix_server(lambda *ends: heard.append(ends), str(path)):
        os.chown(path, 12345, -1)
        assert await join(tmp_path / "bot.db") is None
    assert not heard


ODD = [b"\n", b"[]\n", b"{}\x00\n", b"\xff\xfe\n", b'{"session": ["s"]}\n{"say": 1}\n', b"[" * 70_000 + b"\n"]


async def test_what_is_no_chat_does_no_harm(settings, tmp_path):
    async with served(settings):
        for said in ODD:
            reader, writer = await asyncio.open_unix_connection(str(socket_of(tmp_path / "bot.db")))
            writer.write(said)
            writer.write_eof()
            async with asyncio.timeout(LIMIT_SECONDS):
                await reader.read()
            writer.close()
        screen = Screen(is_interactive=False)
        await (await joined(tmp_path)).converse("s", PlainLines(io.StringIO("hi\n")), screen, is_interactive=False)
        assert screen.text.getvalue() == "You said: hi\n"


def test_a_database_that_many_processes_share_needs_no_joining():
    assert joined_terminals("postgresql://localhost/x") == []
    assert joined_terminals("sqlite://") == []


def test_a_folder_with_too_long_a_name_offers_none(tmp_path, monkeypatch):
    folder = tmp_path / ("x" * 120)
    folder.mkdir()
    assert socket_of(folder / "bot.db") is None
    monkeypatch.chdir(folder)
    assert socket_of(folder / "bot.db") == Path("bot.db.chat")
