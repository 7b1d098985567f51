"""A reply as a response: its items, whole or as the events of a stream; and a request as chat.completions has it."""

import itertools
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from standins.openai_models import rules_of
from standins.openai_replies import Reply, cut, estimate_tokens
from standins.openai_seals import Seals, new_id

Event = dict[str, Any]
Group = list[Event]


def as_chat(body: dict[str, Any]) -> dict[str, Any]:
    """Return a request with its messages and tools as chat.completions has them, for replies that are made of these."""
    given = body["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    messages: list[dict[str, Any]] = []
    for item in items:
        kind = item.get("type", "message")
        if kind == "message":
            messages.append({"role": item["role"], "content": _content(item["content"])})
        elif kind == "function_call":
            call = {"name": item["name"], "arguments": item["arguments"]}
            _asked(messages).append({"id": item["call_id"], "type": "function", "function": call})
        elif kind == "function_call_output":
            messages.append({"role": "tool", "tool_call_id": item["call_id"], "content": _content(item["output"])})
    functions = [tool for tool in body["tools"] if tool["type"] == "function"]
    tools = [{"type": "function", "function": {k: v for k, v in t.items() if k != "type"}} for t in functions]
    return body | {"messages": messages, "tools": tools}


def _asked(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    if not messages or messages[-1]["role"] != "assistant":
        messages.append({"role": "assistant", "content": None})
    calls: list[dict[str, Any]] = messages[-1].setdefault("tool_calls", [])
    return calls


def _content(content: Any) -> Any:
    if isinstance(content, str):
        return content
    parts: list[dict[str, Any]] = [
        {"type": "image_url", "image_url": {"url": part.get("image_url")}}
        if part["type"] == "input_image"
        else {"type": "text", "text": part.get("text") or part.get("refusal") or "[file]"}
        for part in content
    ]
    return "".join(part["text"] for part in parts) if all(part["type"] == "text" for part in parts) else parts


@dataclass(frozen=True, slots=True)
class Response:
    """A reply, numbered and ready for /v1/responses."""

    reply: Reply
    body: dict[str, Any]
    key: str
    seals: Seals
    prompt_tokens: int
    id: str = field(default_factory=lambda: new_id("resp"))
    created: int = field(default_factory=lambda: int(time.time()))
    items: list[dict[str, Any]] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=itertools.count)

    def __post_init__(self) -> None:
        self.items.extend(self._make_items())
        if not self.is_incomplete:
            self.seals.note(self.items)

    @property
    def is_incomplete(self) -> bool:
        return self.reply.finish_reason in ("length", "content_filter")

    @property
    def searches(self) -> Sequence[str]:
        """What is looked for in the web."""
        offered = [tool["type"] for tool in self.body.get("tools") or ()]
        return self.reply.searches if "web_search" in offered else ()

    @property
    def thought(self) -> str | None:
        """What the model thinks before it answers."""
        effort = (self.body.get("reasoning") or {}).get("effort")
        if effort == "none" or not rules_of(self.body["model"]).reasons:
            return None
        return self.reply.reasoning or f"What may {self.id} say?"

    def whole(self) -> dict[str, Any]:
        """Return the response object."""
        if not self.is_incomplete:
            searched = {"image_gen": {}, "web_search": {"num_requests": len(self.searches)}}
            used = {"usage": self._usage, "tool_usage": searched}
            return self._envelope("completed") | {"output": self.items} | used
        reason = "max_output_tokens" if self.reply.finish_reason == "length" else "content_filter"
        details = {"incomplete_details": {"reason": reason}}
        return self._envelope("incomplete") | details | {"output": self.items, "usage": self._usage}

    def groups(self) -> Iterator[Group]:
        """Yield the events of each delta, up to the end."""
        yield [
            self._event(f"response.{name}", response=self._envelope("in_progress"))
            for name in ("created", "in_progress")
        ]
        for place, item in enumerate(self.items):
            added = self._event("response.output_item.added", output_index=place, item=_begun(item))
            for number, group in enumerate(self._pieces(place, item)):
                yield ([] if number else [added]) + group

    def ending(self) -> Group:
        """Return the last event."""
        kind = "incomplete" if self.is_incomplete else "completed"
        return [self._event(f"response.{kind}", response=self.whole())]

    def failing(self) -> Group:
        """Return how the reply fails in the middle."""
        error = {"code": "server_error", "message": "The server had an error while processing your request."}
        match self.reply.fails_as:
            case "event":
                return [self._event("error", param=None, **error)]
            case "nested":
                return [self._event("error", error={**error, "type": "server_error", "param": None})]
            case "failed":
                return [self._event("response.failed", response=self._envelope("failed") | {"error": error})]
            case _:
                return []

    def _event(self, kind: str, **fields: Any) -> Event:
        return {"type": kind, "sequence_number": next(self._numbers), **fields}

    def _make_items(self) -> Iterator[dict[str, Any]]:
        reply, status = self.reply, "incomplete" if self.is_incomplete else "completed"
        if self.thought is not None:
            yield self._reasoning(self.thought)
        for query in self.searches:
            action = {"type": "search", "query": query, "queries": [query]}
            yield {"id": new_id("ws"), "type": "web_search_call", "status": "completed", "action": action}
        phase = {"phase": "commentary" if reply.tool_calls else "final_answer"}
        text = reply.text or "".join(reply.pieces or ())
        content: list[dict[str, Any]] = []
        if text:
            found = _citations(text) if self.searches else []
            content.append({"type": "output_text", "text": text, "annotations": found, "logprobs": []})
        if reply.refusal is not None:
            content.append({"type": "refusal", "refusal": reply.refusal})
        if content or not (reply.tool_calls or self.is_incomplete):
            message = {"id": new_id("msg"), "type": "message", "status": status, "role": "assistant"}
            yield message | phase | {"content": content}
        for call in reply.tool_calls:
            wire = call.as_wire()
            named = {"name": wire["function"]["name"], "arguments": wire["function"]["arguments"]}
            call_id = wire["id"] or new_id("call")
            yield {"id": new_id("fc"), "type": "function_call", "status": status, "call_id": call_id} | named

    def _reasoning(self, thought: str) -> dict[str, Any]:
        item_id = new_id("rs")
        is_summed_up = bool((self.body.get("reasoning") or {}).get("summary"))
        summary = [{"type": "summary_text", "text": self.reply.summary}] if is_summed_up else []
        item: dict[str, Any] = {"id": item_id, "type": "reasoning", "summary": summary}
        if "reasoning.encrypted_content" in (self.body.get("include") or ()):
            item["encrypted_content"] = self.seals.seal(item_id, thought, model=self.body["model"], key=self.key)
        return item

    def _pieces(self, place: int, item: dict[str, Any]) -> Iterator[Group]:
        about = {"item_id": item["id"], "output_index": place}
        if item["type"] == "reasoning":
            for number, part in enumerate(item["summary"]):
                text = {"summary_index": number, "text": part["text"]}
                yield [self._event("response.reasoning_summary_text.done", **about, **text)]
        elif item["type"] == "web_search_call":
            for name in ("in_progress", "searching", "completed"):
                yield [self._event(f"response.web_search_call.{name}", **about)]
        elif item["type"] == "function_call":
            for piece in cut(item["arguments"], self.reply.chunk_size):
                yield [self._event("response.function_call_arguments.delta", **about, delta=piece)]
        else:
            for number, part in enumerate(item["content"]):
                yield from self._said(about | {"content_index": number}, part)
        yield [self._event("response.output_item.done", output_index=place, item=item)]

    def _said(self, about: dict[str, Any], part: dict[str, Any]) -> Iterator[Group]:
        if part["type"] == "refusal":
            pieces, kind = cut(part["refusal"], self.reply.chunk_size), "refusal"
        else:
            given = self.reply.pieces
            pieces = iter(given) if given is not None else cut(part["text"], self.reply.chunk_size)
            kind = "output_text"
        told, waiting = 0, list(part.get("annotations") or ())
        for piece in pieces:
            told += len(piece)
            group = [self._event(f"response.{kind}.delta", **about, delta=piece)]
            while waiting and waiting[0]["end_index"] <= told:  # right behind what it is about
                added = {"annotation": waiting.pop(0), "annotation_index": 0}
                group.append(self._event("response.output_text.annotation.added", **about, **added))
            yield group

    @property
    def _usage(self) -> dict[str, Any]:
        reply = self.reply
        thought = estimate_tokens(self.thought or "")
        called = sum(estimate_tokens(item.get("arguments", "")) for item in self.items)
        given, made = reply.usage or (self.prompt_tokens, max(1, estimate_tokens(reply.text) + called + thought))
        return {
            "input_tokens": given,
            "input_tokens_details": {"cached_tokens": reply.cached, "cache_write_tokens": reply.cache_written},
            "output_tokens": made,
            "output_tokens_details": {"reasoning_tokens": min(thought, made)},
            "total_tokens": given + made,
        }

    def _envelope(self, status: str) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "error": None,
            "incomplete_details": None,
            "model": self.body["model"],
            "output": [],
            "store": self.body.get("store", True),
            "usage": None,
        }


def _begun(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item as it stands at its beginning, where nothing of it can be relied on."""
    empty: dict[str, Any] = {"content": [], "summary": [], "arguments": "", "encrypted_content": "gAAAAAunfinished"}
    return item | {name: empty[name] for name in empty.keys() & item.keys()} | {"status": "in_progress"}


def _citations(text: str) -> list[dict[str, Any]]:
    """Return what the links in a text name, as the real one marks them."""
    return [
        {"type": "url_citation", "start_index": link.start(), "end_index": link.end(), "url": link[2], "title": link[1]}
        for link in re.finditer(r"\(\[([^\]]*)\]\(([^)]*)\)\)", text)
    ]
