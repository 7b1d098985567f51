"""Contexts that share one agent, one storage and one process see nothing of each other."""

import asyncio
import re

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from turns.messenger import Messenger, message, office

from botservice import MessageWindowMessageSelector, ToolCall, tool

MARK = re.compile(r"mark-(\w+)-")


class Witness:
    """A model that calls a tool with what it was told, then repeats it; and notes every mark that it is shown."""

    model = "witness"

    def __init__(self) -> None:
        self.shown: list[set[str]] = []

    async def chat(self, messages, tools=(), *, on_text=None):
        from botservice.llm.chat import ChatResponse

        text = str(messages)
        self.shown.append(set(MARK.findall(text)))
        await asyncio.sleep(0)
        if messages[-1]["role"] == "tool":
            return ChatResponse(f"noted {messages[-1]['content']}")
        return ChatResponse("", (ToolCall("c1", "note", {"text": messages[-1]["content"]}),))


@tool
async def note(text: str) -> str:
    """Note a text."""
    await asyncio.sleep(0)
    return f"[{text}]"


async def _run(storage, plan: list[tuple[int, int]]) -> None:
    witness = Witness()
    messenger = Messenger()
    async with office(
        storage, witness, messenger=messenger, tools=[note], selector=MessageWindowMessageSelector(4), search_k=3
    ) as bot:
        events = [
            message(f"what about the dog mark-{chat}- number {number}?", chat=str(chat), order=number)
            for chat, number in plan
        ]
        await bot.inbox.accept("messenger", events)
        wanted = {chat: sum(1 for each, _ in plan if each == chat) for chat, _ in plan}
        await messenger.until(
            lambda: all(len(messenger.visible.get(str(chat), [])) == count for chat, count in wanted.items())
        )
    assert all(len(marks) == 1 for marks in witness.shown)
    for chat, texts in messenger.visible.items():
        assert {mark for text in texts for mark in MARK.findall(text)} == {chat}


@pytest.mark.slow
async def test_thirty_contexts_at_once_on_one_agent_never_see_each_other(storage):
    await _run(storage, [(chat, number) for number in range(1, 5) for chat in range(30)])


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(plan=st.lists(st.tuples(st.integers(0, 5), st.integers(1, 30)), min_size=2, max_size=25, unique=True))
@pytest.mark.slow
def test_no_interleaving_of_contexts_shows_one_to_another(plan):
    from botservice import Storage

    async def run() -> None:
        async with Storage.open("sqlite://") as storage:
            await _run(storage, plan)

    asyncio.run(run())
