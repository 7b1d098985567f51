"""What a program changed in a context's metadata: found by key, to be stored next to what others change."""

import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from botservice.core.errors import InvalidField
from botservice.core.personas import PAUSE, TITLE

_NOT_OF_TURNS = frozenset({TITLE, PAUSE})


@dataclass(frozen=True, slots=True)
class MetadataChanges:
    """What of metadata is not stored yet; what its person calls the context, and its pause, are none of it.

    Attributes:
        texts: All of the metadata (see `as_texts`).
        values: The keys that are new or have another value.
        removed: The keys that are gone.
    """

    texts: Mapping[str, str]
    values: Mapping[str, Any]
    removed: frozenset[str]

    def applied_to(self, stored: Mapping[str, Any]) -> dict[str, Any]:
        """Return stored metadata with the changes."""
        return {**{key: value for key, value in stored.items() if key not in self.removed}, **self.values}


def find_changes(metadata: Mapping[str, Any], stored: Mapping[str, str]) -> MetadataChanges | None:
    """Return how metadata differs from what is stored, given as `as_texts` has it; None where it does not.

    Raises:
        InvalidField: there is no JSON for a value; names its key.
    """
    texts = as_texts(metadata)
    if texts == stored:
        return None
    changed = {key: text for key, text in texts.items() if stored.get(key) != text and key not in _NOT_OF_TURNS}
    values = {key: json.loads(text)[key] for key, text in changed.items()}
    return MetadataChanges(texts, values, frozenset(stored.keys() - texts.keys() - _NOT_OF_TURNS))


def as_texts(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Return each key of metadata with the JSON of an object of that key alone.

    Raises:
        InvalidField: there is none for a value; names its key.
    """
    texts = {}
    for key, value in metadata.items():
        try:
            text = json.dumps({key: value}, sort_keys=True)
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidField(
                f"there is no JSON for metadata[{key!r}]: {error}; keep texts, numbers, lists and dicts there"
            ) from error
        texts[next(iter(json.loads(text)))] = text  # a number as a key is a text in JSON
    return texts


def only_json(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return metadata without the values for which there is no JSON."""
    kept = {}
    for key, value in metadata.items():
        with contextlib.suppress(InvalidField):
            as_texts({key: value})
            kept[key] = value
    return kept


def with_key(metadata: Mapping[str, Any], key: str, value: Any) -> dict[str, Any]:
    """Return metadata with a key, or without it where value is None."""
    others = {name: each for name, each in metadata.items() if name != key}
    return others if value is None else {**others, key: value}
