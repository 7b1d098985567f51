"""A hundred conversations on one agent at once; nothing of one is seen in another."""

import asyncio
from typing import Any

from example_llm import choose_llm

from botservice import AgentContext, AgentService, FunctionsBasedAgent, NoMessages, Storage, ToolCall, tool


@tool
async def shout(word: str) -> str:
    """Write a word in capitals."""
    return word.upper()


def script(prompt: list[dict[str, Any]]) -> Any:
    task = next(message["content"] for message in prompt if message["role"] == "user")
    results = [message["content"] for message in prompt if message["role"] == "tool"]
    return results[0] if results else ToolCall("", "shout", {"word": task})


async def main() -> None:
    agent = FunctionsBasedAgent(tools=[shout], llm=choose_llm(script), message_selector=NoMessages(), search_k=0)
    async with Storage.open("sqlite://") as storage:
        service = AgentService(agent=agent, storage=storage)

        async def talk(number: int) -> bool:
            context = await AgentContext.get_or_create(storage, {"chat_id": str(number)})
            answer = await service.prompt(context, f"word{number}")
            return answer.text == f"WORD{number}"

        right = await asyncio.gather(*(talk(number) for number in range(100)))
        print(sum(right), "of 100 have their own answer")


asyncio.run(main())
