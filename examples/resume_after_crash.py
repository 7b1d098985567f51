"""A process is killed in the middle of a turn; another one goes on, days later if need be."""

import asyncio
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from example_llm import choose_llm

from botservice import AgentContext, AgentRun, AgentService, FunctionsBasedAgent, Storage, ToolCall, tool

KEYS = {"chat_id": "42"}


@tool
async def book(what: str) -> str:
    """Book something."""
    print(f"[process {os.getpid()}] booking {what}")
    return f"{what} is booked"


def script(prompt: list[dict[str, Any]]) -> Any:
    """Say what comes next, from what the prompt shows: the model needs no memory of its own."""
    booked = sum(1 for message in prompt if message["role"] == "tool")
    wishes = ["flight", "hotel", "taxi"]
    return ToolCall("", "book", {"what": wishes[booked]}) if booked < len(wishes) else "All three are booked."


def make_service(storage: Storage, callbacks: Any = ()) -> AgentService:
    agent = FunctionsBasedAgent(tools=[book], llm=choose_llm(script), prompt="You book travels, one thing at a time.")
    return AgentService(agent=agent, storage=storage, step_callbacks=callbacks)


async def crash(url: str) -> None:
    def die(step: object, agent: AgentRun) -> None:
        if len(agent.context.completed_steps) == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    async with Storage.open(url) as storage:
        context = await AgentContext.get_or_create(storage, KEYS)
        await make_service(storage, [die]).prompt(context, "Book a flight, a hotel and a taxi.")


async def go_on(url: str) -> None:
    async with Storage.open(url) as storage:
        context = await AgentContext.get_or_create(storage, KEYS)
        run = await make_service(storage).resume(context)
        if run is None:
            print("nothing was cut off")
            return
        print("finished already:", [step.observations for step in context.completed_steps])
        print((await run.finish()).text)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'bot.db'}"
        ended = subprocess.run([sys.executable, __file__, url], check=False)
        print("the first process ended with", ended.returncode)
        asyncio.run(go_on(url))


if len(sys.argv) == 2:
    asyncio.run(crash(sys.argv[1]))
else:
    main()
