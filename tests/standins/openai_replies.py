"""What the model is to say, and how it looks on the wire: in one piece or in chunks, or as an error."""

import itertools
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from standins.serving import Gate

_ids = itertools.count(1)


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A tool call. Arguments given as text go out as they are: broken JSON, say."""

    name: str
    arguments: dict[str, Any] | str = field(default_factory=dict)
    id: str = ""

    def as_wire(self) -> dict[str, Any]:
        arguments = self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)
        return {"id": self.id, "type": "function", "function": {"name": self.name, "arguments": arguments}}


@dataclass(frozen=True, slots=True)
class Failure:
    """An answer that is none. `stream_after` sends it as an event inside the stream, after so many chunks."""

    status: int
    message: str
    type: str = "invalid_request_error"
    code: str | None = None
    param: str | None = None
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None

    def as_wire(self) -> dict[str, Any]:
        return {"error": {"message": self.message, "type": self.type, "param": self.param, "code": self.code}}


@dataclass(frozen=True, slots=True)
class Recorded:
    """An answer of another server, byte for byte.

    Args:
        then: How it ends: the server closes the answer, drops the connection, or keeps it open and sends nothing more.
    """

    body: bytes
    content_type: str = "text/event-stream"
    status: int = 200
    then: str = "close"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What the model answers, and what befalls the answer on its way.

    Args:
        chunk_size: Characters in one delta of text, or of a tool's arguments.
        pieces: The deltas of the text themselves, instead of `chunk_size`.
        delay: Seconds before the first byte; `wait` is a gate before it, which a test opens.
        chunk_delay: Seconds before every further delta; `chunk_wait` is a gate before delta number `wait_at`.
        hang: Never a byte; `hang_after`: so many deltas, and then nothing more.
        drop_after: The connection is cut after so many deltas; 0 before the first byte.
        fail_after: An error event in the stream after so many deltas; by Responses it is flat ("event") or "nested", or
            the response has "failed", or there is no end at all ("nothing").
        reasoning: What the model thinks before, by Responses; a model that reasons does so by itself.
        summary: What is said of it to whoever asks for that.
        cached: Tokens of the prompt that were read before; `cache_written`: that are kept for later.
        searches: What the server looks for in the web before it answers, where it was offered that; links in the text
            such as ([title](address)) are what it found.
        ignores_stream: Answer JSON although a stream was asked for.
        with_usage: False is a server that knows no usage.
        recorded: What goes out in the place of all that.
    """

    text: str = ""
    tool_calls: Sequence[ToolUse] = ()
    refusal: str | None = None
    failure: Failure | None = None
    finish_reason: str | None = None
    usage: tuple[int, int] | None = None
    chunk_size: int = 12
    pieces: Sequence[str] | None = None
    delay: float = 0.0
    wait: Gate | None = None
    chunk_delay: float = 0.0
    chunk_wait: Gate | None = None
    wait_at: int = 0
    hang: bool = False
    hang_after: int | None = None
    drop_after: int | None = None
    fail_after: int | None = None
    fails_as: str = "event"
    reasoning: str | None = None
    summary: str = "**Weighing the question**\n\nIt is not hard."
    cached: int = 0
    cache_written: int = 0
    searches: Sequence[str] = ()
    ignores_stream: bool = False
    with_usage: bool = True
    recorded: Recorded | None = None


Given = Reply | Failure | Recorded | str | ToolUse | Sequence["str | ToolUse"]


def as_reply(given: Given) -> Reply:
    """Return a full reply for what a test's function gave: a text, a tool call, a list of them, a failure."""
    if isinstance(given, Reply):
        reply = given
    elif isinstance(given, Failure):
        reply = Reply(failure=given)
    elif isinstance(given, Recorded):
        reply = Reply(recorded=given)
    elif isinstance(given, str):
        reply = Reply(text=given)
    elif isinstance(given, ToolUse):
        reply = Reply(tool_calls=[given])
    else:
        text = "".join(item for item in given if isinstance(item, str))
        reply = Reply(text=text, tool_calls=[item for item in given if isinstance(item, ToolUse)])
    return reply


def rate_limited(retry_after: float = 1) -> Failure:
    """Return the 429 with its Retry-After."""
    message = (
        "Rate limit reached for gpt-5.5 in organization org-standin on requests per min (RPM): Limit 3, Used 3, "
        f"Requested 1. Please try again in {retry_after}s."
    )
    return Failure(429, message, "requests", "rate_limit_exceeded", headers={"Retry-After": f"{retry_after:g}"})


def quota_exceeded() -> Failure:
    """Return the 429 that no waiting helps."""
    message = "You exceeded your current quota, please check your plan and billing details."
    return Failure(429, message, "insufficient_quota", "insufficient_quota")


def server_error(status: int = 500) -> Failure:
    if status == 503:
        return Failure(503, "The engine is currently overloaded, please try again later", "server_error")
    message = "The server had an error while processing your request. Sorry about that!"
    return Failure(status, message, "server_error")


def context_length_exceeded(limit: int = 8192, used: int = 9001) -> Failure:
    message = (
        f"This model's maximum context length is {limit} tokens. However, your messages resulted in {used} tokens. "
        "Please reduce the length of the messages."
    )
    return Failure(400, message, code="context_length_exceeded", param="messages")


def not_json(status: int = 200) -> Failure:
    """Return an answer that a broken proxy gives."""
    return Failure(status, "", raw=b"<html>It works!</html>")


@dataclass(frozen=True, slots=True)
class Completion:
    """A reply, numbered and ready for the wire."""

    reply: Reply
    model: str
    prompt_tokens: int
    includes_usage: bool = False
    id: str = field(default_factory=lambda: f"chatcmpl-{next(_ids):08d}")
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def calls(self) -> list[dict[str, Any]]:
        return [
            call.as_wire() | ({} if call.id else {"id": f"call_{self.id[9:]}{number}"})
            for number, call in enumerate(self.reply.tool_calls)
        ]

    @property
    def finish_reason(self) -> str:
        return self.reply.finish_reason or ("tool_calls" if self.reply.tool_calls else "stop")

    @property
    def usage(self) -> dict[str, Any]:
        out = sum(estimate_tokens(call["function"]["arguments"]) for call in self.calls)
        prompt, completion = self.reply.usage or (self.prompt_tokens, max(1, estimate_tokens(self.reply.text) + out))
        return {
            "prompt_tokens": prompt,
            "completion_tokens": completion,
            "total_tokens": prompt + completion,
            "prompt_tokens_details": {
                "cached_tokens": self.reply.cached,
                "cache_write_tokens": self.reply.cache_written,
                "audio_tokens": 0,
            },
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0},
        }

    def whole(self) -> dict[str, Any]:
        """Return the chat.completion object."""
        reply = self.reply
        message: dict[str, Any] = {
            "role": "assistant",
            "content": reply.text or (None if reply.tool_calls or reply.refusal else ""),
            "refusal": reply.refusal,
            "annotations": [],
        }
        if reply.tool_calls:
            message["tool_calls"] = self.calls
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": self.finish_reason}
        answer = self._envelope("chat.completion") | {"choices": [choice]}
        return answer | ({"usage": self.usage} if reply.with_usage else {})

    def deltas(self) -> Iterator[dict[str, Any]]:
        """Yield the deltas: role first, then text, then each tool call's id and name, then its arguments in pieces."""
        reply = self.reply
        first: dict[str, Any] = {"role": "assistant", "content": None if reply.tool_calls and not reply.text else ""}
        yield first | {"refusal": None}
        for piece in reply.pieces if reply.pieces is not None else cut(reply.text, reply.chunk_size):
            yield {"content": piece}
        for piece in cut(reply.refusal or "", reply.chunk_size):
            yield {"refusal": piece}
        for index, call in enumerate(self.calls):
            arguments = call["function"]["arguments"]
            opening = call | {"index": index, "function": call["function"] | {"arguments": ""}}
            yield {"tool_calls": [opening]}
            for piece in cut(arguments, reply.chunk_size):
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}

    def chunk(self, delta: dict[str, Any], *, last: bool = False, include_usage: bool = False) -> dict[str, Any]:
        """Return the chunk around a delta; the last one carries the finish_reason."""
        reason = self.finish_reason if last else None
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": reason}
        chunk = self._envelope("chat.completion.chunk") | {"choices": [choice]}
        return chunk | ({"usage": None} if include_usage else {})

    def usage_chunk(self) -> dict[str, Any]:
        return self._envelope("chat.completion.chunk") | {"choices": [], "usage": self.usage}

    def groups(self) -> Iterator[list[dict[str, Any]]]:
        """Yield the chunk of each delta."""
        for delta in self.deltas():
            yield [self.chunk(delta, include_usage=self.includes_usage)]

    def ending(self) -> list[dict[str, Any]]:
        """Return the last chunks."""
        last = self.chunk({}, last=True, include_usage=self.includes_usage)
        return [last, self.usage_chunk()] if self.includes_usage else [last]

    def failing(self) -> list[dict[str, Any]]:
        """Return how the reply fails in the middle."""
        return [server_error().as_wire()]

    def _envelope(self, kind: str) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "service_tier": "default",
            "system_fingerprint": "fp_standin",
        }


def cut(text: str, size: int) -> Iterator[str]:
    """Yield the text in pieces of `size` characters."""
    for begin in range(0, len(text), max(1, size)):
        yield text[begin : begin + max(1, size)]


def estimate_tokens(text: str) -> int:
    """Return roughly how many tokens a text has."""
    return (len(text) + 3) // 4


def prompt_tokens(body: dict[str, Any]) -> int:
    """Return roughly how many tokens a request's messages and tools have."""
    total = 3
    for message in body["messages"]:
        content = message.get("content")
        parts = content if isinstance(content, list) else [{"text": content or ""}]
        total += 4 + sum(estimate_tokens(str(part.get("text", ""))) for part in parts)
        total += sum(estimate_tokens(json.dumps(call)) for call in message.get("tool_calls") or ())
    return total + sum(estimate_tokens(json.dumps(tool)) for tool in body.get("tools") or ())
