"""Messages in the forms that servers have asked for by their refusals: without pictures or files, with other ids."""

import hashlib
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

from botservice.llm.chat import ChatMessage, SaidMessage, picture_digest
from botservice.llm.openai.error_table import AUDIO, FILE, IMAGE, ONE_IMAGE

_SHORT_ID: Final = re.compile(r"[a-zA-Z0-9]{9}")
_DATA_URL: Final = re.compile(r"data:([\w.+-]+/[\w.+-]+)[;,]")
_KINDS: Final = {"image_url": IMAGE, "file": FILE, "input_audio": AUDIO}
_STANDS_FOR: Final = {
    IMAGE: "[Here is a picture that cannot be shown to you.]",
    FILE: "[Here is a file that cannot be shown to you.]",
    AUDIO: "[Here is a recording that cannot be played to you.]",
}
KINDS_OF_INPUT: Final = frozenset({IMAGE, FILE, AUDIO, ONE_IMAGE})


def is_input(refused: str | None) -> bool:
    """Return whether what a server refuses is a kind of input, or a media type."""
    return refused is not None and (refused in KINDS_OF_INPUT or ("/" in refused and not refused.startswith("/")))


def digests(messages: Sequence[ChatMessage]) -> frozenset[str]:
    """Return what tells the pictures of a prompt apart."""
    return frozenset(_digest(part) for part in _parts(messages) if part.get("type") == "image_url")


def newest_digests(messages: Sequence[ChatMessage], refused: Collection[str]) -> frozenset[str]:
    """Return what tells the pictures apart that the newest message with any has, of those that are still sent."""
    for message in reversed(messages):
        if found := frozenset(each for each in digests([message]) if each not in refused):
            return found
    return frozenset()


def find_left_out(messages: Sequence[ChatMessage], refused: Collection[str]) -> tuple[str, ...]:
    """Return what a request goes without: media types, and the digests of single pictures.

    Args:
        refused: Kinds of input, media types, and digests of pictures.
    """
    without = (part for part in _parts(messages) if _is_refused(part, refused))
    return tuple(sorted({_type(part) if _is_type_refused(part, refused) else _digest(part) for part in without}))


def find_types(messages: Sequence[ChatMessage], refused: Collection[str]) -> frozenset[str]:
    """Return the media types of the pictures and files that a request goes with."""
    sent = (part for part in _parts(messages) if part.get("type") in _KINDS and not _is_refused(part, refused))
    return frozenset(map(_type, sent))


def without_input(messages: Sequence[ChatMessage], refused: Collection[str]) -> list[ChatMessage]:
    """Return messages in which a note stands for each picture or file that the server does not take."""
    return [_without(message, refused) for message in messages]


def _without(message: ChatMessage, refused: Collection[str]) -> ChatMessage:
    content = message.get("content")
    if not isinstance(content, list) or not any(_is_refused(part, refused) for part in content):
        return message
    parts = [_note(part) if _is_refused(part, refused) else part for part in content]
    if all(part.get("type") == "text" for part in parts):  # servers that know of no pictures know of no parts
        return {**message, "content": "\n".join(part["text"] for part in parts)}
    return {**message, "content": parts}


def _note(part: dict[str, Any]) -> dict[str, Any]:
    return {"type": "text", "text": _STANDS_FOR[_KINDS[part["type"]]]}


def _parts(messages: Sequence[ChatMessage]) -> Iterator[dict[str, Any]]:
    for message in messages:
        content = message.get("content")
        if isinstance(content, list):
            yield from content


def _is_refused(part: dict[str, Any], refused: Collection[str]) -> bool:
    if part.get("type") not in _KINDS:
        return False
    return _is_type_refused(part, refused) or (_KINDS[part["type"]] == IMAGE and _digest(part) in refused)


def _is_type_refused(part: dict[str, Any], refused: Collection[str]) -> bool:
    return _KINDS[part["type"]] in refused or _type(part) in refused


def _type(part: dict[str, Any]) -> str:
    """Return the media type of a part, as far as it says it, or its kind."""
    found = _DATA_URL.match(str(part.get("image_url", {}).get("url") or part.get("file", {}).get("file_data") or ""))
    return found[1].lower() if found else _KINDS[part["type"]]


def _digest(part: dict[str, Any]) -> str:
    return picture_digest(str(part.get("image_url", {}).get("url")))


def with_short_ids(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return messages with ids of calls that any server takes: nine letters and digits, the same ones for the same id.

    Source: Mistral's validation of requests. An id that is one stays.
    """
    return [_with_short_id(message) for message in messages]


def _with_short_id(message: ChatMessage) -> ChatMessage:
    if "tool_call_id" in message:
        return {**message, "tool_call_id": _short_id(message["tool_call_id"])}
    if not message.get("tool_calls"):
        return message
    calls = [{**call, "id": _short_id(call["id"])} for call in message["tool_calls"]]
    changed = {**message, "tool_calls": calls}
    return SaidMessage(changed, message.items_given) if isinstance(message, SaidMessage) else changed


def _short_id(call_id: str) -> str:
    return call_id if _SHORT_ID.fullmatch(call_id) else hashlib.sha256(call_id.encode()).hexdigest()[:9]


def with_calls_as_text(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """Return messages in which calls of tools and their results are said in words: there are no tools to call now."""
    return [_with_calls_as_text(message) for message in messages]


def _with_calls_as_text(message: ChatMessage) -> ChatMessage:
    if message["role"] == "tool":
        return {"role": "user", "content": f"[The tool gave: {message['content']}]"}
    if not message.get("tool_calls"):
        return message
    called = [f"[Called {each['function']['name']}({each['function']['arguments']})]" for each in message["tool_calls"]]
    return {"role": "assistant", "content": "\n".join([*filter(None, [message.get("content")]), *called])}
