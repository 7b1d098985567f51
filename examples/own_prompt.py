"""An agent that composes the prompt of each model call itself: no history, no notes and no facts."""

import asyncio

from example_llm import choose_llm

from botservice import Action, AgentContext, AgentService, FinishAction, FunctionsBasedAgent, Storage, ToolCall, tool


@tool
async def look_up(word: str) -> str:
    """Look a word up."""
    return f"{word}: see page 7"


class Composed(FunctionsBasedAgent):
    """Sends its instructions, the question and the steps so far."""

    async def next_action(self, context: AgentContext) -> Action | FinishAction:
        question = context.chat_history.last_user_message
        messages = [
            {"role": "system", "content": self.prompt},
            {"role": "user", "content": question.text if question else ""},
        ]
        for step in context.completed_steps:
            messages += step.to_chat_messages()
        response = await self.llm.chat(messages, [each.schema for each in self.tools.values()])
        return Action(response.tool_calls) if response.tool_calls else FinishAction(response.text)


async def main() -> None:
    llm = choose_llm([ToolCall("", "look_up", {"word": "rex"}), "On page 7."])
    async with Storage.open("sqlite://") as storage:
        context = await AgentContext.get_or_create(storage, {"chat_id": "42"})
        service = AgentService(Composed([look_up], llm, prompt="You are a dictionary."), storage=storage)
        print((await service.prompt(context, "What is rex?")).text)


asyncio.run(main())
