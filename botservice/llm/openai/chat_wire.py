"""Requests of /chat/completions."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from botservice.llm.chat import ChatMessage, ModelItem, SaidMessage, ToolSchema
from botservice.llm.openai.error_table import (
    ALTERNATING_ROLES,
    LATER_SYSTEM,
    REASONING_BACK,
    SCHEMA,
    SIGNATURE_BACK,
    STREAM,
    SYSTEM_ROLE,
)
from botservice.llm.openai.options import CallOptions
from botservice.llm.openai.prompt_caching import KEY, CacheMarks, marked

_GIVEN: Final = "chat_message"
_NO_REASONING: Final = " "  # Kimi takes no empty text, and DeepSeek takes this one
# For calls of another model. Source: Google, Gemini API, "Thought signatures".
_NO_SIGNATURE: Final = {"google": {"thought_signature": "skip_thought_signature_validator"}}
_MARKABLE: Final = ("system", "developer", "user", "tool")


def build_body(
    messages: Sequence[ChatMessage],
    tools: Sequence[ToolSchema],
    options: CallOptions,
    *,
    refused_seals: frozenset[str] = frozenset(),
) -> dict[str, Any]:
    """Return the body of a request. What nobody asked for is not in it: other servers refuse what they do not know.

    Args:
        refused_seals: What came with earlier answers and the server does not take: their messages go without it.
    """
    marks = CacheMarks.of(messages, options)
    shown = [_as_given(message, options, refused_seals) for message in messages]
    for place in marks.breakpoints:
        shown[place] = _marked(shown[place])
    body: dict[str, Any] = {"model": options.model, "stream": STREAM not in options.refused}
    if functions := [tool for tool in tools if tool.get("type") == "function"]:
        body["tools"] = functions  # what a server runs itself is there by Responses alone
    if body["stream"] and "stream_options" not in options.refused:
        body["stream_options"] = {"include_usage": True}
    if options.max_answer_tokens is not None:
        is_older = "max_completion_tokens" in options.refused
        body["max_tokens" if is_older else "max_completion_tokens"] = options.max_answer_tokens
    if options.reasoning_effort is not None:
        body["reasoning_effort"] = options.reasoning_effort
    if options.temperature is not None and "temperature" not in options.refused:
        body["temperature"] = options.temperature
    if options.schema is not None and SCHEMA not in options.refused:
        form = {"name": options.schema.name, "strict": True, "schema": options.schema.schema}
        body[SCHEMA] = {"type": "json_schema", "json_schema": form}
    if marks.key is not None:
        body[KEY] = marks.key
    # Last, so that a request begins as the one before it did.
    body["messages"] = _arranged(shown, options.refused) if options.refused else shown
    return body


def chat_item(
    options: CallOptions, fields: Mapping[str, Any], of_calls: Sequence[Mapping[str, Any]], thinking: str
) -> ModelItem:
    """Return what is kept of an answer beside its words: what its server wants to read again, and what it thought.

    Args:
        fields: Those of the message that chat.completions does not know, such as `reasoning_content`.
        of_calls: Those of each call.
        thinking: What stood in the text.
    """
    item: dict[str, Any] = {"type": _GIVEN, "model": options.model, "server": urlsplit(options.base_url).hostname}
    if fields:
        item["fields"] = dict(fields)
    if any(of_calls):
        item["calls"] = [dict(each) for each in of_calls]
    return {**item, "thinking": thinking} if thinking else item


def seals(messages: Sequence[ChatMessage], options: CallOptions, refused_seals: frozenset[str]) -> frozenset[str]:
    """Return what tells apart what goes back with the messages of earlier steps."""
    found = (_given(message, options) for message in messages)
    return frozenset(_seal(item) for item in found if item is not None) - refused_seals


def _given(message: ChatMessage, options: CallOptions) -> ModelItem | None:
    """Return what came with a message, if it was this model of this server that gave it."""
    if not isinstance(message, SaidMessage):
        return None
    origin = (_GIVEN, options.model, urlsplit(options.base_url).hostname)
    items = (item for item in message.items_given if item.get("fields") or item.get("calls"))
    return next((item for item in items if (item.get("type"), item.get("model"), item.get("server")) == origin), None)


def _seal(item: ModelItem) -> str:
    return hashlib.sha256(json.dumps(item, sort_keys=True).encode()).hexdigest()


def _as_given(message: ChatMessage, options: CallOptions, refused_seals: frozenset[str]) -> ChatMessage:
    """Return an assistant's message with what came with it."""
    item = _given(message, options)
    if item is None or (refused_seals and _seal(item) in refused_seals):
        return message
    fields = {name: value for name, value in (item.get("fields") or {}).items() if name not in options.refused}
    calls, of_calls = message.get("tool_calls") or (), item.get("calls") or ()
    if len(calls) != len(of_calls):
        return {**message, **fields}
    known = [{name: value for name, value in each.items() if name not in options.refused} for each in of_calls]
    return {**message, **fields, "tool_calls": [{**call, **each} for call, each in zip(calls, known, strict=True)]}


def _arranged(messages: Sequence[ChatMessage], refused: frozenset[str]) -> list[ChatMessage]:
    """Return messages in the order, and with the fields, that the server has asked for by its refusals."""
    arranged = list(messages)
    if refused & {LATER_SYSTEM, SYSTEM_ROLE}:
        arranged = list(_without_system(arranged, keeps_first=SYSTEM_ROLE not in refused))
    if REASONING_BACK in refused:
        arranged = [
            {"reasoning_content": _NO_REASONING, **each} if each["role"] == "assistant" else each for each in arranged
        ]
    if SIGNATURE_BACK in refused:
        arranged = [_signed(each) for each in arranged]
    return merge_consecutive(arranged) if ALTERNATING_ROLES in refused else arranged


def _without_system(messages: Sequence[ChatMessage], *, keeps_first: bool) -> Iterator[ChatMessage]:
    """Yield messages with those of the system said by the user, but for the first ones, which are made into one."""
    begun: list[ChatMessage] = []
    for message in messages:
        if message["role"] not in ("system", "developer"):
            yield from merge_consecutive(begun, "system")
            begun = []
            keeps_first = False
            yield message
        elif keeps_first:
            begun.append(message)
        else:
            yield {**message, "role": "user"}
    yield from merge_consecutive(begun, "system")


def _signed(message: ChatMessage) -> ChatMessage:
    calls = message.get("tool_calls")
    if not calls or calls[0].get("extra_content"):
        return message
    return {**message, "tool_calls": [{**calls[0], "extra_content": _NO_SIGNATURE}, *calls[1:]]}


def _marked(message: ChatMessage) -> ChatMessage:
    if message["role"] not in _MARKABLE or not message.get("content"):
        return message
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {**message, "content": marked(parts)}


def merge_consecutive(messages: Sequence[ChatMessage], role: str = "user") -> list[ChatMessage]:
    """Return messages with those of a role that follow one another made into one."""
    joined: list[ChatMessage] = []
    for message in messages:
        if joined and message["role"] == joined[-1]["role"] == role:
            joined[-1] = {**joined[-1], "content": _joined(joined[-1]["content"], message["content"])}
        else:
            joined.append(message)
    return joined


def _joined(first: Any, second: Any) -> Any:
    if isinstance(first, str) and isinstance(second, str):
        return f"{first}\n\n{second}"
    return [*_parts(first), *_parts(second)]


def _parts(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
