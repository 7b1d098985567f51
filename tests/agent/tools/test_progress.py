"""What tools say of their work while they run reaches those who wait, in a form that does no harm, and no others."""

import asyncio
import threading
from typing import Any

import pytest

from botservice import AgentContext, Tool, ToolCall, progress
from botservice.agent.tool_executor import execute
from botservice.agent.tool_progress import LONGEST, showing_progress
from botservice.telemetry.logs import register_secret


class Listener:
    """Whoever waits for a call."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.has_heard = asyncio.Event()

    def show(self, text: str) -> None:
        self.heard.append(text)
        self.has_heard.set()


async def run(function: Any, context: AgentContext, listener: Listener) -> str:
    with showing_progress(listener.show):
        outcome = await execute({"work": Tool(function, name="work")}, ToolCall("1", "work", {}), context)
    return outcome.text


async def test_an_async_tool_is_heard_while_it_runs(context: AgentContext) -> None:
    listener = Listener()

    async def work() -> str:
        progress("page 3 of 10")
        await listener.has_heard.wait()
        return f"heard {listener.heard}"

    assert await run(work, context, listener) == "heard ['page 3 of 10']"


async def test_a_tool_in_a_thread_is_heard_while_it_runs(context: AgentContext) -> None:
    is_heard = threading.Event()
    listener = Listener()
    listener.has_heard.set = is_heard.set  # type: ignore[method-assign]  # heard by a thread

    def work() -> str:
        progress("counting")
        return str(is_heard.wait(60))

    assert await run(work, context, listener) == "True"
    assert listener.heard == ["counting"]


async def test_of_a_flood_the_newest_is_shown(context: AgentContext) -> None:
    listener = Listener()

    async def work() -> None:
        for number in range(100_000):
            progress(f"step {number}")
        await listener.has_heard.wait()

    await run(work, context, listener)
    assert listener.heard == ["step 99999"]


async def test_whoever_is_not_waited_for_any_more_is_not_heard(context: AgentContext) -> None:
    listener = Listener()
    may_go_on, has_gone_on = asyncio.Event(), asyncio.Event()

    async def speak_later() -> None:
        await may_go_on.wait()
        progress("too late")
        has_gone_on.set()

    async def work() -> str:
        tasks.append(asyncio.create_task(speak_later()))
        return "done"

    tasks: list[asyncio.Task[None]] = []
    await run(work, context, listener)
    may_go_on.set()
    await has_gone_on.wait()
    await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    assert listener.heard == []


def test_nothing_happens_outside_of_a_tool() -> None:
    progress("nobody listens")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("two\nlines\tand \x1b[2J", "two lines and [2J"),
        ("left \u202e right \u2066\u200f", "left right"),
        ("a \ud800 b \0", "a \ufffd b \ufffd"),
        ("the key is sk-very-secret-7", "the key is [secret]"),
        ("x" * 10_000, "x" * LONGEST + "…"),
        (42, "42"),
    ],
)
async def test_what_is_shown_is_one_short_line_without_secrets(context: AgentContext, text: Any, shown: str) -> None:
    register_secret("sk-very-secret-7")
    listener = Listener()

    async def work() -> None:
        progress(text)
        await listener.has_heard.wait()

    await run(work, context, listener)
    assert listener.heard == [shown]


async def test_a_blank_text_shows_nothing_new(context: AgentContext) -> None:
    listener = Listener()

    async def work() -> None:
        progress(" \n ")
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    await run(work, context, listener)
    assert listener.heard == []
