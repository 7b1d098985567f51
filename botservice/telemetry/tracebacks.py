"""Tracebacks for logs: the lines of code, without the words of errors."""

import textwrap
import traceback
from collections.abc import Iterator
from typing import Final

_MOST_FRAMES: Final = 40
_OWN_PACKAGES: Final = ("botservice.", "transports.")


def format_error(error: BaseException) -> str:
    """Return an error with the lines of code that led to it, and with what it came of.

    What it says is left out: tools and libraries repeat in it what people wrote. Errors of this program say only what
    may be logged.
    """
    return "\n".join(_lines(error, set()))


def _lines(error: BaseException, seen: set[int]) -> Iterator[str]:
    seen.add(id(error))
    source = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    if source is not None and id(source) not in seen:
        yield from _lines(source, seen)
        yield "which led to:"
    yield "Traceback (most recent call last):"
    for frame in traceback.format_tb(error.__traceback__, limit=-_MOST_FRAMES):
        yield frame.rstrip("\n")
    yield _name(error)
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            if id(each) not in seen:
                yield textwrap.indent("\n".join(_lines(each, seen)), "  | ")


def _name(error: BaseException) -> str:
    kind = type(error)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    says = str(error) if kind.__module__.startswith(_OWN_PACKAGES) else ""
    return f"{name}: {says}" if says else name
