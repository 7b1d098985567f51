"""A tool that asks first, on a terminal and in a pipe: shown, decided, and gone on with before the process ends."""

import asyncio
import io

import pytest

from botservice import AgentService, FunctionsBasedAgent, ScriptedChatLLM, Storage, ToolCall, tool
from botservice.app import running
from botservice.config.settings import Settings
from transports.terminal.app import TerminalTransport
from transports.terminal.lines import PlainLines
from transports.terminal.screens import PlainScreen


@pytest.mark.parametrize(("said", "paid"), [("1", [50]), ("2", []), ("/allow", [50]), ("/deny all", [])])
async def test_a_word_in_a_pipe_is_seen_through_to_the_answer(sqlite_url, said, paid):
    made = []

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        """Pay."""
        made.append(amount)
        return "paid"

    llm = ScriptedChatLLM([ToolCall("", "pay", {"amount": 50}), "That is that."])
    lines, target = PlainLines(io.StringIO(f"pay\n{said}\n")), io.StringIO()
    terminal = TerminalTransport("1", lines, PlainScreen(target, is_interactive=False), is_interactive=False)
    settings = Settings.load(env_file=None, database_url=sqlite_url)
    async with asyncio.timeout(60), Storage.open(settings.database_url) as storage:
        service = AgentService(FunctionsBasedAgent(tools=[pay], llm=llm), storage)
        async with running(settings, service, [terminal]):
            await terminal.converse()
    shown = target.getvalue()
    assert "amount: 50" in shown
    assert "[1] Allow [2] Deny [3] Always in this chat" in shown
    assert shown.rstrip().endswith("That is that."), shown
    assert shown.count("Allowed") + shown.count("Denied") == 1
    assert made == paid
