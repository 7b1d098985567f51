"""A tool whose output is the answer, word for word, with its files; the model is not asked again."""

import asyncio

from example_llm import choose_llm

from botservice import AgentContext, AgentService, Attachment, FunctionsBasedAgent, Storage, ToolCall, tool


@tool(is_final=True)
async def write_report(title: str) -> list[object]:
    """Write the report and hand it in. This ends the work."""
    return [f"Here is your report: {title}", Attachment("text/plain", "report.txt", data=title.encode())]


async def main() -> None:
    llm = choose_llm([ToolCall("", "write_report", {"title": "All is well"})])
    agent = FunctionsBasedAgent(tools=[write_report], llm=llm)
    async with Storage.open("sqlite://") as storage:
        context = await AgentContext.get_or_create(storage, {"chat_id": "42"})
        answer = await AgentService(agent=agent, storage=storage).prompt(context, "Write a report: all is well")
        print(answer.text, [each.name for each in answer.attachments])


asyncio.run(main())
