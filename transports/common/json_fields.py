"""Reading what a platform sends as plain JSON: what is not there, or is of another kind, is None."""

from collections.abc import Mapping
from typing import Any, Final

_MAX_ID: Final = 2**63 - 1


def field(value: object, *names: str) -> Any:
    """Return what a JSON object says under a name, and under the next name there; None where it says nothing."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def items_of(value: object, *names: str) -> list[Any]:
    """Return the list that a JSON object holds, found as by `field`; an empty one where it holds none."""
    found = field(value, *names)
    return found if isinstance(found, list) else []


def string(value: object, *names: str) -> str | None:
    """Return the text that a JSON object holds, found as by `field`."""
    found = field(value, *names)
    return found if isinstance(found, str) else None


def integer(value: object, *names: str) -> int | None:
    """Return the id or the count that a JSON object holds, found as by `field`."""
    found = field(value, *names)
    if isinstance(found, bool) or not isinstance(found, int) or abs(found) > _MAX_ID:
        return None
    return found
