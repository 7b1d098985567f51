"""The words of a rich message (Bot API 10.1), which the client library does not know yet: plain JSON is read."""

from collections.abc import Mapping
from typing import Any, Final

_DEEPEST: Final = 32
# What stands below each other, what stands beside each other, and what is words by itself.
# The names are those of core.telegram.org/bots/api#richblock and #richtext
_BELOW: Final = ("title", "summary", "blocks", "items", "rows", "cells", "caption", "credit", "text")
_FORMULA: Final = ("expression", "alternative_text", "alt")
_LISTS_BELOW: Final = frozenset({"blocks", "items", "rows"})


def words_of(rich: object) -> str:
    """Return the words of a rich message, each block in a line of its own; empty where there are none."""
    return "\n".join(line.strip() for line in _words(rich, 0).splitlines() if line.strip())


def _words(value: object, depth: int, separator: str = "") -> str:
    if depth > _DEEPEST:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return separator.join(part for each in value if (part := _words(each, depth + 1, separator)))
    return _of_object(value, depth) if isinstance(value, Mapping) else ""


def _of_object(value: Mapping[str, Any], depth: int) -> str:
    parts = []
    for name in _BELOW:
        between = "\n" if name in _LISTS_BELOW else " | " if name == "cells" else ""
        parts.append(_words(value.get(name), depth + 1, between))
    found = [part for part in parts if part]
    return "\n".join(found) or next((str(value[name]) for name in _FORMULA if isinstance(value.get(name), str)), "")
