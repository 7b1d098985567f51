"""Answers in the forms of OpenAI's two APIs, whole and as streams.

Source: the API reference of OpenAI, "Chat Completions" and "Responses", with their streaming events.
"""

import json
import uuid
from collections.abc import Iterator, Mapping
from typing import Any, Final

from botservice.core.messages import TokenUsage

DONE: Final = "data: [DONE]\n\n"


class _Answer:
    """One answer in the form of one API.

    Args:
        created: Seconds since 1970.
    """

    def __init__(self, model: str, created: int, *, has_usage: bool) -> None:
        self._model = model
        self._created = created
        self._has_usage = has_usage
        self._id = uuid.uuid4().hex


class ChatFormat(_Answer):
    """Chat Completions."""

    def whole(self, text: str, usage: TokenUsage) -> Mapping[str, Any]:
        """Return the body of a whole answer."""
        message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None, "annotations": []}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
        return {**self._head("chat.completion"), "choices": [choice], "usage": _chat_usage(usage)}

    def begin(self) -> Iterator[str]:
        """Yield how a stream begins."""
        yield self._chunk({"role": "assistant", "content": ""})

    def piece(self, text: str) -> Iterator[str]:
        """Yield the next piece of the text."""
        yield self._chunk({"content": text})

    def end(self, text: str, usage: TokenUsage) -> Iterator[str]:  # noqa: ARG002 - the other form repeats it
        """Yield how a stream ends."""
        yield self._chunk({}, "stop")
        if self._has_usage:
            yield _data({**self._head("chat.completion.chunk"), "choices": [], "usage": _chat_usage(usage)})
        yield DONE

    def fail(self, message: str) -> Iterator[str]:
        """Yield how a stream ends that cannot go on."""
        yield _data({"error": {"message": message, "type": "server_error", "param": None, "code": None}})
        yield DONE

    def _chunk(self, delta: Mapping[str, Any], reason: str | None = None) -> str:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        return _data({**self._head("chat.completion.chunk"), "choices": [choice]})

    def _head(self, kind: str) -> dict[str, Any]:
        return {"id": f"chatcmpl-{self._id}", "object": kind, "created": self._created, "model": self._model}


class ResponsesFormat(_Answer):
    """Responses."""

    def __init__(self, model: str, created: int, *, has_usage: bool) -> None:
        super().__init__(model, created, has_usage=has_usage)
        self._number = -1
        self._item = f"msg_{uuid.uuid4().hex}"

    def whole(self, text: str, usage: TokenUsage) -> Mapping[str, Any]:
        """Return the body of a whole answer."""
        return self._response("completed", [self._message(text, "completed")], _responses_usage(usage))

    def begin(self) -> Iterator[str]:
        """Yield how a stream begins."""
        response = self._response("in_progress", [])
        yield self._event("response.created", response=response)
        yield self._event("response.in_progress", response=response)
        item = {**self._message("", "in_progress"), "content": []}
        yield self._event("response.output_item.added", output_index=0, item=item)
        yield self._event("response.content_part.added", **self._place(), part=_part(""))

    def piece(self, text: str) -> Iterator[str]:
        """Yield the next piece of the text."""
        yield self._event("response.output_text.delta", **self._place(), delta=text, logprobs=[])

    def end(self, text: str, usage: TokenUsage) -> Iterator[str]:
        """Yield how a stream ends."""
        yield self._event("response.output_text.done", **self._place(), text=text, logprobs=[])
        yield self._event("response.content_part.done", **self._place(), part=_part(text))
        item = self._message(text, "completed")
        yield self._event("response.output_item.done", output_index=0, item=item)
        yield self._event("response.completed", response=self._response("completed", [item], _responses_usage(usage)))

    def fail(self, message: str) -> Iterator[str]:
        """Yield how a stream ends that cannot go on."""
        failed = {**self._response("failed", []), "error": {"code": "server_error", "message": message}}
        yield self._event("response.failed", response=failed)

    def _place(self) -> dict[str, Any]:
        return {"item_id": self._item, "output_index": 0, "content_index": 0}

    def _message(self, text: str, status: str) -> dict[str, Any]:
        return {"id": self._item, "type": "message", "status": status, "role": "assistant", "content": [_part(text)]}

    def _response(self, status: str, output: list[Any], usage: Any = None) -> dict[str, Any]:
        fixed: dict[str, Any] = {
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "tools": [],
        }
        settings = {"parallel_tool_calls": False, "temperature": None, "tool_choice": "auto", "top_p": None}
        head = {"id": f"resp_{self._id}", "object": "response", "created_at": self._created, "status": status}
        return {**head, "model": self._model, "output": output, "usage": usage, **fixed, **settings, "store": False}

    def _event(self, kind: str, **fields: Any) -> str:
        self._number += 1
        return f"event: {kind}\n" + _data({"type": kind, "sequence_number": self._number, **fields})


AnswerFormat = ChatFormat | ResponsesFormat


def _part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _data(value: Mapping[str, Any]) -> str:
    return f"data: {json.dumps(value, separators=(',', ':'))}\n\n"


def _chat_usage(usage: TokenUsage) -> dict[str, Any]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens or 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
    }


def _responses_usage(usage: TokenUsage) -> dict[str, Any]:
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens or 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens or 0},
        "total_tokens": usage.total_tokens,
    }
