"""Checking what programs hand in, where they hand it in: by what it can do, not by its class."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from botservice.errors import InvalidArgument


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


def check_can(argument: str, given: object, *methods: str, remedy: str) -> None:
    """Return if an argument is an object with these methods.

    Raises:
        InvalidArgument: it is not.
    """
    check(argument, given, is_right=can(given, *methods), remedy=remedy)


def can(given: object, *methods: str) -> bool:
    """Return whether something is an object with these methods. A class has them not itself: its objects do."""
    return not isinstance(given, type) and all(callable(getattr(given, name, None)) for name in methods)


def is_async(function: Any) -> bool:
    """Return whether what a call returns is to be awaited: of an async function, a partial or an object with one."""
    while isinstance(function, partial):
        function = function.func
    if isinstance(function, type):
        return False
    call: Callable[..., Any] | None = getattr(function, "__call__", None)  # noqa: B004 - of an object that is awaited
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(call)


def described(given: object) -> str:
    """Return what was given in a few words, without what it holds."""
    if given is None or isinstance(given, bool | int | float):
        return repr(given)
    if isinstance(given, type):
        return f"the class {given.__name__}"
    if inspect.isroutine(given):
        return f"the function {getattr(given, '__qualname__', given)}"
    return f"a {type(given).__name__}"
