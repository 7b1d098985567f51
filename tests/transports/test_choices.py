"""Buttons on the terminal: numbers to type."""

import io

from botservice import AgentService, Button, FunctionsBasedAgent, ScriptedChatLLM, Storage, ToolCall, tool
from botservice.turns.inbox import Inbox
from botservice.turns.worker import Worker
from transports.terminal.app import TerminalTransport
from transports.terminal.lines import PlainLines
from transports.terminal.screens import PlainScreen


@tool(is_final=True)
async def offer() -> list:
    """Offer a choice."""
    return ["Which size?", Button("Small"), Button("Large", value="size L"), Button("All", url="https://x.org")]


def script(prompt):
    """Offer once, then repeat what was said."""
    last = prompt[-1]["content"]
    return ToolCall("1", "offer", {}) if last == "choose" else f"You said: {last}"


async def test_a_number_says_what_its_button_says_once(sqlite_storage: Storage) -> None:
    lines, target = PlainLines(io.StringIO("choose\n2\n2\nchoose\n9\n")), io.StringIO()
    transport = TerminalTransport("s", lines, PlainScreen(target, is_interactive=False), is_interactive=False)
    service = AgentService(FunctionsBasedAgent([offer], ScriptedChatLLM(script), search_k=0), sqlite_storage)
    worker = Worker(sqlite_storage, service.options, [transport])
    await worker.start()
    await transport.start(Inbox(sqlite_storage, worker.wake), sqlite_storage)
    await transport.converse()
    await worker.stop()
    offered = "Which size?\n[1] Small [2] Large [3] All: https://x.org\n"
    assert target.getvalue() == f"{offered}You said: size L\nYou said: 2\n{offered}You said: 9\n"
