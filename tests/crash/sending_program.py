"""A program that sends a message to each of many chats, and does so again from the beginning where it was killed."""

import asyncio
import sys

from botservice import AgentContext, AgentService, FunctionsBasedAgent, ScriptedChatLLM, Storage
from botservice.storage.limits import StorageLimits


async def send_all(url: str, first: int, count: int) -> None:
    """Send one message to each chat, by a key of its own."""
    async with Storage.open(url, limits=StorageLimits(silence=60.0)) as storage:
        service = AgentService(FunctionsBasedAgent(llm=ScriptedChatLLM([])), storage)
        for chat in range(first, first + count):
            context = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": str(chat)})
            sent = await service.send(context, f"news for {chat}", key="news")
            sys.stdout.write(f"{sent.id}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(send_all(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
