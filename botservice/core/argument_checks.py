"""What programs hand in: arguments that are checked, and objects that are taken for what a base class says."""

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

from botservice.core.errors import InvalidArgument

T = TypeVar("T")
_LONGEST_SHOWN: Final = 40


def check(argument: str, given: object, *, is_right: bool, remedy: str) -> None:
    """Return if an argument is right.

    Args:
        argument: Its name, with its `=` or in words.
        remedy: What to give instead.

    Raises:
        InvalidArgument: it is not; names it, what was given, and what to give.
    """
    if not is_right:
        raise InvalidArgument(f"{argument} is {described(given)}: {remedy}")


def check_can(argument: str, given: object, *names: str, remedy: str) -> None:
    """Return if an argument is an object that has what is used of it. A class has that not itself: its objects do.

    Raises:
        InvalidArgument: it is not.
    """
    is_right = not isinstance(given, type) and all(hasattr(given, name) for name in names)
    check(argument, given, is_right=is_right, remedy=remedy)


def check_listed(argument: str, given: Iterable[T], *, remedy: str) -> tuple[T, ...]:
    """Return what a list, or another iterable, holds.

    Raises:
        InvalidArgument: it is one thing alone, or a mapping.
    """
    is_right = isinstance(given, Iterable) and not isinstance(given, str | bytes | Mapping | type)
    check(argument, given, is_right=is_right or given == {}, remedy=remedy)
    return tuple(given)


def check_seconds(argument: str, given: float) -> float:
    """Return a number of seconds.

    Raises:
        InvalidArgument: it is none above 0, or has no end.
    """
    is_right = isinstance(given, int | float) and 0 < given < float("inf")
    check(argument, given, is_right=is_right, remedy="give a number of seconds above 0")
    return given


def check_address(argument: str, given: str) -> str:
    """Return the address of a server.

    Raises:
        InvalidArgument: it names no scheme or no host.
    """
    try:
        parts = urlsplit(given) if isinstance(given, str) else None
    except ValueError:  # half an IPv6 address
        parts = None
    is_right = parts is not None and parts.scheme in ("http", "https") and bool(parts.hostname)
    check(argument, given, is_right=is_right, remedy="give a whole address, such as http://localhost:11434/v1")
    return given


def is_async(function: Any) -> bool:
    """Return whether what a call returns is to be awaited: of an async function, a partial or an object with one."""
    while isinstance(function, partial):
        function = function.func
    if isinstance(function, type):
        return False
    call: Callable[..., Any] | None = getattr(function, "__call__", None)  # noqa: B004 - of an object that is awaited
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def described(given: object) -> str:
    """Return what was given in a few words: a short text as it is, unless it may hold a password."""
    if given is None or isinstance(given, bool | int | float):
        return repr(given)
    if isinstance(given, str):
        is_shown = len(given) <= _LONGEST_SHOWN and "@" not in given and "://" not in given
        return repr(given) if is_shown else "a text"
    if isinstance(given, type):
        return f"the class {given.__name__}"
    if inspect.isroutine(given):
        return f"the function {getattr(given, '__qualname__', given)}"
    return f"a {type(given).__name__}"


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
