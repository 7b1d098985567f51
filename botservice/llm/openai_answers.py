"""Reading what a chat.completions server answers, whole or in pieces, with the habits of the servers that exist."""

import json
from dataclasses import dataclass, field
from typing import Any

from openai.types.chat import ChatCompletion, ChatCompletionChunk

from botservice.errors import LLMError
from botservice.llm.chat import ChatResponse, TextSink
from botservice.messages import TokenUsage, ToolCall


@dataclass(slots=True)
class _PartialCall:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class StreamedAnswer:
    """An answer that arrives in pieces."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._calls: list[_PartialCall] = []
        self._by_index: dict[int, _PartialCall] = {}
        self._usage: TokenUsage | None = None
        self._is_finished = False

    def add(self, chunk: ChatCompletionChunk, on_text: TextSink | None) -> None:
        """Take the next piece."""
        self._usage = _read_usage(chunk.usage) or self._usage
        for choice in (chunk.choices or ())[:1]:
            self._is_finished = self._is_finished or bool(choice.finish_reason)
            if choice.delta is None:
                continue
            piece = choice.delta.content or choice.delta.refusal
            if piece:
                self._text.append(piece)
                if on_text is not None:
                    on_text(piece)
            for part in choice.delta.tool_calls or ():
                self._add_call(part)

    def response(self) -> ChatResponse:
        """Return the whole answer.

        Raises:
            LLMError: it broke off.
        """
        if not self._is_finished:
            raise LLMError("the model's answer broke off")
        calls = [(call.id, call.name, "".join(call.arguments)) for call in self._calls]
        return ChatResponse("".join(self._text), _read_calls(calls), self._usage)

    def _add_call(self, part: Any) -> None:
        call = self._find_call(part)
        call.id = call.id or part.id or ""
        if part.function is not None:
            call.name = call.name or part.function.name or ""
            call.arguments.append(_as_text(part.function.arguments))

    def _find_call(self, part: Any) -> _PartialCall:
        """Return the call that a part belongs to.

        Some servers leave the index out, or give every call the index 0: a part that brings a name and another id
        begins a call, too.
        """
        index = -1 if part.index is None else part.index
        known = self._by_index.get(index)
        begins = bool(part.id and part.function is not None and part.function.name)
        if known is None or (begins and known.id and part.id != known.id):
            known = self._by_index[index] = _PartialCall()
            self._calls.append(known)
        return known


def read_completion(completion: ChatCompletion, on_text: TextSink | None) -> ChatResponse:
    """Return an answer that came in one piece.

    Raises:
        LLMError: there is none in it.
    """
    if not getattr(completion, "choices", None):
        raise LLMError("the model's answer has no choices")
    message = completion.choices[0].message
    text = message.content or message.refusal or ""
    if text and on_text is not None:
        on_text(text)
    wanted: list[Any] = [call for call in message.tool_calls or () if getattr(call, "function", None) is not None]
    calls = [(call.id, call.function.name, _as_text(call.function.arguments)) for call in wanted]
    return ChatResponse(text, _read_calls(calls), _read_usage(completion.usage))


def read_tool_call(call_id: str, name: str, arguments: str) -> ToolCall:
    """Return the call that a model wrote; arguments that are no JSON object are kept as malformed."""
    try:
        parsed = json.loads(arguments) if arguments.strip() else {}
    except (json.JSONDecodeError, RecursionError):
        parsed = None
    if not isinstance(parsed, dict):
        return ToolCall(call_id, name, {}, malformed_arguments=arguments)
    return ToolCall(call_id, name, parsed)


def _as_text(arguments: Any) -> str:
    if arguments is None or isinstance(arguments, str):
        return arguments or ""
    return json.dumps(arguments)  # some servers parse them


def _read_calls(calls: list[tuple[str, str, str]]) -> tuple[ToolCall, ...]:
    """Return calls with ids that are there and differ, as the next prompt needs them to."""
    read: dict[str, ToolCall] = {}
    for number, (call_id, name, arguments) in enumerate(calls):
        unique = call_id if call_id and call_id not in read else f"{call_id or 'call'}_{number}"
        read[unique] = read_tool_call(unique, name, arguments)
    return tuple(read.values())


def _read_usage(usage: Any) -> TokenUsage | None:
    if usage is None:
        return None
    details = getattr(usage, "prompt_tokens_details", None)
    cached = details.get("cached_tokens") if isinstance(details, dict) else getattr(details, "cached_tokens", None)
    # Servers differ in what they send here; only a number above nothing says something.
    known = cached if isinstance(cached, int) and not isinstance(cached, bool) and cached > 0 else None
    return TokenUsage(usage.prompt_tokens or 0, usage.completion_tokens or 0, known)
