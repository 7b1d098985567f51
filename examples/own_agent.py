"""An agent of one's own: what comes next is a function of what is stored, so it can be resumed anywhere."""

import asyncio

from botservice import Action, Agent, AgentContext, AgentService, FinishAction, Storage, ToolCall, tool


@tool
async def look_up(word: str) -> str:
    """Look a word up."""
    return {"rex": "a king", "canis": "a dog"}.get(word, "unknown")


class Dictionary(Agent):
    """Looks up every word of the question, one after the other, without any model."""

    def __init__(self) -> None:
        self.tools = {"look_up": look_up}

    async def next_action(self, context: AgentContext) -> Action | FinishAction:
        question = context.chat_history.last_user_message
        words = question.text.split() if question else []
        done = context.completed_steps
        if len(done) < len(words):
            return Action([ToolCall(f"call_{len(done)}", "look_up", {"word": words[len(done)]})])
        return FinishAction("; ".join(f"{word}: {step.observations}" for word, step in zip(words, done, strict=True)))

    async def finish(self, context: AgentContext) -> FinishAction:
        return FinishAction(f"I got through {len(context.completed_steps)} words.")


async def main() -> None:
    async with Storage.open("sqlite://") as storage:
        context = await AgentContext.get_or_create(storage, {"chat_id": "42"})
        service = AgentService(agent=Dictionary(), storage=storage)
        print((await service.prompt(context, "rex canis")).text)


asyncio.run(main())
