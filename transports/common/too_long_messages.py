"""What is too much for a chat: a text that is too intricate is shown as it is, and a very long one goes into a file.

Parsers of markdown take quadratic time for some shapes of text, such as thousands of open brackets, lists within
lists, or rows of a table that has a thousand columns. What is counted here takes linear time, and bounds all of them.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from botservice.core.messages import storable
from botservice.texts import in_language

Piece = TypeVar("Piece")

MAX_MESSAGES: Final = 10
_NAME: Final = "answer.txt"
MAX_CHARACTERS: Final = 40_000
SHORT_CHARACTERS: Final = 500  # so much is formatted in a moment, whatever its shape
_MAX_MARKS: Final = 5_000
_MAX_CELLS: Final = 20_000
_MARKS: Final = "*_`~[]<<>|$#!\\&\n"  # what may open a tag counts twice
# Thirteen quotations or lists within each other.
_DEEP: Final = re.compile(r"^[ \t]*(?:(?:>|(?:[-+*]|\d{1,9}[.)])(?=[ \t]))[ \t]*){13}", re.MULTILINE)
_INDENTED: Final = re.compile(r"^(?:[ ]{40}|[ ]{0,3}\t{10})[ \t]*(?:>|[-+*][ \t]|\d{1,9}[.)][ \t])", re.MULTILINE)


def head_of(text: str) -> str:
    """Return the beginning of a long answer, as much as may become messages, up to the end of a line if possible."""
    end = text.rfind("\n", MAX_CHARACTERS // 2, MAX_CHARACTERS)
    return text[: end if end > 0 else MAX_CHARACTERS]


def cut_long(text: str, write: Callable[[str], Sequence[Piece]]) -> tuple[Sequence[Piece], bool]:
    """Return the messages of a text, and whether they are its beginning alone: then the whole goes into a file.

    Args:
        write: Returns the messages that a text makes.
    """
    is_long = len(text) > MAX_CHARACTERS
    pieces = write(head_of(text) if is_long else text)
    is_long = is_long or len(pieces) > MAX_MESSAGES
    return (pieces[: MAX_MESSAGES - 1] if is_long else pieces), is_long


def whole_file(text: str) -> dict[str, Any]:
    """Return an answer as a file; its text stands in the delivery itself."""
    return {"name": _NAME, "mime_type": "text/plain", "text": storable(text)}


def note(language: str | None) -> str:
    """Return what is said next to the file, in a language such as "de" or "pt-br"."""
    return in_language("answer.in_file", language)


def is_too_intricate(text: str) -> bool:
    """Return whether a text is to be shown as it is, because to format it would take too much."""
    return (
        len(text) > MAX_CHARACTERS
        or (_count_marks(text) > _MAX_MARKS and _count_marks(_without_code(text)) > _MAX_MARKS)
        or _count_cells(text) > _MAX_CELLS
        or _DEEP.search(text) is not None
        or _INDENTED.search(text) is not None
    )


def _count_marks(text: str) -> int:
    return sum(map(text.count, _MARKS))


def _without_code(text: str) -> str:
    """Return text without what stands in blocks of code, where marks cost nothing; every line leaves its end."""
    kept: list[str] = []
    is_code = False
    for line in text.splitlines(keepends=True):
        is_fence = line.lstrip(" ").startswith(("```", "~~~"))
        kept.append("\n" if is_code and not is_fence else line)
        is_code ^= is_fence
    return "".join(kept)


def _count_cells(text: str) -> int:
    """Return how many cells the lines of a text could make of it, if its widest line were the head of a table."""
    if "|" not in text:
        return 0
    lines = [line for line in text.splitlines() if line.strip()]
    return max((line.count("|") for line in lines), default=0) * len(lines)
