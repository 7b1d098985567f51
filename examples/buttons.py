"""A tool that offers buttons: pressing one says what stands behind it.

Served with `botservice serve --app buttons:service` they are buttons in Telegram and in the browser; on the terminal
they are numbers to type. Run as a script, it shows what the service makes of them.
"""

import asyncio

from botservice import AgentContext, AgentService, Button, FunctionsBasedAgent, ScriptedChatLLM, Storage, ToolCall, tool


@tool(is_final=True)
async def offer_sizes(drink: str) -> list[str | Button]:
    """Ask which size of a drink a person wants."""
    return [
        f"Which size of {drink}?",
        Button("Small"),
        Button("Large", value=f"A large {drink}, please"),  # what pressing it says, where that is not its text
        Button("All sizes", url="https://example.com/sizes"),
    ]


def waiter(messages: list[dict]) -> str | ToolCall:
    """Offer sizes of what is ordered, and bring what was chosen. A real model goes by the tool's description."""
    said = messages[-1]["content"]
    is_chosen = said == "Small" or said.endswith("please")
    return f"Here you are: {said}" if is_chosen else ToolCall("", "offer_sizes", {"drink": said})


service = AgentService(agent=FunctionsBasedAgent(tools=[offer_sizes], llm=ScriptedChatLLM(waiter), search_k=0))


async def main() -> None:
    async with Storage.open("sqlite://") as storage:
        context = await AgentContext.get_or_create(storage, {"transport": "example", "chat_id": "1"})
        answer = await service.prompt(context, "tea")
        print(answer.text, [button.text for button in answer.buttons])
        print((await service.prompt(context, answer.buttons[1].says)).text)


if __name__ == "__main__":
    asyncio.run(main())
