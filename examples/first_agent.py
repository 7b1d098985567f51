"""An agent with one tool that remembers what was said."""

import asyncio

from example_llm import choose_llm

from botservice import AgentContext, AgentService, FunctionsBasedAgent, Storage, ToolCall, tool


@tool
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


SCRIPT = ["Nice name!", ToolCall("", "add", {"a": 2, "b": 3}), "It is 5.", "Your dog is called Rex."]


async def main() -> None:
    agent = FunctionsBasedAgent(tools=[add], llm=choose_llm(SCRIPT), prompt="You are a helpful assistant.")
    async with Storage.open("sqlite://") as storage:
        context = await AgentContext.get_or_create(storage, {"transport": "example", "chat_id": "42"})
        service = AgentService(agent=agent, storage=storage)
        for text in ("My dog is called Rex", "What is 2 + 3?", "What is my dog called?"):
            answer = await service.prompt(context, text, author="alice")
            print(f"alice: {text}\nagent: {answer.text}")


asyncio.run(main())
