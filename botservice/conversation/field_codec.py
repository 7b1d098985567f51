"""Field values as JSON and back, exactly.

JSON's own values stand for themselves. The others are a dict with one key that begins with "$" and names what it is:
`{"$datetime": "2025-01-31T12:00:00+00:00"}`. A dict of the user's with such a key is written as `{"$dict": [[key,
value], …]}`, so that nothing can be mistaken. The text is ASCII: NUL and lone surrogates travel as escapes.
"""

import json
import math
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from datetime import datetime
from operator import attrgetter
from typing import Any, Final

from botservice.conversation.field_values import FIELD_NAMES, VALUE_CLASSES, FrozenDict, FrozenList, freeze
from botservice.core.errors import InvalidField

# A high and a low surrogate, as two characters, would come back from JSON as one character.
SPLIT_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
# Python reads and writes ints in decimal up to a limit of digits, which can be set as low as 640.
_DECIMAL_BITS: Final = 2_000
_SMALL: Final = 1 << 62
_AS_JSON: Final = frozenset((bool, type(None)))
_JSON: Final = json.JSONEncoder(separators=(",", ":"), allow_nan=False)
_TAGS: Final = {cls: "$" + re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower() for cls in VALUE_CLASSES}
_GETTERS: Final = {cls: attrgetter(*FIELD_NAMES[cls]) for cls in VALUE_CLASSES}
_CLASSES: Final = {tag: cls for cls, tag in _TAGS.items()}


class UnknownValue(InvalidField):
    """A value was written by a newer version, in a form that this one does not know."""


def dumps(encoded: Any) -> str:
    """Return what `encode` gave as JSON text, in ASCII and without spaces."""
    return _JSON.encode(encoded)


def loads(text: str | bytes) -> Any:
    """Return JSON text parsed, for `decode`.

    Raises:
        InvalidField: text is not JSON.
    """
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidField(f"a memory's JSON cannot be read: {type(error).__name__}; it was cut or changed") from error


def encode(value: Any) -> Any:
    """Return a field's value as JSON values.

    Raises:
        InvalidField: value cannot be kept.
    """
    kind = type(value)
    if kind in _AS_JSON or (kind is str and value.isascii()):
        return value
    if (kind is int and abs(value) < _SMALL) or (kind is float and math.isfinite(value)):
        return value
    if kind is FrozenList:
        return [encode(element) for element in value]
    if kind is FrozenDict:
        return _encode_dict(value)
    if kind in _TAGS:
        given = zip(FIELD_NAMES[kind], _GETTERS[kind](value), strict=True)
        return {_TAGS[kind]: {name: encode(element) for name, element in given if element is not None}}
    encoder = _ENCODERS.get(kind)
    return encoder(value) if encoder else encode(freeze(value))


def decode(data: Any) -> Any:
    """Return what `encode` was given, frozen.

    Raises:
        UnknownValue: a newer version wrote it.
        InvalidField: it is damaged.
    """
    if isinstance(data, dict):
        return _decode_dict(data)
    if isinstance(data, list):
        return FrozenList.trust([decode(element) for element in data])
    return freeze(data)


def _encode_str(value: str) -> Any:
    if value.isascii() or not SPLIT_PAIR.search(value):
        return value
    return {"$text": _base64(value.encode("utf-8", "surrogatepass"))}


def _encode_int(value: int) -> Any:
    return value if value.bit_length() <= _DECIMAL_BITS else {"$int": hex(value)}


def _encode_float(value: float) -> Any:
    return value if math.isfinite(value) else {"$float": repr(value)}


def _encode_datetime(value: datetime) -> Any:
    value = freeze(value)
    return {"$datetime": value.isoformat(), "fold": 1} if value.fold else {"$datetime": value.isoformat()}


def _encode_dict(value: FrozenDict) -> Any:
    encoded = {}
    for key, element in value.items():
        if key[:1] == "$" or not (key.isascii() or not SPLIT_PAIR.search(key)):
            return {"$dict": [[_encode_str(key), encode(element)] for key, element in value.items()]}
        encoded[key] = encode(element)
    return encoded


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


_ENCODERS: Final[dict[type, Callable[[Any], Any]]] = {
    str: _encode_str,
    int: _encode_int,
    float: _encode_float,
    bytes: lambda value: {"$bytes": _base64(value)},
    datetime: _encode_datetime,
}


def _decode_dict(data: dict[str, Any]) -> Any:
    tag = next(iter(data), "")
    if tag[:1] != "$":
        return FrozenDict.trust({key: decode(element) for key, element in data.items()})
    decoder = _DECODERS.get(tag)
    if decoder is None:
        raise UnknownValue(f"a value of the form {tag!r} is of a newer version of botservice; update this one")
    try:
        return decoder(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InvalidField):
            raise
        raise InvalidField(f"a value of the form {tag!r} is damaged") from error


def _decode_datetime(data: Mapping[str, Any]) -> datetime:
    value: datetime = freeze(datetime.fromisoformat(data["$datetime"]))
    return value.replace(fold=1) if data.get("fold") else value


def _decode_float(data: Mapping[str, Any]) -> float:
    value: float = freeze(float(data["$float"]))
    return value


def _decode_pairs(data: Mapping[str, Any]) -> FrozenDict:
    return FrozenDict.trust({decode(key): decode(element) for key, element in data["$dict"]})


def _decode_dataclass(data: Mapping[str, Any]) -> Any:
    [(tag, content)] = data.items()
    cls = _CLASSES[tag]
    newer = set(content) - {*FIELD_NAMES[cls]}
    if newer:
        raise UnknownValue(f"a {cls.__name__} with {sorted(newer)} is of a newer version of botservice")
    return cls(**{name: decode(element) for name, element in content.items()})


_DECODERS: Final[dict[str, Callable[[Mapping[str, Any]], Any]]] = {
    "$text": lambda data: b64decode(data["$text"]).decode("utf-8", "surrogatepass"),
    "$int": lambda data: int(data["$int"], 16),
    "$float": _decode_float,
    "$bytes": lambda data: b64decode(data["$bytes"], validate=True),
    "$datetime": _decode_datetime,
    "$dict": _decode_pairs,
    **dict.fromkeys(_CLASSES, _decode_dataclass),
}
