"""A plan before the first step and after every second one; a field of the steps that the model sees."""

import asyncio
from typing import Any

from example_llm import choose_llm

from botservice import (
    ActionStep,
    AgentContext,
    AgentService,
    FunctionsBasedAgent,
    PlanningStep,
    Storage,
    ToolCall,
    tool,
)


@tool
async def measure(place: str) -> str:
    """Measure the temperature of a place."""
    return {"cellar": "12", "attic": "31"}.get(place, "20") + " degrees"


def rate(step: ActionStep) -> None:
    step.confidence = "high"  # seen by the model: it is in memory_keys
    step.internal_note = "not seen by it"


def script(prompt: list[dict[str, Any]]) -> Any:
    if "write down" in str(prompt[-1]["content"]):
        return "1. measure every place 2. compare"
    measured = sum(1 for message in prompt if message["role"] == "tool")
    places = ["cellar", "kitchen", "attic"]
    return ToolCall("", "measure", {"place": places[measured]}) if measured < len(places) else "The attic is warmest."


async def main() -> None:
    agent = FunctionsBasedAgent(
        tools=[measure], llm=choose_llm(script), planning_interval=2, memory_keys=["confidence"]
    )
    async with Storage.open("sqlite://") as storage:
        context = await AgentContext.get_or_create(storage, {"chat_id": "42"})
        service = AgentService(agent=agent, storage=storage, step_callbacks=[rate])
        answer = await service.prompt(context, "Which is the warmest of cellar, kitchen and attic?")
        for step in context.memory.steps:
            if isinstance(step, PlanningStep):
                print("plan:", step.plan)
        print(answer.text)


asyncio.run(main())
