"""Language models: what is asked of them, and the ones that are ready."""

from typing import TYPE_CHECKING, Any

from botservice.llm.chat import ChatLLM, ChatMessage, ChatResponse, TextSink, ToolSchema
from botservice.llm.fallback import FallbackLLM
from botservice.llm.scripted import ScriptedChatLLM
from botservice.llm.tokens import EncodingCounter, EstimateCounter, TokenCounter, counter_for

if TYPE_CHECKING:
    from botservice.llm.openai.llm import OpenAIChatLLM

__all__ = [
    "ChatLLM",
    "ChatMessage",
    "ChatResponse",
    "EncodingCounter",
    "EstimateCounter",
    "FallbackLLM",
    "OpenAIChatLLM",
    "ScriptedChatLLM",
    "TextSink",
    "TokenCounter",
    "ToolSchema",
    "counter_for",
]


def __getattr__(name: str) -> Any:
    # The openai client takes longer to import than everything else together, and the demo does without it.
    if name == "OpenAIChatLLM":
        from botservice.llm.openai.llm import OpenAIChatLLM

        return OpenAIChatLLM
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
