"""Stopping a run: from a callback, from another task, from another thread."""

import asyncio

from example_llm import choose_llm

from botservice import (
    ActionStep,
    AgentContext,
    AgentRun,
    AgentService,
    FunctionsBasedAgent,
    RunInterrupted,
    Storage,
    ToolCall,
    tool,
)


@tool
async def spend(amount: int) -> str:
    """Spend an amount."""
    return f"spent {amount}"


def keep_within_budget(step: ActionStep, agent: AgentRun) -> None:
    spent = sum(
        int(done.tool_calls[0].arguments["amount"]) for done in agent.context.completed_steps if done.tool_calls
    )
    if spent > 100:
        agent.interrupt()


async def main() -> None:
    llm = choose_llm(lambda prompt: ToolCall("", "spend", {"amount": 40}))
    agent = FunctionsBasedAgent(tools=[spend], llm=llm)
    async with Storage.open("sqlite://") as storage:
        context = await AgentContext.get_or_create(storage, {"chat_id": "42"})
        service = AgentService(agent=agent, storage=storage, step_callbacks=[keep_within_budget])
        try:
            await service.prompt(context, "Spend 40 again and again.")
        except RunInterrupted as error:
            print(error, "- after", len(context.completed_steps), "steps, which are kept")


asyncio.run(main())
