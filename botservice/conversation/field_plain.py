"""Field values as plain JSON, for people and programs that read and do not load them again."""

import math
from base64 import b64encode
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from botservice.conversation.field_values import FIELD_NAMES, FrozenDict, FrozenList, Timing
from botservice.core.messages import TokenUsage


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
