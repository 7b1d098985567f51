"""Field values as JSON and back, exactly, and frozen on the way: what a field holds is what it will be after storage.

JSON's own values stand for themselves. The others are a dict with one key that begins with "$" and names what it is:
`{"$datetime": "2025-01-31T12:00:00+00:00"}`. A dict of the user's with such a key is written as `{"$dict": [[key,
value], …]}`, so that nothing can be mistaken. The text is ASCII: NUL and lone surrogates travel as escapes.
"""

import json
import math
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from datetime import datetime, timezone
from typing import Any, Final, NoReturn, Self

from botservice.conversation.field_values import CallbackFailure, StepError, Timing, ToolResult
from botservice.core.errors import InvalidField
from botservice.core.messages import Attachment, Author, TokenUsage, ToolCall

MAX_DEPTH: Final = 100
"""Levels of lists and dicts inside each other; deeper ones would meet the interpreter's recursion limit in storage."""

# A high and a low surrogate, as two characters, would come back from JSON as one character.
SPLIT_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_UNUSUAL_KEY: Final = re.compile(rf"\A\$|{SPLIT_PAIR.pattern}")
# Python reads and writes ints in decimal up to a limit of digits, which can be set as low as 640.
_DECIMAL_BITS: Final = 2_000
_LARGE: Final = 1 << 62
_CLASSES: Final[dict[str, type]] = {
    "$" + re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower(): cls
    for cls in (Attachment, Author, CallbackFailure, StepError, Timing, TokenUsage, ToolCall, ToolResult)
}
_TAGS: Final = {cls: tag for tag, cls in _CLASSES.items()}
FIELD_NAMES: Final = {cls: tuple(field.name for field in fields(cls)) for cls in _CLASSES.values()}
_REMEDIES: Final[tuple[tuple[str, str], ...]] = (
    ("set", "use a list"),
    ("frozenset", "use a list"),
    ("Decimal", "use str(value)"),
    ("UUID", "use str(value)"),
    ("date", "use a datetime or value.isoformat()"),
    ("time", "use value.isoformat()"),
    ("timedelta", "use value.total_seconds()"),
    ("bytearray", "use bytes(value)"),
    ("memoryview", "use bytes(value)"),
    ("PurePath", "use str(value)"),
    ("BaseException", "use StepError.of(error)"),
    ("complex", "use a list of two numbers"),
    ("ndarray", "use value.tolist()"),
    ("Image", "assign it to a field of images, or use an Attachment"),
)


class UnknownValue(InvalidField):
    """A value was written by a newer version, in a form that this one does not know."""


class FrozenDict(dict[str, Any]):
    """A dict that cannot change in place; it equals a dict with the same content.

    `copy()` and `{**value}` give a plain dict to change and to assign.
    """

    __slots__ = ()

    def __init__(self, values: Mapping[str, Any] | Iterable[tuple[str, Any]] = (), /, **named: Any) -> None:
        super().__init__(freeze(dict(values, **named)))

    @classmethod
    def trust(cls, values: Mapping[str, Any]) -> Self:
        """Return values as they are: the caller knows that they are frozen."""
        new = cls.__new__(cls)
        dict.update(new, values)
        return new

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise TypeError(
            "a field's value does not change in place: assign the whole field, as in step.x = {**step.x, …}"
        )

    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenDict, (dict(self),)


class FrozenList(tuple[Any, ...]):
    """A tuple that also equals a list with the same content: what a list in a field reads back as."""

    __slots__ = ()

    def __new__(cls, values: Iterable[Any] = ()) -> Self:
        """Return values frozen."""
        return cls.trust(freeze(list(values)))

    @classmethod
    def trust(cls, values: Iterable[Any]) -> Self:
        """Return values as they are: the caller knows that they are frozen."""
        return tuple.__new__(cls, values)

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, tuple(other) if isinstance(other, list) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return FrozenList, (tuple(self),)


def freeze(value: Any, field: str = "value", depth: int = 0) -> Any:
    """Return value as a field keeps it: exactly what it will be after storage.

    Lists and tuples become a `FrozenList` (a tuple), mappings a `FrozenDict`. Members of an enum and other
    subclasses of str, int, float and bytes become their plain value. An aware datetime keeps its moment and its
    offset from UTC, not the name of its zone; a naive one stays naive.

    Args:
        field: Its name, for errors.
        depth: In how many lists, dicts and records it stands.

    Raises:
        InvalidField: value, or something inside it, cannot be kept.
    """
    kind = type(value)
    if kind in _UNCHANGED or (not depth and isinstance(value, FrozenDict | FrozenList)):
        return value
    freezer = _FREEZERS.get(kind)
    if freezer is not None:
        return freezer(value, field, depth)
    if depth >= MAX_DEPTH:
        raise InvalidField(f"field {field!r}: nested deeper than {MAX_DEPTH} levels, or holds itself; flatten it")
    if isinstance(value, list | tuple):
        return FrozenList.trust(
            [each if type(each) in _UNCHANGED else freeze(each, field, depth + 1) for each in value]
        )
    if isinstance(value, Mapping):
        return _freeze_dict(value, field, depth + 1)
    return freeze(_plain(value, field), field, depth)


def _freeze_float(value: float, _field: str = "", _depth: int = 0) -> float:
    # One object for all NaN: containers compare by identity first, so that equal memories are equal.
    return math.nan if math.isnan(value) else value


def _freeze_datetime(value: datetime, field: str, _depth: int) -> datetime:
    if value.tzinfo is None:
        return value
    offset = value.utcoffset()
    if offset is None:
        raise InvalidField(f"field {field!r}: a datetime whose tzinfo knows no offset cannot be kept; use UTC")
    return value.replace(tzinfo=timezone(offset), fold=0)


def _freeze_dict(value: Mapping[Any, Any], field: str, depth: int) -> FrozenDict:
    frozen = {}
    for key, each in value.items():
        if not isinstance(key, str):
            raise InvalidField(
                f"field {field!r}: a dict's keys must be strings, not {type(key).__name__}; use str(key)"
            )
        frozen[str.__str__(key)] = each if type(each) in _UNCHANGED else freeze(each, field, depth)
    return FrozenDict.trust(frozen)


def _freeze_dataclass(value: Any, field: str, depth: int) -> Any:
    given = {name: getattr(value, name) for name in FIELD_NAMES[type(value)]}
    return type(value)(**{name: freeze(each, field, depth + 1) for name, each in given.items() if each is not None})


def _plain(value: Any, field: str) -> Any:
    """Return the plain value of an instance of a class below one that can be kept."""
    for kin, convert in _KIN:
        if isinstance(value, kin):
            return convert(value)
    names = {cls.__name__ for cls in type(value).__mro__}
    remedy = next((remedy for name, remedy in _REMEDIES if name in names), "use plain values")
    raise InvalidField(
        f"field {field!r}: a {type(value).__name__} cannot be kept; {remedy}. A field takes JSON values, datetime, "
        f"bytes, {', '.join(cls.__name__ for cls in FIELD_NAMES)}, and lists and dicts of them"
    )


def write_bytes(data: bytes) -> dict[str, str]:
    """Return bytes as a value of JSON."""
    return {"$bytes": b64encode(data).decode("ascii")}


def dumps(encoded: Any, write: Callable[[bytes], dict[str, str]] = write_bytes) -> str:
    """Return what `encode` gave as JSON text, in ASCII and without spaces.

    Args:
        write: Returns what is written of bytes.
    """
    return json.dumps(encoded, separators=(",", ":"), allow_nan=False, default=write)


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
    """Return what `freeze` gave as JSON values and bytes, for `dumps`."""
    kind = type(value)
    if kind in _AS_JSON or (kind is str and value.isascii()) or (kind in _NUMBERS and -_LARGE < value < _LARGE):
        return value
    if isinstance(value, FrozenList):
        return [encode(each) for each in value]
    if isinstance(value, FrozenDict):
        encoded = {key: encode(each) for key, each in value.items()}
        if not any(map(_UNUSUAL_KEY.search, value)):
            return encoded
        return {"$dict": [[_encode_str(key), each] for key, each in encoded.items()]}
    if kind in FIELD_NAMES:
        given = {name: getattr(value, name) for name in FIELD_NAMES[kind]}
        return {_TAGS[kind]: {name: encode(each) for name, each in given.items() if each is not None}}
    return _ENCODERS[kind](value)


def decode(data: Any) -> Any:
    """Return what `encode` was given, frozen.

    Raises:
        UnknownValue: a newer version wrote it.
        InvalidField: it is damaged.
    """
    if type(data) in _AS_IS:
        return data
    if type(data) is list:
        return FrozenList.trust([each if type(each) in _AS_IS else decode(each) for each in data])
    if not isinstance(data, dict):
        return freeze(data)
    tag = next(iter(data), "")
    if tag[:1] != "$":
        return FrozenDict.trust({key: each if type(each) in _AS_IS else decode(each) for key, each in data.items()})
    decoder = _DECODERS.get(tag)
    if decoder is None:
        raise UnknownValue(f"a value of the form {tag!r} is of a newer version of botservice; update this one")
    try:
        return decoder(data)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InvalidField):
            raise
        raise InvalidField(f"a value of the form {tag!r} is damaged") from error


def _encode_str(value: str) -> Any:
    if value.isascii() or not SPLIT_PAIR.search(value):
        return value
    return {"$text": b64encode(value.encode("utf-8", "surrogatepass")).decode("ascii")}


def _encode_int(value: int) -> Any:
    return value if value.bit_length() <= _DECIMAL_BITS else {"$int": hex(value)}


def _encode_float(value: float) -> Any:
    return value if math.isfinite(value) else {"$float": repr(value)}


def _encode_datetime(value: datetime) -> Any:
    encoded = {"$datetime": value.isoformat()}
    return {**encoded, "fold": 1} if value.fold else encoded


def _decode_datetime(data: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(data["$datetime"]).replace(fold=1 if data.get("fold") else 0)


def _decode_pairs(data: Mapping[str, Any]) -> FrozenDict:
    return FrozenDict.trust({decode(key): decode(element) for key, element in data["$dict"]})


def _decode_dataclass(data: Mapping[str, Any]) -> Any:
    [(tag, content)] = data.items()
    cls = _CLASSES[tag]
    newer = set(content) - {*FIELD_NAMES[cls]}
    if newer:
        raise UnknownValue(f"a {cls.__name__} with {sorted(newer)} is of a newer version of botservice")
    return cls(**{name: decode(element) for name, element in content.items()})


# Called on a subclass, these give the plain value; str(member) would give an enum's name.
_KIN: Final[tuple[tuple[type, Callable[[Any], Any]], ...]] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (bytes, bytes.__bytes__),
    (datetime, lambda value: datetime.combine(value.date(), value.timetz())),
)
_AS_JSON: Final[frozenset[type]] = frozenset((bool, type(None), bytes))
_UNCHANGED: Final[frozenset[type]] = frozenset((str, int, bool, type(None), bytes))
_AS_IS: Final[frozenset[type]] = _UNCHANGED | {float}
_NUMBERS: Final[frozenset[type]] = frozenset((int, float))
_FREEZERS: Final[dict[type, Callable[[Any, str, int], Any]]] = {
    float: _freeze_float,
    datetime: _freeze_datetime,
    **dict.fromkeys(FIELD_NAMES, _freeze_dataclass),
}
_ENCODERS: Final[dict[type, Callable[[Any], Any]]] = {
    str: _encode_str,
    int: _encode_int,
    float: _encode_float,
    datetime: _encode_datetime,
}
_DECODERS: Final[dict[str, Callable[[Mapping[str, Any]], Any]]] = {
    "$text": lambda data: b64decode(data["$text"]).decode("utf-8", "surrogatepass"),
    "$int": lambda data: int(data["$int"], 16),
    "$float": lambda data: _freeze_float(float(data["$float"])),
    "$bytes": lambda data: b64decode(data["$bytes"], validate=True),
    "$datetime": _decode_datetime,
    "$dict": _decode_pairs,
    **dict.fromkeys(_CLASSES, _decode_dataclass),
}
