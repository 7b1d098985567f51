"""Looking at what an agent did: as a replay, as dictionaries, as JSON."""

import asyncio

from example_llm import choose_llm

from botservice import ActionStep, AgentContext, AgentMemory, AgentService, FunctionsBasedAgent, Storage, ToolCall, tool


@tool
async def divide(a: float, b: float) -> float:
    """Divide a by b."""
    return a / b


SCRIPT = [
    ToolCall("", "divide", {"a": 1, "b": 0}),
    ["That cannot be. ", ToolCall("", "divide", {"a": 1, "b": 2})],
    "One half.",
]


async def main() -> None:
    agent = FunctionsBasedAgent(tools=[divide], llm=choose_llm(SCRIPT), prompt="You are a calculator.")
    async with Storage.open("sqlite://") as storage:
        context = await AgentContext.get_or_create(storage, {"chat_id": "42"})
        service = AgentService(agent=agent, storage=storage)
        await service.prompt(context, "What is 1 / 0? If that is nothing, 1 / 2.")

        memory = context.memory
        memory.replay()
        memory.replay(detailed=True)

        print("The system prompt was:", memory.system_prompt.system_prompt)
        for step in memory.steps:
            if isinstance(step, ActionStep):
                print(f"Step {step.step_number}:", step.error or step.observations)
        print("Fields of the first step:", *memory.get_full_steps()[1])
        print("Without what the model was given:", *memory.get_succinct_steps()[1])

        again = AgentMemory.from_json(memory.to_json())
        print("An exact copy:", again == memory)


asyncio.run(main())
