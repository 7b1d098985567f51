"""Language models: what is asked of them, and the ones that are ready."""

from botservice.llm.chat import ChatLLM, ChatMessage, ChatResponse, TextSink, ToolSchema
from botservice.llm.openai import OpenAIChatLLM
from botservice.llm.scripted import ScriptedChatLLM
from botservice.llm.tokens import EncodingCounter, EstimateCounter, TokenCounter, counter_for

__all__ = [
    "ChatLLM",
    "ChatMessage",
    "ChatResponse",
    "EncodingCounter",
    "EstimateCounter",
    "OpenAIChatLLM",
    "ScriptedChatLLM",
    "TextSink",
    "TokenCounter",
    "ToolSchema",
    "counter_for",
]
