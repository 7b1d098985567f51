"""The keys that identify a context, in their canonical form."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from types import MappingProxyType
from typing import Any, Final

from botservice.core.errors import InvalidContextKeys
from botservice.core.messages import storable

_MOST_KEY_BYTES: Final = 4_096
_MOST_KEY_LEVELS: Final = 8
_LARGEST_KEY: Final = 10**300  # Python writes no numbers of more than some thousand digits


@dataclass(frozen=True, slots=True)
class ContextKeys:
    """What identifies a context: a JSON object.

    Attributes:
        digest: Of its canonical JSON text, in which names are sorted: two objects with one text are one context.
        size_bytes: The length of that text.
    """

    values: Mapping[str, Any]
    digest: str
    size_bytes: int

    @classmethod
    def of(cls, keys: Mapping[str, Any]) -> "ContextKeys":
        """Bring keys into their canonical form.

        Raises:
            InvalidContextKeys: keys are no JSON object, or are nested deeper than 8 levels.
        """
        if not isinstance(keys, Mapping):
            raise InvalidContextKeys(f"context keys must be a mapping, such as {{'chat_id': 42}}, not {keys!r:.80}")
        # Of what was given, not of what is stored: two keys that are stored alike are two contexts all the same.
        text = json.dumps(_checked(keys, _MOST_KEY_LEVELS), sort_keys=True, separators=(",", ":"))
        # JSON writes NUL as an escape, so that it stays: what is read is the same key.
        values = json.loads(storable(json.dumps(json.loads(text), ensure_ascii=False)))
        return cls(MappingProxyType(values), hashlib.sha256(text.encode()).hexdigest(), len(text))

    def check_size(self) -> None:
        """Check that a new context may have these keys; one that was made by an older release may have longer ones.

        Raises:
            InvalidContextKeys: their JSON text exceeds 4 kB.
        """
        if self.size_bytes > _MOST_KEY_BYTES:
            raise InvalidContextKeys(
                f"context keys must not exceed {_MOST_KEY_BYTES} bytes of JSON, and these have {self.size_bytes}: "
                "keep what identifies the conversation, and put the rest into context.metadata"
            )


def _checked(value: Any, levels: int) -> Any:
    """Return a JSON value as plain dictionaries and lists.

    Raises:
        InvalidContextKeys: there is no JSON for it, or it is nested too deep.
    """
    is_number = isinstance(value, int) or (isinstance(value, float) and isfinite(value))
    if is_number and abs(value) > _LARGEST_KEY:
        raise InvalidContextKeys("numbers in context keys must not exceed 1e300: use a string")
    if value is None or is_number or isinstance(value, str):
        return value
    if not isinstance(value, (Mapping, list, tuple)):
        raise InvalidContextKeys(f"context keys must be JSON values, and {value!r:.80} is none; use str(…)")
    if levels == 0:
        raise InvalidContextKeys(f"context keys must not be nested deeper than {_MOST_KEY_LEVELS} levels")
    if not isinstance(value, Mapping):
        return [_checked(each, levels - 1) for each in value]
    for name in value:
        if not isinstance(name, str):
            raise InvalidContextKeys(f"names in context keys must be strings: use {str(name)!r:.80} for {name!r:.80}")
    return {name: _checked(each, levels - 1) for name, each in value.items()}
