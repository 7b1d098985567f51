"""The bot that the crash tests kill: its tools write down when they run, so that somebody else can count."""

import os
from pathlib import Path

from botservice import AgentService, FunctionsBasedAgent, MessageWindowMessageSelector, OpenAIChatLLM, tool

_LOG = Path(os.environ["CRASH_TOOL_LOG"])


def _note(line: str) -> None:
    with _LOG.open("a") as log:  # one short write in append mode: whole lines, also from two processes
        log.write(f"{line}\n")


@tool
async def pay(invoice: str) -> str:
    """Pay an invoice: it must never happen twice."""
    _note(f"pay {invoice}")
    return f"paid {invoice}"


@tool(idempotent=True)
async def look_up(invoice: str) -> str:
    """Look an invoice up, which may happen as often as anybody likes."""
    _note(f"look_up {invoice}")
    return f"found {invoice}"


service = AgentService(
    FunctionsBasedAgent(
        tools=[pay, look_up], llm=OpenAIChatLLM(), message_selector=MessageWindowMessageSelector(4), search_k=0
    )
)
