"""Field values as people and models read them, and as plain JSON for programs that do not load them again."""

import json
import math
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from botservice.conversation.field_codec import FIELD_NAMES, FrozenDict, FrozenList
from botservice.conversation.field_values import StepError, Timing, ToolResult
from botservice.conversation.images import write_data_url
from botservice.core.messages import Attachment, TokenUsage, ToolCall, storable

_LONG_BITS: Final = 2_000  # longer ones cannot be written in decimal on every Python


def readable(value: Any) -> str:
    """Return a value as text: a string unchanged, everything else as JSON in which times and files are words."""
    if isinstance(value, str):
        return value
    return describe(value) if isinstance(value, Attachment) else strict_json(value)


def strict_json(value: Any) -> str:
    """Return a value as JSON for reading: times and files are words, and so are NaN and numbers of enormous length."""
    return json.dumps(_spelled(value), ensure_ascii=False)


def sendable(value: Any) -> str:
    """Return a value as text that travels in UTF-8: what has no place there becomes U+FFFD."""
    text = readable(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        return storable(text)
    return storable(text) if "\0" in text else text


def error_text(error: Any) -> str:
    """Return the value of an error's field as one line, whatever its type."""
    if isinstance(error, StepError):
        return str(error)
    if isinstance(error, Mapping) and {"type", "message"} <= error.keys():
        return f"{readable(error['type'])}: {readable(error['message'])}"
    return readable(error)


def describe(attachment: Attachment) -> str:
    """Return what can be said of a file in a line."""
    size = None if attachment.data is None else f"{len(attachment.data):,} bytes"
    return f"[{', '.join(part for part in (attachment.mime_type, attachment.name, size, attachment.url) if part)}]"


def listed(value: Any) -> Sequence[Any]:
    """Return the values of a field of several, also where a single one was assigned."""
    if value is None:
        return ()
    return value if isinstance(value, tuple | list) else [value]


def match_results(calls: Iterable[ToolCall], results: Any) -> list[ToolResult | None]:
    """Return the result of each call in a step's `tool_results`; None for a call that has none.

    Models do give two calls of a step the same id: the results are in the order of the calls.
    """
    left = [result for result in listed(results) if isinstance(result, ToolResult)]
    matched = []
    for call in calls:
        found = next((result for result in left if result.call_id == call.id), None)
        if found is not None:
            left.remove(found)
        matched.append(found)
    return matched


def images(value: Any) -> list[Attachment]:
    """Return the images among what an images field holds; those whose bytes are lost are left out."""
    files = (item for item in listed(value) if isinstance(item, Attachment) and item.data != b"")
    return [item for item in files if item.mime_type.startswith("image/")]


def image_url(image: Attachment) -> str:
    """Return the address of an image for a prompt: its own, or a data URL."""
    return (image.url or "") if image.data is None else write_data_url(image.mime_type, image.data)


def _spelled(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _spelled(element) for key, element in value.items()}
    if isinstance(value, list | tuple):
        return [_spelled(element) for element in value]
    if type(value) in FIELD_NAMES and not isinstance(value, Attachment):
        given = {name: getattr(value, name) for name in FIELD_NAMES[type(value)]}
        return {name: _spelled(part) for name, part in given.items() if part is not None}
    return _word(value)


def _word(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, bytes):
        return f"[{len(value):,} bytes]"
    if isinstance(value, Attachment):
        return describe(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return hex(value) if isinstance(value, int) and value.bit_length() >= _LONG_BITS else value


def plain(value: Any) -> Any:
    """Convert a field's value into dictionaries, lists, texts and numbers.

    A `Timing` has `start_time` and `end_time` in seconds since 1970, and `duration` in seconds; a `TokenUsage` has its
    `total_tokens` too. Bytes become base64, other datetimes ISO 8601, and numbers that JSON does not know text.
    """
    convert = _CONVERTERS.get(type(value))
    return value if convert is None else convert(value)


def _timing(value: Timing) -> dict[str, Any]:
    end = None if value.end_time is None else value.end_time.timestamp()
    return {"start_time": value.start_time.timestamp(), "end_time": end, "duration": value.duration_seconds}


def _fields(value: Any) -> dict[str, Any]:
    return {name: plain(getattr(value, name)) for name in FIELD_NAMES[type(value)]}


_CONVERTERS: Final[dict[type, Callable[[Any], Any]]] = {
    **dict.fromkeys(FIELD_NAMES, _fields),
    Timing: _timing,
    TokenUsage: lambda value: {**_fields(value), "total_tokens": value.total_tokens},
    datetime: datetime.isoformat,
    bytes: lambda value: b64encode(value).decode("ascii"),
    float: lambda value: value if math.isfinite(value) else repr(value),
    FrozenDict: lambda value: {key: plain(element) for key, element in value.items()},
    FrozenList: lambda value: [plain(element) for element in value],
}
