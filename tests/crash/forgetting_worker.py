"""A worker in a process of its own, whose model takes its time, keeps facts, and repeats all that it sees."""

import asyncio
import random

from people.crowd import crowded

from botservice import MessageWindowMessageSelector, Storage, ToolCall, tool
from botservice.agent.remembering import remember
from botservice.llm.chat import ChatResponse


@tool
async def repeat(text: str) -> str:
    """Repeat a text."""
    await asyncio.sleep(random.random() / 50)
    return text


class Gossip:
    """Has tools repeat and remember what the newest message says, and answers with the whole prompt, word by word."""

    model = "gossip"

    async def chat(self, messages, tools=(), *, on_text=None):
        said = str(messages[-1]["content"])
        await asyncio.sleep(random.random() / 20)
        if messages[-1]["role"] == "user" and random.random() < 0.5:
            kept = ToolCall("c2", "remember", {"text": said[-60:], "topic": "t"})
            return ChatResponse("let me see", (ToolCall("c1", "repeat", {"text": said}), kept))
        answer = " ".join(str(each["content"]) for each in messages)
        for word in answer.split():
            if on_text is not None:
                on_text(f"{word} ")
        return ChatResponse(answer)


def work(url: str) -> None:
    """Work until the process is killed."""
    asyncio.run(_work(url))


async def _work(url: str) -> None:
    selector = MessageWindowMessageSelector(6)
    async with Storage.open(url) as storage, crowded(storage, Gossip(), tools=[repeat, remember], selector=selector):
        await asyncio.Event().wait()
