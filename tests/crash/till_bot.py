"""A bot with a till in a process of its own, which a person kills: its platform is a list, its payments a file."""

import asyncio
from pathlib import Path

from turns.messenger import Messenger, office

from botservice import AgentContext, Author, InboundMessage, ScriptedChatLLM, Storage, ToolCall, tool
from botservice.turns.buttons import write_buttons
from botservice.turns.transport import BUTTONS


class Platform(Messenger):
    """Shows what it is given, with its buttons."""

    async def read(self, event):
        return InboundMessage(event.raw.decode(), Author(self.name, "7", "alice"))

    def plan(self, answer, events):
        kept = {BUTTONS: write_buttons(answer.buttons)} if answer.buttons else {}
        return [{"text": answer.text, **kept}]

    async def send(self, context_keys, delivery):
        return delivery.external_id or str(delivery.id)  # another process may replace it


def answer(prompt):
    """Pay, and say how it went."""
    results = [each["content"] for each in prompt if each["role"] == "tool"]
    return f"It said: {results[0]}" if results else ToolCall("", "pay", {"amount": 5})


async def work(url, till):
    @tool(needs_approval=True)
    async def pay(amount: int, context: AgentContext) -> str:
        """Pay."""
        with Path(till).open("a") as file:  # noqa: ASYNC230 - a line
            file.write(f"{context.context_keys['chat_id']} {amount}\n")
        await asyncio.sleep(0.02)  # a person may be killed here
        return "paid"

    async with (
        Storage.open(url) as storage,
        office(storage, ScriptedChatLLM(answer), messenger=Platform(), tools=[pay], max_turns=16),
    ):
        await asyncio.Event().wait()


def run(url, till):
    """Work until it is killed."""
    asyncio.run(work(url, till))
