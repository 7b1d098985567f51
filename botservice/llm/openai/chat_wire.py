"""Requests of /chat/completions."""

from collections.abc import Sequence
from typing import Any, Final

from botservice.llm.chat import ChatMessage, ToolSchema
from botservice.llm.openai.options import CallOptions
from botservice.llm.openai.prompt_caching import KEY, CacheMarks, marked

PATH: Final = "/chat/completions"
SCHEMA: Final = "response_format"
ALTERNATING_ROLES: Final = "two messages of a person in a row"
"""What a server has refused whose model's template wants people and assistant to take turns."""
_MARKABLE: Final = ("system", "developer", "user", "tool")


def build_body(messages: Sequence[ChatMessage], tools: Sequence[ToolSchema], options: CallOptions) -> dict[str, Any]:
    """Return the body of a request. What nobody asked for is not in it: other servers refuse what they do not know."""
    marks = CacheMarks.of(messages, options)
    shown = list(messages)
    for place in marks.breakpoints:
        shown[place] = _marked(shown[place])
    body: dict[str, Any] = {"model": options.model, "stream": True}
    if functions := [tool for tool in tools if tool.get("type") == "function"]:
        body["tools"] = functions  # what a server runs itself is there by Responses alone
    if "stream_options" not in options.refused:
        body["stream_options"] = {"include_usage": True}
    if options.max_answer_tokens is not None:
        is_older = "max_completion_tokens" in options.refused
        body["max_tokens" if is_older else "max_completion_tokens"] = options.max_answer_tokens
    if options.reasoning_effort is not None:
        body["reasoning_effort"] = options.reasoning_effort
    if options.temperature is not None:
        body["temperature"] = options.temperature
    if options.schema is not None and SCHEMA not in options.refused:
        form = {"name": options.schema.name, "strict": True, "schema": options.schema.schema}
        body[SCHEMA] = {"type": "json_schema", "json_schema": form}
    if marks.key is not None:
        body[KEY] = marks.key
    # Last, so that a request begins as the one before it did.
    body["messages"] = merge_consecutive(shown) if ALTERNATING_ROLES in options.refused else shown
    return body


def _marked(message: ChatMessage) -> ChatMessage:
    if message["role"] not in _MARKABLE or not message.get("content"):
        return message
    content = message["content"]
    parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
    return {**message, "content": marked(parts)}


def merge_consecutive(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return messages with those of people right after each other made into one."""
    joined: list[ChatMessage] = []
    for message in messages:
        if joined and message["role"] == joined[-1]["role"] == "user":
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
