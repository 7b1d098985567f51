"""The values that fields hold: what a step carries besides JSON, and everything frozen as soon as it is assigned."""

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Final, NoReturn, Self

from botservice.core.errors import InvalidField
from botservice.core.messages import Attachment, Author, TokenUsage, ToolCall


@dataclass(frozen=True, slots=True)
class Timing:
    """Start and end of something.

    Attributes:
        end_time: None while it lasts, and if the process died meanwhile.
    """

    start_time: datetime
    end_time: datetime | None = None

    def __post_init__(self) -> None:
        start, end = self.start_time, self.start_time if self.end_time is None else self.end_time
        are_moments = isinstance(start, datetime) and isinstance(end, datetime)
        if not are_moments or (start.tzinfo is None) is not (end.tzinfo is None):
            raise InvalidField("a Timing takes datetimes, both with a time zone or both without")

    @property
    def duration_seconds(self) -> float | None:
        """The duration in seconds; None while it lasts."""
        return None if self.end_time is None else (self.end_time - self.start_time).total_seconds()


@dataclass(frozen=True, slots=True)
class StepError:
    """An error as data.

    Attributes:
        type: The name of the exception's class.
    """

    type: str
    message: str

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """Describe an exception, even if its own `__str__` fails."""
        return cls(type=type(error).__name__, message=_message(error))


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of one tool call.

    Attributes:
        call_id: The `id` of its `ToolCall`.
        text: The text for the model.
    """

    call_id: str
    text: str
    is_error: bool = False
    duration_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class CallbackFailure:
    """A step callback that raised.

    Attributes:
        callback: The callback's name.
        type: The name of the exception's class.
    """

    callback: str
    type: str
    message: str

    @classmethod
    def of(cls, callback: str, error: BaseException) -> Self:
        """Return the record of a callback's exception."""
        return cls(callback=callback, type=type(error).__name__, message=_message(error))


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - foreign code; an error that cannot speak is still an error
        return "(the error has no readable message)"


MAX_DEPTH: Final = 100
"""Levels of lists and dicts inside each other; deeper ones would meet the interpreter's recursion limit in storage."""

VALUE_CLASSES: Final[tuple[type, ...]] = (
    Attachment,
    Author,
    CallbackFailure,
    StepError,
    Timing,
    TokenUsage,
    ToolCall,
    ToolResult,
)
FIELD_NAMES: Final = {cls: tuple(field.name for field in fields(cls)) for cls in VALUE_CLASSES}

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
        return cls.trust(freeze(value, "value", 1) for value in values)

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
        InvalidField: value, or something inside it, is not JSON, a datetime, bytes or one of VALUE_CLASSES.
    """
    kind = type(value)
    if kind in _AS_IS:
        return value
    freezer = _FREEZERS.get(kind)
    return freezer(value, field, depth) if freezer else _freeze_kin(value, field, depth)


def _freeze_frozen(value: FrozenDict | FrozenList, field: str, depth: int) -> Any:
    # At the top of a field it was measured before; inside another container it adds its own levels.
    if depth:
        _check_depths(value, field, depth)
    return value


def _check_depths(value: FrozenDict | FrozenList, field: str, depth: int) -> None:
    if depth >= MAX_DEPTH:
        raise _too_deep(field)
    for element in value.values() if isinstance(value, FrozenDict) else value:
        if isinstance(element, FrozenDict | FrozenList):
            _check_depths(element, field, depth + 1)


def _freeze_float(value: float, _field: str, _depth: int) -> float:
    # One object for all NaN: containers compare by identity first, so that equal memories are equal.
    return math.nan if math.isnan(value) else value


def _freeze_datetime(value: datetime, field: str, _depth: int) -> datetime:
    if value.tzinfo is UTC and type(value) is datetime:
        return value
    zone: timezone | None = None
    if value.tzinfo is not None:
        offset = value.utcoffset()
        if offset is None:
            raise InvalidField(f"field {field!r}: a datetime whose tzinfo knows no offset cannot be kept; use UTC")
        zone = timezone(offset) if offset != timedelta(0) else UTC
    parts = (value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)
    return datetime(*parts, tzinfo=zone, fold=0 if zone else value.fold)


def _freeze_list(value: Iterable[Any], field: str, depth: int) -> FrozenList:
    if depth >= MAX_DEPTH:
        raise _too_deep(field)
    inside = depth + 1
    return FrozenList.trust(
        [
            each
            if type(each) in _AS_IS or (type(each) is float and not math.isnan(each))
            else freeze(each, field, inside)
            for each in value
        ]
    )


def _freeze_dict(value: Mapping[str, Any], field: str, depth: int) -> FrozenDict:
    if depth >= MAX_DEPTH:
        raise _too_deep(field)
    return FrozenDict.trust(
        {
            key if type(key) is str else _freeze_key(key, field): each
            if type(each) in _AS_IS
            else freeze(each, field, depth + 1)
            for key, each in value.items()
        }
    )


def _freeze_key(key: object, field: str) -> str:
    if not isinstance(key, str):
        raise InvalidField(f"field {field!r}: a dict's keys must be strings, not {type(key).__name__}; use str(key)")
    return str.__str__(key)


def _too_deep(field: str) -> InvalidField:
    return InvalidField(f"field {field!r}: nested deeper than {MAX_DEPTH} levels, or holds itself; flatten it")


def _freeze_dataclass(value: Any, field: str, depth: int) -> Any:
    changed = {}
    for name in FIELD_NAMES[type(value)]:
        old = getattr(value, name)
        if type(old) not in _AS_IS and (new := freeze(old, field, depth + 1)) is not old:
            changed[name] = new
    return replace(value, **changed) if changed else value


def _freeze_kin(value: Any, field: str, depth: int) -> Any:
    """Return value frozen where its class descends from one that can be kept."""
    for kin, plain in _PLAIN:
        if isinstance(value, kin):
            return freeze(plain(value), field, depth)
    if isinstance(value, datetime):
        return _freeze_datetime(value, field, depth)
    if isinstance(value, list | tuple):
        return _freeze_list(value, field, depth)
    if isinstance(value, Mapping):
        return _freeze_dict(value, field, depth)
    names = {cls.__name__ for cls in type(value).__mro__}
    remedy = next((remedy for name, remedy in _REMEDIES if name in names), "use plain values")
    raise InvalidField(
        f"field {field!r}: a {type(value).__name__} cannot be kept; {remedy}. A field takes JSON values, datetime, "
        f"bytes, {', '.join(cls.__name__ for cls in VALUE_CLASSES)}, and lists and dicts of them"
    )


# Called on a subclass, these give the plain value; str(member) would give an enum's name.
_PLAIN: Final[tuple[tuple[type, Callable[[Any], Any]], ...]] = (
    (str, str.__str__),
    (int, int.__int__),
    (float, float.__float__),
    (bytes, bytes.__bytes__),
)

_AS_IS: Final[frozenset[type]] = frozenset((str, int, bool, type(None), bytes))
_FREEZERS: Final[dict[type, Callable[[Any, str, int], Any]]] = {
    FrozenDict: _freeze_frozen,
    FrozenList: _freeze_frozen,
    float: _freeze_float,
    datetime: _freeze_datetime,
    list: _freeze_list,
    tuple: _freeze_list,
    dict: _freeze_dict,
    **dict.fromkeys(VALUE_CLASSES, _freeze_dataclass),
}
