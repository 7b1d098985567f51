"""What other providers refuse of a request by chat.completions, in their own words: one function for each.

A function takes a body and returns the refusal, or None. Sources: the providers' documentation and public reports.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from standins.openai_replies import Failure, Recorded

Refusing = Callable[[dict[str, Any]], Failure | None]


def _calling(body: dict[str, Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    yield from ((place, each) for place, each in enumerate(body["messages"]) if each.get("tool_calls"))


def deepseek(body: dict[str, Any]) -> Failure | None:
    """Refuse calls of tools without what the model thought before them."""
    missing = [place for place, each in _calling(body) if not each.get("reasoning_content")]
    if not missing:
        return None
    return Failure(400, f"Missing `reasoning_content` field in the assistant message at message index {missing[0]}.")


def kimi(body: dict[str, Any]) -> Failure | None:
    """Refuse calls of tools without what the model thought before them."""
    missing = [place for place, each in _calling(body) if not each.get("reasoning_content")]
    said = "thinking is enabled but reasoning_content is missing in assistant tool call message at index"
    return Failure(400, f"{said} {missing[0]}") if missing else None


def openrouter(body: dict[str, Any]) -> Failure | None:
    """Refuse calls of tools without the reasoning that was signed, each of its parts once."""
    whole = [{"type": "reasoning.text", "text": "I add.", "format": "x-v1", "index": 0, "signature": "c2ln"}]
    wrong = any(each.get("reasoning_details") != whole for _, each in _calling(body))
    return Failure(400, "Provider returned error: reasoning_details do not match") if wrong else None


def gemini(body: dict[str, Any]) -> Failure | None:
    """Refuse calls of tools of which the first has no signature."""
    for _, each in _calling(body):
        google = (each["tool_calls"][0].get("extra_content") or {}).get("google") or {}
        if google.get("thought_signature") not in ("c2ln", "skip_thought_signature_validator"):
            said = "Function call is missing a thought_signature in functionCall parts. This is required for tools."
            return Failure(400, said)
    return None


def mistral(body: dict[str, Any]) -> Failure | None:
    """Refuse ids of calls that are not nine letters and digits, and fields of messages that are not known."""
    for place, each in enumerate(body["messages"]):
        extra = [name for name in each if name not in ("role", "content", "tool_calls", "tool_call_id", "name")]
        if extra:
            where = ["body", "messages", place, each["role"], extra[0]]
            said = {"detail": [{"type": "extra_forbidden", "loc": where, "msg": "Extra inputs are not permitted"}]}
            return Failure(422, "", raw=json.dumps(said).encode())
        ids = [call["id"] for call in each.get("tool_calls") or ()] + [each.get("tool_call_id", "abcdefghi")]
        for wrong in (call_id for call_id in ids if not re.fullmatch(r"[a-zA-Z0-9]{9}", call_id)):
            return Failure(400, f"Tool call id was {wrong} but must be a-z, A-Z, 0-9, with a length of 9.")
    return None


def text_only(body: dict[str, Any]) -> Failure | None:
    """Refuse pictures."""
    parts = [part for each in body["messages"] if isinstance(each.get("content"), list) for part in each["content"]]
    seen = any(part.get("type") == "image_url" for part in parts)
    return Failure(404, "No endpoints found that support image input") if seen else None


def thinking_call(number: int, **extras: Any) -> Recorded:
    """Return a streamed call of `add` by a model that thinks, with what its provider adds to message and call."""
    message, call = extras.get("message", {}), extras.get("call", {})
    function = {"name": "add", "arguments": json.dumps({"a": number, "b": 1})}
    calls = [{"index": 0, "id": f"call_{number}_of_a_provider", "type": "function", "function": function, **call}]
    deltas = [{"role": "assistant", "content": "", **message}, {"tool_calls": calls}]
    chunks: list[dict[str, Any]] = [
        {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas
    ]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    return Recorded(f"{body}data: [DONE]\n\n".encode())
