"""What the service asks of a language model."""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from botservice.core.messages import TokenUsage, ToolCall
from botservice.llm.server_limits import ServerLimits

ChatMessage = Mapping[str, Any]
"""One message in the form of chat.completions: role, content, and what goes with them."""

ToolSchema = Mapping[str, Any]
"""One tool in the form of chat.completions: {"type": "function", "function": {…}}."""

TextSink = Callable[[str], None]
"""Takes the next piece of an answer while it is written."""

BeforeCall = Callable[[Sequence[ChatMessage], Sequence[ToolSchema]], Awaitable[None]]
"""Takes what is about to be sent: the prompt and the tools. What it raises keeps that from happening."""


ModelItem = Mapping[str, Any]
"""A part of an answer as its server gave it: reasoning, a message, a call."""


class FinishReason(StrEnum):
    """Why an answer ended."""

    STOP = "stop"  # it is whole
    TOOL_CALLS = "tool_calls"  # it waits for what tools give
    LENGTH = "length"  # it was cut: it may be no longer
    REFUSAL = "refusal"  # the model does not want to, or may not
    FILTERED = "filtered"  # it was cut: a filter of the server ended it


@dataclass(frozen=True, slots=True)
class Source:
    """A page of the web that an answer names, because its server searched there."""

    url: str
    title: str = ""


@dataclass(frozen=True, slots=True)
class ChatResponse:
    """A model's answer: text, tool calls, or both.

    Attributes:
        usage: The used tokens, if reported.
        model: The model that answered, by the server's name.
        finish_reason: Why the answer ended, such as stop or length.
        items: The server's raw output, if the model needs it again with the next call.
        sources: The pages behind the numbers in its text, the first one for [1].
        left_out: The inputs that the model has not seen because its server does not support them: media types of
            pictures and files, and for single pictures the `picture_digest` of their address.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: TokenUsage | None = None
    model: str | None = None
    finish_reason: str | None = None
    items: tuple[ModelItem, ...] = ()
    sources: tuple[Source, ...] = ()
    left_out: tuple[str, ...] = ()


def picture_digest(url: str) -> str:
    """Return what tells a picture of a prompt apart, by its address or data URL."""
    return hashlib.sha256(url.encode()).hexdigest()


class SaidMessage(dict[str, Any]):
    """An assistant's message of an earlier step: a dict like any other, that knows the items it was read from.

    Attributes:
        items_given: The items, for a server that wants to read them again in the place of the message.
    """

    __slots__ = ("items_given",)

    def __init__(self, message: ChatMessage, items_given: Sequence[ModelItem] = ()) -> None:
        super().__init__(message)
        self.items_given = tuple(items_given)

    def copy(self) -> Self:
        """Return another one with the same content and the same items."""
        return type(self)(self, self.items_given)


@dataclass(frozen=True, slots=True)
class AnswerSchema:
    """The form that an answer has to have, for servers that hold their model to it.

    Attributes:
        name: Letters, digits, _ and -.
        schema: A JSON schema in which every property is required and no other is allowed.
    """

    name: str
    schema: Mapping[str, Any]


class CachedPrompt(list[ChatMessage]):
    """A prompt that says what its server may keep of it."""

    @property
    def cache_key(self) -> str | None:
        """What prompts with the same beginning have in common."""
        return None

    @property
    def breakpoints(self) -> Sequence[int]:
        """The places of the messages after which the server is to keep what it has read."""
        return ()


class ChatLLM(ABC):
    """The base class of language models that chat and call tools, with the defaults for your own classes.

    Only `chat` is required, and an object with it need not inherit.

    Attributes:
        model: Its name on the server, which decides how tokens are counted and priced.
        base_url: The address of its server, for traces.
        takes_schema: Whether `chat` accepts schema=, an `AnswerSchema`.
        searches_web: Whether its server may search the web itself, if known.
        shows_thoughts: Whether `chat` accepts on_thought=, a `TextSink`, and calls it.
        limits: What its server does not support, if the processes of a service share that.
    """

    model: str = ""
    base_url: str | None = None
    takes_schema: bool = False
    searches_web: bool = False
    shows_thoughts: bool = False
    limits: ServerLimits | None = None

    @property
    def llms(self) -> "Sequence[ChatLLM]":
        """The models behind it, in order; by default itself."""
        return (self,)

    @property
    def models(self) -> Sequence[str]:
        """The names of the models that may answer, in order."""
        return (self.model or type(self).__name__,)

    @property
    def refused(self) -> frozenset[str]:
        """The fields, formats and kinds of input that its server does not support, by name."""
        return frozenset()

    def preview(self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = ()) -> Mapping[str, Any] | None:  # noqa: ARG002 - others need it
        """Preview the request of a call: its "url" and "body"; None if unknown."""
        return None

    async def close(self) -> None:
        """Close its connections; a later call of `chat` opens them again."""

    @abstractmethod
    async def chat(
        self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = (), *, on_text: TextSink | None = None
    ) -> ChatResponse:
        """Ask the model for an answer.

        Args:
            messages: The whole prompt.
            tools: The tools that it may call; without tools it has to answer.
            on_text: Called with each piece of the text as it arrives; left out without a listener.

        Raises:
            LLMError: the model did not answer; its attributes tell whether a retry may succeed.
        """
