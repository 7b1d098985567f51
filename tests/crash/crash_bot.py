"""The bot that the crash tests kill: its tools write down when they run, so that another person can count."""

import asyncio
import os
import signal
from pathlib import Path

from botservice import AgentService, FunctionsBasedAgent, MessageWindowMessageSelector, OpenAIChatLLM, tool

_LOG = Path(os.environ["CRASH_TOOL_LOG"])
_GATE = _LOG.with_name("gate")  # a pipe that a payment waits at for somebody to write, where there is one
_MOMENT = _LOG.with_name("moment")  # at which a transfer ends its own process, once


def _note(line: str) -> None:
    with _LOG.open("a") as log:  # one short write in append mode: whole lines, also from two processes
        log.write(f"{line}\n")


@tool
async def pay(invoice: str) -> str:
    """Pay an invoice: it must never happen twice."""
    _note(f"pay {invoice}")
    if _GATE.exists():
        await asyncio.to_thread(_GATE.read_bytes)
    return f"paid {invoice}"


def _end_at(moment: str) -> None:
    if _MOMENT.exists() and _MOMENT.read_text() == moment:
        _MOMENT.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


@tool(needs_approval=True)
async def transfer(invoice: str) -> str:
    """Pay an invoice, once a person has allowed it."""
    _end_at("before it is made")
    _note(f"transfer {invoice}")
    _end_at("after it was made")
    return f"transferred {invoice}"


@tool(idempotent=True)
async def look_up(invoice: str) -> str:
    """Look an invoice up, which may happen as often as anybody likes."""
    _note(f"look_up {invoice}")
    return f"found {invoice}"


service = AgentService(
    FunctionsBasedAgent(
        tools=[pay, look_up, transfer],
        llm=OpenAIChatLLM(),
        message_selector=MessageWindowMessageSelector(4),
        search_k=0,
    )
)
