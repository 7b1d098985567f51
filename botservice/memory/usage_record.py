"""A step's token usage in its record, in a form that earlier releases read too.

They take the whole record for an unknown one where a number of a usage is new to them: newer numbers stand beside it.
"""

from collections.abc import Mapping
from typing import Any, Final

_USAGE: Final = "token_usage"
_MORE: Final = "$usage_more"  # no field is called so
_TAG: Final = "$token_usage"
_FIRST_NAMES: Final = ("input_tokens", "output_tokens", "cached_tokens")


def part_usage(record: dict[str, Any]) -> dict[str, Any]:
    """Return a step's record with the newer numbers of its usage beside it."""
    usage = record.get(_USAGE)
    if not isinstance(usage, dict) or _TAG not in usage:
        return record
    numbers = usage[_TAG]
    newer = {name: number for name, number in numbers.items() if name not in _FIRST_NAMES}
    if not newer:
        return record
    first = {name: number for name, number in numbers.items() if name in _FIRST_NAMES}
    return {**record, _USAGE: {_TAG: first}, _MORE: newer}


def join_usage(record: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the record that `part_usage` was given."""
    usage, newer = record.get(_USAGE), record.get(_MORE)
    if not isinstance(usage, dict) or _TAG not in usage or not isinstance(newer, dict):
        return record
    rest = {name: value for name, value in record.items() if name != _MORE}
    return {**rest, _USAGE: {_TAG: {**usage[_TAG], **newer}}}
