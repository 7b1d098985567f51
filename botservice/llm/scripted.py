"""A model that follows a script: for tests of bots, for demonstrations, for working offline."""

import inspect
import itertools
import re
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from botservice.core.errors import LLMError
from botservice.core.messages import TokenUsage, ToolCall
from botservice.llm.chat import ChatLLM, ChatMessage, ChatResponse, FinishReason, TextSink, ToolSchema

Reply = str | ToolCall | Sequence["str | ToolCall"] | ChatResponse | BaseException
"""What a script says next: a text, a call, several of them, a whole response, or an error to raise."""

ScriptFunction = Callable[[list[ChatMessage]], "Reply | Awaitable[Reply]"]
"""Makes a reply from the prompt."""

_PIECES = re.compile(r"\s*\S+\s*|\s+")


class ScriptedChatLLM(ChatLLM):
    """Replies with a script: its entries in order, or the results of one function.

    Attributes:
        prompts: The messages of all calls so far, oldest first.
        tools: The tools of all calls so far.
    """

    def __init__(self, script: "Iterable[Reply | ScriptFunction] | ScriptFunction", *, model: str = "scripted") -> None:
        self.model = model
        self.prompts: list[list[ChatMessage]] = []
        self.tools: list[list[ToolSchema]] = []
        self._script = itertools.repeat(script) if callable(script) else iter(_as_list(script))
        self._call_numbers = itertools.count(1)

    async def chat(
        self, messages: Sequence[ChatMessage], tools: Sequence[ToolSchema] = (), *, on_text: TextSink | None = None
    ) -> ChatResponse:
        """Reply with the next entry of the script.

        Raises:
            LLMError: the script has ended.
        """
        self.prompts.append(list(messages))
        self.tools.append(list(tools))
        try:
            reply: Any = next(self._script)
        except StopIteration:
            raise LLMError(
                f"the script of ScriptedChatLLM has ended: this is call {len(self.prompts)}", is_transient=False
            ) from None
        if callable(reply) and not isinstance(reply, type):
            reply = reply(list(messages))
            if inspect.isawaitable(reply):
                reply = await reply
        response = self._as_response(reply, messages)
        if on_text is not None:
            for piece in _PIECES.findall(response.text):
                on_text(piece)
        return response

    def _as_response(self, reply: Any, messages: Sequence[ChatMessage]) -> ChatResponse:
        if isinstance(reply, type) and issubclass(reply, BaseException):
            reply = reply()
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, ChatResponse):
            return reply
        parts = [reply] if isinstance(reply, str | ToolCall) else reply
        if not isinstance(parts, list | tuple) or not all(isinstance(part, str | ToolCall) for part in parts):
            raise TypeError(f"a script says texts, ToolCalls, lists of them, errors or functions, not {reply!r}")
        text = "".join(part for part in parts if isinstance(part, str))
        calls = tuple(self._with_id(part) for part in parts if isinstance(part, ToolCall))
        reason = FinishReason.TOOL_CALLS if calls else FinishReason.STOP
        return ChatResponse(text, calls, _estimate(messages, text), self.model, reason.value)

    def _with_id(self, call: ToolCall) -> ToolCall:
        if call.id:
            return call
        return ToolCall(f"call_{next(self._call_numbers)}", call.name, call.arguments, call.malformed_arguments)


def _as_list(script: Any) -> Iterable[Any]:
    # One reply alone is a script of one; the letters of a text are none.
    return [script] if isinstance(script, str | ToolCall | ChatResponse | BaseException | type) else script


def _estimate(messages: Sequence[ChatMessage], text: str) -> TokenUsage:
    """Return a rough usage, so that what counts tokens has something to count."""
    characters = sum(len(content) for message in messages if isinstance(content := message.get("content"), str))
    return TokenUsage(characters // 4 + 1, len(text) // 4 + 1)
