"""Flexible records: an item has whatever fields it is given.

A record names its kind and the version of that kind. The kinds of this package have short names ("action"); a class
of the user's is called "module:ClassName" unless it says otherwise. It is found again after its module was renamed,
or was run as a script, as long as only one class has its name.
"""

import sys
import typing
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, ClassVar, Final, Self

from botservice.conversation.field_codec import SPLIT_PAIR, UnknownValue, decode, dumps, encode, freeze, loads
from botservice.conversation.images import as_images
from botservice.core.errors import InvalidField

_NO_DEFAULT: Final = object()
_MARKS: Final = ("kind", "version")
_NOT_FIRST: Final = ("_", "$")
_MODEL_INPUT: Final = "model_input_messages"


_classes: Final[dict[str, tuple[type[Any], int]]] = {}


def register_kind(cls: type[Any], kind: str | None, version: int) -> str:
    """Return the kind under which records of cls are written; a class defined again replaces the older one.

    Raises:
        InvalidField: kind belongs to another class.
    """
    name = kind or f"{cls.__module__}:{cls.__qualname__}"
    holder = _classes[name][0] if name in _classes else cls
    if (holder.__module__, holder.__qualname__) != (cls.__module__, cls.__qualname__):
        raise InvalidField(f"the kind {name!r} is the one of {holder.__module__}.{holder.__qualname__}; choose another")
    _classes[name] = cls, version
    return name


def find_kind(kind: str, version: int) -> type[Any] | None:
    """Return the class that reads such records; None if there is none, it is older, or two come into question."""
    cls, known_version = _classes.get(kind) or _namesake(kind)
    return cls if version <= known_version else None


def is_marked(record: Mapping[str, Any]) -> bool:
    """Return whether a record names its kind; one of a plain item does not."""
    return isinstance(record.get("kind"), str) and type(record.get("version")) is int


def _namesake(kind: str) -> tuple[type[Any] | None, int]:
    _, colon, name = kind.rpartition(":")
    found = [entry for other, entry in _classes.items() if colon and other.endswith(f":{name}")]
    return found[0] if len(found) == 1 else (None, 0)


class MemoryItem:
    """A record with flexible fields: `item.x = 1` sets one, `del item.x` removes it.

    A field's name is any text that does not begin with "_" or "$". Use `set_value` for names that Python cannot spell.

    Fields belong to the instance. Assigning a value freezes it (see `freeze`), so that every change is an assignment.
    Two items are equal if their classes and fields are equal. Items are mutable and not hashable.

    A subclass may declare fields by annotating them. The first may be given by position, and is required unless it
    has a default. The others read as their default, or None, until they are set; a declared field that has its
    default again counts as unset. `class Check(MemoryStep, kind="check", version=2)` names the kind and version under
    which its records are stored; records of a newer version are kept whole as an `UnknownStep`.

    Raises:
        InvalidField: a name is not allowed, or a value cannot be stored.
    """

    __slots__ = ("__weakref__", "_fields", "_revision")

    _declared: ClassVar[dict[str, Any]] = {}
    _first: ClassVar[str | None] = None
    _required: ClassVar[str | None] = None
    _aliases: ClassVar[dict[str, str]] = {}
    _reserved: ClassVar[frozenset[str]] = frozenset()
    _known: ClassVar[frozenset[str]] = frozenset()  # names of fields that need no look any more
    _images: ClassVar[str | None] = None  # the field that takes pictures in other forms, too
    _kind: ClassVar[str] = "item"
    _version: ClassVar[int] = 1

    _fields: dict[str, Any]
    _revision: int

    def __init_subclass__(cls, *, kind: str | None = None, version: int = 1, **others: Any) -> None:
        super().__init_subclass__(**others)
        own = _take_declared(cls)
        inherited = {name: default for base in reversed(cls.__mro__) for name, default in _declared_by(base).items()}
        cls._declared = inherited | {name: None if default is _NO_DEFAULT else default for name, default in own.items()}
        cls._first = next(iter(cls._declared), None)
        if own.get(cls._first or "") is _NO_DEFAULT:
            cls._required = cls._first
        cls._reserved = _public_names(cls)
        cls._known = frozenset(cls._declared) - cls._reserved
        cls._version = version
        cls._kind = register_kind(cls, kind, version)

    def __init__(self, /, *first: Any, **fields: Any) -> None:
        object.__setattr__(self, "_fields", {})
        object.__setattr__(self, "_revision", 0)
        if first:
            if self._first is None or len(first) > 1 or self._first in fields:
                raise InvalidField(f"{type(self).__name__}: too many values by position; give fields by name")
            fields = {self._first: first[0], **fields}
        self.set_values_from_dict(fields)
        self._check_complete()

    @property
    def attributes(self) -> list[str]:
        """The names of the fields that are set, in the order of setting."""
        return list(self._fields)

    def get_value(self, key: str) -> Any:
        """Get the value of a field, or None."""
        key = self._aliases.get(key, key)
        return self._fields[key] if key in self._fields else self._declared.get(key)

    def get_values(self, keys: Iterable[str]) -> dict[str, Any]:
        """Get the values of fields by their keys, with None for those that are not set."""
        return {key: self.get_value(key) for key in _names(keys)}

    def filter(self, keys: Iterable[str] = ()) -> dict[str, Any]:
        """Get the values of those keys that are set; nothing without keys."""
        return {key: self.get_value(key) for key in _names(keys) if self._aliases.get(key, key) in self._fields}

    def set_value(self, key: str, value: Any) -> None:
        """Set one field; the same as `item.key = value`."""
        self.set_values_from_dict({key: value})

    def set_values_from_dict(self, values: Mapping[str, Any]) -> None:
        """Set several fields: all of them, or none if one is invalid."""
        frozen = {}
        for key, value in values.items():
            name = self._aliases.get(key, key)
            if name not in self._known:
                self._check_name(name)
            frozen[name] = freeze(as_images(value, name) if name == self._images and value is not None else value, name)
        self._keep(frozen)
        object.__setattr__(self, "_revision", self._revision + len(frozen))

    def to_dict(self, *, full: bool = True) -> dict[str, Any]:
        """Convert this item into JSON values; `from_dict` is the inverse.

        A plain item's record is its fields. A step's begins with `kind` and `version`; free fields of these names are
        written as `$kind` and `$version` then.

        Args:
            full: Whether to include the model's input.
        """
        record: dict[str, Any] = loads(dumps(self._encoded(full=full)))
        return record

    def _encoded(self, *, full: bool = True) -> dict[str, Any]:
        fields = {key: encode(value) for key, value in self._fields.items() if full or key != _MODEL_INPUT}
        if type(self) is MemoryItem and not is_marked(fields):
            return fields
        escaped = {f"${key}" if key in _MARKS else key: value for key, value in fields.items()}
        return {"kind": self._kind, "version": self._version, **escaped}

    def to_chat_messages(self, *, summary_mode: bool = False) -> list[dict[str, Any]]:
        """Build the chat-completions messages in which a model sees this step.

        Every tool call has exactly one result, right after the call. An item that is no step gives none.

        Args:
            summary_mode: Leave out system prompts, plans and what the model said alongside its calls.
        """
        from botservice.conversation.chat_messages import step_messages

        return step_messages(self, summary_mode=summary_mode)

    def to_json(self) -> str:
        """Serialise this item as JSON text, in ASCII."""
        return dumps(self._encoded())

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Restore an item from a record, as the class of its kind.

        Raises:
            InvalidField: record is damaged, or not of this class.
        """
        if not isinstance(record, Mapping) or not all(isinstance(key, str) for key in record):
            raise InvalidField(f"a memory item is read from a dict with names as keys, not a {type(record).__name__}")
        try:
            item = _read_marked(record) if is_marked(record) else cls(**{key: decode(record[key]) for key in record})
        except RecursionError as error:
            raise InvalidField("a memory item's record is nested too deeply; it was not written by to_dict") from error
        if not isinstance(item, cls):
            raise InvalidField(f"a record of kind {record['kind']!r} is not a {cls.__name__}; use MemoryItem.from_dict")
        return item

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Restore an item from `to_json`; see `from_dict`."""
        return cls.from_dict(loads(text))

    @classmethod
    def _of_record(cls, record: Mapping[str, Any]) -> Self:
        return cls._restore({k.removeprefix("$"): decode(value) for k, value in record.items() if k not in _MARKS})

    @classmethod
    def _restore(cls, fields: Mapping[str, Any]) -> Self:
        # Without a look at the names: what was stored is read, also where a method was called like it since.
        new = cls.__new__(cls)
        object.__setattr__(new, "_fields", {})
        object.__setattr__(new, "_revision", 0)
        new._keep(fields)  # noqa: SLF001 - of its own class
        new._check_complete()  # noqa: SLF001 - of its own class
        return new

    @classmethod
    def _unpickle(cls, fields: Mapping[str, Any]) -> Self:
        return cls._restore({name: freeze(value, name) for name, value in fields.items()})

    def _keep(self, frozen: Mapping[str, Any]) -> None:
        for name, value in frozen.items():
            default = self._declared.get(name, _NO_DEFAULT)
            if type(value) is type(default) and value == default and name != self._required:
                self._fields.pop(name, None)
            else:
                self._fields[name] = value

    def _check_complete(self) -> None:
        if self._required is not None and self._required not in self._fields:
            raise InvalidField(f"{type(self).__name__} needs its field {self._required!r}")

    def _check_name(self, name: str) -> None:
        if not isinstance(name, str) or name[:1] in _NOT_FIRST:
            raise InvalidField(f"{name!r} cannot be a field: a name is a text that does not begin with _ or $")
        if not name.isascii() and SPLIT_PAIR.search(name):
            raise InvalidField(f"{name!r} cannot be a field: it holds the halves of a character, which storage joins")
        if name in self._reserved:
            raise InvalidField(f"{name!r} cannot be a field of {type(self).__name__}, which has a member of that name")

    def __getattr__(self, name: str) -> Any:
        # Reached when the class has no such attribute. Private names first: copying asks before there are fields.
        if name[:1] != "_":
            key = self._aliases.get(name, name)
            if key in self._fields:
                return self._fields[key]
            if key in self._declared:
                return self._declared[key]
        raise AttributeError(f"{type(self).__name__} has no field {name!r}", name=name, obj=self)

    def __setattr__(self, name: str, value: Any) -> None:
        self.set_values_from_dict({name: value})

    def __delattr__(self, name: str) -> None:
        key = self._aliases.get(name, name)
        if key not in self._fields:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}", name=name, obj=self)
        if key == self._required:
            raise InvalidField(f"{key!r} is required in {type(self).__name__}; assign another value instead")
        del self._fields[key]
        object.__setattr__(self, "_revision", self._revision + 1)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._declared, *self._fields]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, MemoryItem) or type(other) is not type(self):
            return NotImplemented
        return self is other or self._fields == other._fields

    __hash__ = None  # type: ignore[assignment]  # as for every class whose equal instances may change

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._unpickle, (self._fields,)  # noqa: SLF001 - of its own class

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={_short(value)}' for key, value in self._fields.items())})"


def _read_marked(record: Mapping[str, Any]) -> MemoryItem:
    """Return the item of a record that names its kind; a record of newer or other code is kept whole."""
    unknown = find_kind("unknown", 1)
    for cls in (find_kind(record["kind"], record["version"]), unknown):
        with suppress(UnknownValue):
            if cls is not None:
                item: MemoryItem = cls._of_record(record)
                return item
    raise InvalidField(f"the kind {record['kind']!r} is unknown; import botservice.conversation")


def declared_fields(item: MemoryItem) -> Mapping[str, Any]:
    """Return the fields that the item's class declares, with their defaults."""
    return item._declared  # noqa: SLF001 - of its own module


def _take_declared(cls: type) -> dict[str, Any]:
    """Return the fields that cls itself annotates, with default or _NO_DEFAULT.

    Defaults leave the class, because a class attribute would hide the fields of its instances.
    """
    taken = {}
    for name, annotation in _annotations(cls).items():
        if name[0] == "_" or _is_class_variable(annotation):
            continue
        taken[name] = _NO_DEFAULT
        if name in vars(cls):
            taken[name] = freeze(vars(cls)[name], name)
            delattr(cls, name)
    return taken


def _annotations(cls: type) -> Mapping[str, Any]:
    if sys.version_info >= (3, 14):
        import annotationlib

        return annotationlib.get_annotations(cls, format=annotationlib.Format.FORWARDREF)
    found: Mapping[str, Any] = vars(cls).get("__annotations__", {})
    return found


def _is_class_variable(annotation: object) -> bool:
    if isinstance(annotation, str):
        return annotation.removeprefix("typing.").startswith("ClassVar")
    return annotation is typing.ClassVar or typing.get_origin(annotation) is typing.ClassVar


def _declared_by(cls: type) -> Mapping[str, Any]:
    found: Mapping[str, Any] = vars(cls).get("_declared", {})
    return found


def _public_names(cls: type) -> frozenset[str]:
    return frozenset(name for name in dir(cls) if name[0] != "_")


def _names(keys: Iterable[str]) -> Iterable[str]:
    if isinstance(keys, str):
        raise InvalidField(f"give a list of names, such as [{keys!r}], not one string")
    return keys


def _short(value: Any) -> str:
    try:
        text = repr(value)
    except ValueError:  # an int beyond the interpreter's limit of digits
        return "..."
    return text if len(text) <= 60 else f"{text[:57]}..."


MemoryItem._reserved = _public_names(MemoryItem)  # noqa: SLF001 - __init_subclass__ does it for the others
register_kind(MemoryItem, "item", 1)


def record_of(item: MemoryItem, *, full: bool = True) -> dict[str, Any]:
    """Return the record of an item like `to_dict`, in which bytes are bytes: for `dumps`."""
    return item._encoded(full=full)  # noqa: SLF001 - of its own module


def revision_of(item: MemoryItem) -> int:
    """Return a number that grows with every change of the item's fields."""
    return item._revision  # noqa: SLF001 - a name without _ would be taken from the users' fields


def checked_item(item: object) -> MemoryItem:
    """Return item.

    Raises:
        InvalidField: it is not a MemoryItem.
    """
    if not isinstance(item, MemoryItem):
        raise InvalidField(
            f"a memory holds MemoryItems and steps, not a {type(item).__name__}; use MemoryItem(**fields)"
        )
    return item
