"""An agent that has another one work for it; the other one's steps are kept with the call."""

import asyncio

from example_llm import choose_llm

from botservice import AgentContext, AgentService, FunctionsBasedAgent, Storage, ToolCall, sub_runs, tool

PAGES = {"whales": "Blue whales weigh up to 190 tonnes.", "elephants": "Elephants weigh up to 7 tonnes."}


@tool
async def read_page(name: str) -> str:
    """Read a page about an animal."""
    return PAGES.get(name, "There is no such page.")


async def main() -> None:
    researcher = FunctionsBasedAgent(
        tools=[read_page],
        llm=choose_llm([ToolCall("", "read_page", {"name": "whales"}), "Up to 190 tonnes."]),
        prompt="You find facts on pages about whales and elephants. Answer in one sentence.",
    )
    research = researcher.as_tool("research", "Finds facts about animals.", max_steps=5, idempotent=True)
    agent = FunctionsBasedAgent(
        tools=[research],
        llm=choose_llm([ToolCall("", "research", {"task": "How much do blue whales weigh?"}), "190 tonnes at most."]),
        prompt="You answer with the help of research.",
    )
    async with Storage.open("sqlite://") as storage:
        context = await AgentContext.get_or_create(storage, {"chat_id": "42"})
        run = await AgentService(agent=agent, storage=storage).start(context, "How heavy is a blue whale?")
        answer = await run.finish()
        for step in context.completed_steps:
            for below in sub_runs(step):
                print(f"{below.name}:", [type(each).__name__ for each in below.memory.steps])
        print(answer.text, "| state:", run.result.state if run.result else "unknown")


asyncio.run(main())
