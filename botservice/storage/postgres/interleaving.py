"""Functions that take turns on one connection: where one would wait for the database, the next goes on.

What they ask the database for travels together, so that all of them wait once instead of each for itself.
"""

import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar, overload

from greenlet import getcurrent, greenlet

A = TypeVar("A")
B = TypeVar("B")
C = TypeVar("C")


@overload
def interleave(first: Callable[[], A], second: Callable[[], B], /) -> tuple[A, B]: ...
@overload
def interleave(first: Callable[[], A], second: Callable[[], B], third: Callable[[], C], /) -> tuple[A, B, C]: ...
@overload
def interleave(*functions: Callable[[], A]) -> tuple[A, ...]: ...
def interleave(*functions: Callable[[], Any]) -> tuple[Any, ...]:
    """Return what functions return, run in this thread until all have ended; the error of one ends all."""
    if len(functions) < 2:
        return tuple(function() for function in functions)
    results: dict[int, Any] = {}
    waiting = deque((place, greenlet(function)) for place, function in enumerate(functions))
    try:
        while waiting:
            for _ in range(len(waiting)):
                place, function = waiting.popleft()
                result = function.switch()
                if function.dead:
                    results[place] = result
                else:
                    waiting.append((place, function))
            if waiting:
                let_others_go_on()
    finally:
        for _, function in waiting:  # now and in this thread, not when somebody drops the error
            with contextlib.suppress(BaseException):  # the first one is what is told
                function.throw()
    return tuple(results[place] for place in range(len(functions)))


def let_others_go_on() -> None:
    """Return when each function that this one is interleaved with has gone as far as it could without waiting."""
    parent = getcurrent().parent
    if parent is not None:
        parent.switch()
