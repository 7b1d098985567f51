"""A tool that takes days: it hands the work in, the process ends, and the result is put in when it comes."""

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from example_llm import choose_llm

from botservice import AgentContext, AgentService, FunctionsBasedAgent, Storage, ToolCall, tool

KEYS = {"chat_id": "42"}


@tool
async def request_approval(amount: int) -> str:
    """Ask the accountant to approve an amount; she takes days."""
    return f"request 17 for {amount} is handed in; no decision yet"


def script(prompt: list[dict[str, Any]]) -> Any:
    results = [message["content"] for message in prompt if message["role"] == "tool"]
    return f"The accountant says: {results[-1]}" if results else ToolCall("", "request_approval", {"amount": 300})


def make_service(storage: Storage) -> AgentService:
    agent = FunctionsBasedAgent(tools=[request_approval], llm=choose_llm(script))
    return AgentService(agent=agent, storage=storage)


async def hand_in(url: str) -> None:
    async with Storage.open(url) as storage:
        context = await AgentContext.get_or_create(storage, KEYS)
        run = await make_service(storage).start(context, "May I buy a chair for 300?")
        step = await run.step()
        print("on Monday:", step.get_value("observations"))
    # Here the process may end. The turn stays open; nobody waits for it, and nothing is lost.


async def decide(url: str, decision: str) -> None:
    async with Storage.open(url) as storage:
        context = await AgentContext.get_or_create(storage, KEYS)
        run = await make_service(storage).resume(context)
        if run is None:
            return
        context.completed_steps[-1].observations = decision  # stands as the call's result from now on
        print("on Thursday:", (await run.finish()).text)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'bot.db'}"
        asyncio.run(hand_in(url))
        asyncio.run(decide(url, "request 17 is approved"))


main()
