"""What a program changed in a context's metadata: found by key, to be stored next to what others change."""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botservice.core.errors import InvalidField
from botservice.core.personas import PAUSE, TITLE

NO_METADATA = "{}"
_NOT_OF_TURNS = frozenset({TITLE, PAUSE})


@dataclass(frozen=True, slots=True)
class MetadataChanges:
    """What of metadata is not stored yet; what its person calls the context, and its pause, are none of it.

    Attributes:
        text: All of the metadata as JSON, with the keys in order.
        values: The keys that are new or have another value.
        removed: The keys that are gone.
    """

    text: str
    values: Mapping[str, Any]
    removed: frozenset[str]

    def applied_to(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        """Return stored metadata with the changes."""
        return {**{key: value for key, value in stored.items() if key not in self.removed}, **self.values}


def find_changes(metadata: Mapping[str, Any], stored: str) -> MetadataChanges | None:
    """Return how metadata differs from what is stored, given as JSON; None where it does not.

    Raises:
        InvalidField: there is no JSON for a value; names its key.
    """
    text = as_json(metadata)
    if text == stored:
        return None
    now, before = json.loads(text), json.loads(stored)
    values = {key: value for key, value in now.items() if key not in before or as_json(before[key]) != as_json(value)}
    values = {key: value for key, value in values.items() if key not in _NOT_OF_TURNS}
    return MetadataChanges(text, values, frozenset(before) - frozenset(now) - _NOT_OF_TURNS)


def as_json(value: Any) -> str:
    """Return metadata, or a value of it, as JSON with its keys in order.

    Raises:
        InvalidField: there is none for a value of metadata; names its key.
    """
    try:
        return json.dumps(value, sort_keys=True) if value != {} else NO_METADATA
    except (TypeError, ValueError, RecursionError):
        for key, each in value.items():
            _check_json(key, each)
        raise


def only_json(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata without the values for which there is no JSON."""
    kept = {}
    for key, value in metadata.items():
        with contextlib.suppress(InvalidField):
            _check_json(key, value)
            kept[key] = value
    return kept


def _check_json(key: object, value: object) -> None:
    try:
        json.dumps({key: value}, sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidField(
            f"there is no JSON for metadata[{key!r}]: {error}; keep texts, numbers, lists and dicts there"
        ) from error


def with_key(metadata: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Return metadata with a key, or without it where value is None."""
    others = {name: each for name, each in metadata.items() if name != key}
    return others if value is None else {**others, key: value}
