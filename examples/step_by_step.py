"""One step at a time, looking at the memory and changing it in between."""

import asyncio

from example_llm import choose_llm

from botservice import ActionStep, AgentContext, AgentService, FunctionsBasedAgent, Storage, ToolCall, tool


@tool
async def fibonacci(n: int) -> int:
    """Return the n-th Fibonacci number."""
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


SCRIPT = [
    ToolCall("", "fibonacci", {"n": 19}),
    ToolCall("", "fibonacci", {"n": 20}),
    "The 20th Fibonacci number is 6765.",
]


async def main() -> None:
    agent = FunctionsBasedAgent(tools=[fibonacci], llm=choose_llm(SCRIPT), prompt="You are a mathematician.")
    async with Storage.open("sqlite://") as storage:
        context = await AgentContext.get_or_create(storage, {"chat_id": "42"})
        service = AgentService(agent=agent, storage=storage, max_steps=10)

        run = await service.start(context, "What is the 20th Fibonacci number?")
        print(run.memory.system_prompt)
        while run.answer is None:
            step = await run.step()  # stored when this returns
            print(type(step).__name__, "of turn", run.turn_id)
            if isinstance(step, ActionStep):
                step.checked_by = "alice"  # a field of one's own: stored with the next step
        print("The answer is:", run.answer.text)


asyncio.run(main())
