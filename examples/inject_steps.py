"""Steps that the agent did not take itself: from history, and from another run."""

import asyncio

from example_llm import choose_llm

from botservice import ActionStep, AgentContext, AgentService, FunctionsBasedAgent, Storage, ToolCall, tool


@tool
async def check(system: str) -> str:
    """Check a system."""
    return f"{system} is up"


SCRIPT = [
    ToolCall("", "check", {"system": "database"}),
    "The database is up.",
    "It was down for two hours yesterday, and is up now.",
    "Nothing new since then.",
]


async def main() -> None:
    agent = FunctionsBasedAgent(tools=[check], llm=choose_llm(SCRIPT), prompt="You watch systems.")
    async with Storage.open("sqlite://") as storage:
        service = AgentService(agent=agent, storage=storage)

        first = await AgentContext.get_or_create(storage, {"watcher": "first"})
        await service.prompt(first, "Is the database up?")

        second = await AgentContext.get_or_create(storage, {"watcher": "second"})
        run = await service.start(second, "How did the database do?")
        run.memory.steps[:0] = [  # before the task: what happened before this prompt
            ActionStep(0, observations="System was down for 2 hours yesterday"),
            *first.memory.steps,
        ]
        await run.finish()
        print(run.answer and run.answer.text)
        for message in run.write_memory_to_messages():
            print("   ", message["role"], message["content"])

        # reset=False keeps the steps of the prompts before in view.
        run = await service.start(second, "And since then?", reset=False)
        print((await run.finish()).text, "-", len(run.memory.steps), "steps in view")


asyncio.run(main())
