"""The bot of the proof: `botservice serve` loads it in the processes that are killed. Its model is a script."""

import asyncio
import os
import random
import threading
from typing import Any, Final

import httpx2

from botservice import AgentService, FunctionsBasedAgent, MessageWindowMessageSelector, ScriptedChatLLM, ToolCall, tool
from botservice.proving.checker import ORDER, OrderAnswer

TILL: Final = "BOTSERVICE_PROVE_TILL"
"""The environment variable with the address of the till."""
_THINKING_SECONDS: Final = (0.05, 0.4)
_PAID: Final = "The till has taken it."


@tool
async def pay(order: str) -> str:
    """Pay an order: it must never happen twice."""
    async with httpx2.AsyncClient(trust_env=False, timeout=20) as client:
        answer = await client.post(os.environ[TILL], json={"order": order})
    return _PAID if answer.is_success else "The till has refused it."


async def think(prompt: list[Any]) -> str | ToolCall:
    """Answer the newest message: pay if a person asks for it, and say what came of it."""
    await asyncio.sleep(random.uniform(*_THINKING_SECONDS))  # noqa: S311 - no secret
    question = str(next(each["content"] for each in reversed(prompt) if each["role"] == "user"))
    order = ORDER.findall(question)[-1]
    if prompt[-1]["role"] == "tool":
        answer = OrderAnswer.PAID if _PAID in str(prompt[-1]["content"]) else OrderAnswer.IN_DOUBT
    elif f"pay order {order}" in question:
        return ToolCall("", "pay", {"order": order})
    else:
        answer = OrderAnswer.NOTED
    return f"Order {order} {answer}."


def _end_with_parent() -> None:
    """End this process when its parent is gone, however that ended."""
    while os.read(0, 1):
        pass
    os._exit(1)


service = AgentService(
    FunctionsBasedAgent(
        tools=[pay], llm=ScriptedChatLLM(think), message_selector=MessageWindowMessageSelector(4), search_k=0
    )
)
if TILL in os.environ:
    threading.Thread(target=_end_with_parent, daemon=True).start()
