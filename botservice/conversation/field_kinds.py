"""Which class a stored record becomes.

A record names its kind and the version of that kind. The kinds of this package have short names ("action"); a class
of the user's is called "module:ClassName" unless it says otherwise. It is found again after its module was renamed,
or was run as a script, as long as only one class has its name.
"""

from collections.abc import Mapping
from typing import Any, Final

from botservice.core.errors import InvalidField

_classes: Final[dict[str, tuple[type[Any], int]]] = {}


def register(cls: type[Any], kind: str | None, version: int) -> str:
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


def find(kind: str, version: int) -> type[Any] | None:
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
