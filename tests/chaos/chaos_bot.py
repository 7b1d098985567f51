"""The bot that the chaos suite works on: its tools write down when they run, and its clock can be told to jump."""

import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

from botservice import AgentService, FunctionsBasedAgent, MessageWindowMessageSelector, OpenAIChatLLM, tool

_LOG = Path(os.environ["CHAOS_TOOL_LOG"])
_JUMP = Path(os.environ["CHAOS_CLOCK"])


def jumping_clock() -> datetime:
    """Return the time, wrong by as many seconds as the file says."""
    try:
        wrong_seconds = float(_JUMP.read_text() or 0)
    except (OSError, ValueError):  # it is being written
        wrong_seconds = 0.0
    return datetime.now(UTC) + timedelta(seconds=wrong_seconds)


def _note(line: str) -> None:
    with _LOG.open("a") as log:  # one short write in append mode: whole lines, also from several processes
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
    ),
    clock=jumping_clock,
)
