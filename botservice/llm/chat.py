"""What the service asks of a language model."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from botservice.messages import TokenUsage, ToolCall

ChatMessage = Mapping[str, Any]
"""One message in the form of chat.completions: role, content, and what goes with them."""

ToolSchema = Mapping[str, Any]
"""One tool in the form of chat.completions: {"type": "function", "function": {…}}."""

TextSink = Callable[[str], None]
"""Takes the next piece of an answer while it is written."""

BeforeCall = Callable[[Sequence[ChatMessage], Sequence[ToolSchema]], Awaitable[None]]
"""Takes what is about to be sent: the prompt and the tools. What it raises keeps that from happening."""


@dataclass(frozen=True, slots=True)
class ChatResponse:
    """A model's answer: text, or calls of tools, or both.

    Attributes:
        usage: What it took, where the server says so.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: TokenUsage | None = None


class ChatLLM(Protocol):
    """A language model that chats and calls tools."""

    async def chat(
        self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = (), *, on_text: TextSink | None = None
    ) -> ChatResponse:
        """Return the model's answer.

        Args:
            messages: The whole prompt.
            tools: What it may call; none means that it has to answer.
            on_text: Called with each piece of the text as it arrives. It is left out where nobody listens.

        Raises:
            LLMError: the model did not answer; its attributes say whether asking again may help.
        """
