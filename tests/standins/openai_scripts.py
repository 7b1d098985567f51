"""Ready-made minds for the model server."""

import hashlib
import re
from collections.abc import Callable
from typing import Any

from standins.openai_replies import Given, ToolUse

Replying = Callable[[dict[str, Any]], Any]


def demo(body: dict[str, Any]) -> Given:
    """Answer by echo; a message "use NAME {json}" calls that tool."""
    last = body["messages"][-1]
    content = last.get("content") or ""
    text = content if isinstance(content, str) else " ".join(str(part.get("text", "[…]")) for part in content)
    wish = re.match(r"use (\w+)\s*(\{.*\})?", text)
    if last["role"] == "tool":
        return f"The tool says: {text}"
    if last["role"] == "user" and wish and body.get("tools"):
        return ToolUse(wish[1], wish[2] or "{}")
    return f"You said: {text}"


def script(*replies: Given | Callable[[dict[str, Any]], Given]) -> Replying:
    """Return a function that gives these replies, one for each call, in order. More calls than replies is an error."""
    left = list(replies)

    def next_reply(body: dict[str, Any]) -> Given:
        if not left:
            raise AssertionError("the model was called more often than the script has replies")
        reply = left.pop(0)
        return reply(body) if callable(reply) else reply

    return next_reply


def hashed_words(text: str, dimensions: int = 64) -> list[float]:
    """Return a unit vector in which texts that share words are near each other."""
    vector = [0.0] * dimensions
    for word in re.findall(r"\w+", text.lower()) or [text]:
        digest = hashlib.sha256(word.encode()).digest()
        vector[digest[0] % dimensions] += 1.0 if digest[1] % 2 else -1.0
    return vector
