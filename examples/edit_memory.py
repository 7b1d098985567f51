"""Callbacks see every step after it is stored. What they change is stored, and is what the model sees next."""

import asyncio

from example_llm import choose_llm

from botservice import (
    ActionStep,
    AgentContext,
    AgentRun,
    AgentService,
    FinalAnswerStep,
    FunctionsBasedAgent,
    Storage,
    TaskStep,
    ToolCall,
    tool,
)


@tool
async def read_page(number: int) -> str:
    """Read a page."""
    return f"page {number}: " + "blah " * 200


async def shorten_older_steps(step: ActionStep, agent: AgentRun) -> None:
    """Keep the newest observation whole, and the first words of those before it."""
    for earlier in agent.memory.steps:
        if isinstance(earlier, ActionStep) and earlier is not step and earlier.observations:
            earlier.observations = earlier.observations[:20] + "… (read)"


def announce(step: TaskStep) -> None:
    print("asked:", step.task)


def conclude(step: FinalAnswerStep, agent: AgentRun) -> None:
    print("answered:", step.output, "in turn", agent.turn_id)


SCRIPT = [*(ToolCall("", "read_page", {"number": number}) for number in (1, 2, 3)), "Nothing of interest."]


async def main() -> None:
    agent = FunctionsBasedAgent(tools=[read_page], llm=choose_llm(SCRIPT))
    callbacks = {ActionStep: [shorten_older_steps], TaskStep: announce, FinalAnswerStep: conclude}
    async with Storage.open("sqlite://") as storage:
        context = await AgentContext.get_or_create(storage, {"chat_id": "42"})
        service = AgentService(agent=agent, storage=storage, step_callbacks=callbacks)
        await service.prompt(context, "Read pages 1 to 3 and tell me what is in them.")
        for step in (await context.load_memory()).steps:
            if isinstance(step, ActionStep):
                print(step.step_number, (step.observations or "")[:40])


asyncio.run(main())
