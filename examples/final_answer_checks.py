"""Answers that have to pass a check before anybody sees them, written out piece by piece once they have."""

import asyncio

from example_llm import choose_llm

from botservice import AgentContext, AgentMemory, AgentService, FunctionsBasedAgent, Storage


def is_short(answer: str, memory: AgentMemory) -> str | None:
    return None if len(answer) <= 60 else f"it has {len(answer)} characters; 60 are allowed"


async def main() -> None:
    script = ["The capital of France, as many people know, is the city of Paris.", "Paris."]
    agent = FunctionsBasedAgent(llm=choose_llm(script), final_answer_checks=[is_short])
    async with Storage.open("sqlite://") as storage:
        context = await AgentContext.get_or_create(storage, {"chat_id": "42"})
        run = await AgentService(agent=agent, storage=storage).start(context, "What is the capital of France?")
        async for piece in run.stream():
            print(piece, end="")
        print()
        for step in context.completed_steps:
            print("refused:", step.model_output)


asyncio.run(main())
