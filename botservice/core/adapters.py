"""Base classes that others implement, and how an object that does not inherit from one is taken all the same."""

import difflib
import functools
import inspect
from typing import Any, Final, TypeVar

from botservice.core.arguments import check_can
from botservice.core.errors import InvalidArgument

P = TypeVar("P")
_ALIKE: Final = 0.8  # of 1: `tools_of` and `tools_for` are, `closed` and `stop` are not


def adopt(port: type[P], given: Any, argument: str | None = None, *, remedy: str | None = None) -> P:
    """Return given itself where it inherits from a port, else an object with its members and the port's defaults.

    Members of given are looked up whenever they are used, so that they may change.

    Args:
        argument: What it was handed in as, for errors.
        remedy: What to give instead.

    Raises:
        InvalidArgument: it lacks what the port cannot do without, or a member of it is misspelt.
    """
    if not isinstance(given, port):
        needed, name = sorted(getattr(port, "__abstractmethods__", ())), port.__name__
        check_can(argument or f"a {name}", given, *needed, remedy=remedy or f"inherit from {name}: {', '.join(needed)}")
    _check_spelling(port, type(given))  # type: ignore[arg-type] # mypy takes no class for hashable
    return given if isinstance(given, port) else _wrap(port, given)


def _wrap(port: type[P], given: Any) -> P:
    class Adopted(port):  # type: ignore[valid-type, misc]
        def __init__(self) -> None:
            """Leave all that there is to given."""

        def __getattribute__(self, name: str) -> Any:
            is_given = not name.startswith("__") and hasattr(given, name)
            return getattr(given, name) if is_given else super().__getattribute__(name)

        def __setattr__(self, name: str, value: Any) -> None:
            setattr(given, name, value)

        def __repr__(self) -> str:
            return repr(given)

    Adopted.__name__ = type(given).__name__
    Adopted.__abstractmethods__ = frozenset()
    return Adopted()


@functools.lru_cache(maxsize=256)  # a class may be made for each turn
def _check_spelling(port: type[Any], kind: type[Any]) -> None:
    """Refuse a class with a method or a flag that nobody calls, whose name is almost that of one of the port."""
    known = {name for name in dir(port) if not name.startswith("_")}
    own = {name: value for each in kind.__mro__ if each not in port.__mro__ for name, value in vars(each).items()}
    for name in sorted(own.keys() - known):
        left = [each for each in known - own.keys() if _is_like(own[name], inspect.getattr_static(port, each))]
        near = [] if name.startswith("_") else difflib.get_close_matches(name, left, 1, _ALIKE)
        if near:
            remedy = f"is it to be {near[0]}? Give a member of your own another name"
            raise InvalidArgument(f"{kind.__name__}.{name} is no member of {port.__name__}: {remedy}")


def _is_like(given: object, member: object) -> bool:
    return (inspect.isfunction(given) and inspect.isfunction(member)) or (
        isinstance(given, bool | property) and isinstance(member, bool | property)
    )
