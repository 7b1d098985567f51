"""The model that answers where none is configured: a script that says so, remembers, and uses a tool."""

import re
from collections.abc import Sequence
from typing import Any

from botservice.llm.chat import ChatMessage, ChatResponse, TextSink, ToolSchema
from botservice.messages import ToolCall

INTRODUCTION = (
    "I am a demo: a small script, not a language model. I remember what you tell me and look it up when you ask, and "
    "I can tell the time with a tool. Set OPENAI_API_KEY, or OPENAI_BASE_URL for a model of your own, to talk to a "
    "real one."
)
_TIME = re.compile(r"\b(time|date|day|clock|today)\b|what.*o'clock", re.IGNORECASE)
_QUESTION = re.compile(r"\?\s*$|^\s*(what|who|where|when|which|how|why|do|does|did|is|are|can)\b", re.IGNORECASE)
_REMEMBERED = re.compile(r"^\[(?P<date>[\d-]+) [\d:]+ UTC\] (?P<author>[^:\n]+): (?P<text>.+)$", re.MULTILINE)
_PIECES = re.compile(r"\S+\s*")


class DemoChatLLM:
    """Follows a script that depends on nothing but the prompt."""

    model = "demo"

    async def chat(
        self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = (), *, on_text: TextSink | None = None
    ) -> ChatResponse:
        """Return what the script says to the last message of a person."""
        text = _last_text(messages, "user")
        if messages[-1]["role"] == "tool":
            answer = f"My tool says: {messages[-1]['content']}"
        elif _TIME.search(text) and _has_tool(tools, "current_time"):
            return ChatResponse("", (ToolCall("demo_call", "current_time", {}),))
        elif _QUESTION.search(text):
            answer = _recall(messages)
        else:
            answer = f'I will remember that. Ask me about it at any time.\n\n{INTRODUCTION}'
        if on_text is not None:
            for piece in _PIECES.findall(answer):
                on_text(piece)
        return ChatResponse(answer)


def _recall(messages: Sequence[ChatMessage]) -> str:
    found = [
        match
        for message in messages
        if message["role"] == "system" and "<memory>" in _text(message)
        for match in _REMEMBERED.finditer(_text(message))
        if match["author"] != "assistant" and not _QUESTION.search(match["text"])
    ]
    if not found:
        return f"You have not told me anything about that yet.\n\n{INTRODUCTION}"
    lines = [f'You told me on {match["date"]}: "{match["text"]}"' for match in found[-2:]]
    return "\n".join(lines)


def _last_text(messages: Sequence[ChatMessage], role: str) -> str:
    return next((_text(message) for message in reversed(messages) if message["role"] == role), "")


def _text(message: ChatMessage) -> str:
    content: Any = message.get("content")
    if isinstance(content, str):
        return content
    return " ".join(part.get("text", "") for part in content or () if isinstance(part, dict))


def _has_tool(tools: Sequence[ToolSchema], name: str) -> bool:
    return any(tool["function"]["name"] == name for tool in tools)
