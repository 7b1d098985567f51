"""Answers that are longer than a chat bears: a few messages, and the whole as a text file behind them."""

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from botservice.messages import storable
from botservice.texts import in_language
from transports.intricacy import MAX_CHARACTERS

MAX_MESSAGES: Final = 10
_NAME: Final = "answer.txt"

T = TypeVar("T")


def head_of(text: str) -> str:
    """Return the beginning of an answer, as much as may become messages, up to the end of a line where that goes."""
    if len(text) <= MAX_CHARACTERS:
        return text
    end = text.rfind("\n", MAX_CHARACTERS // 2, MAX_CHARACTERS)
    return text[: end if end > 0 else MAX_CHARACTERS]


def fitting(pieces: Sequence[T], *, is_all: bool) -> tuple[Sequence[T], bool]:
    """Return the pieces that are sent as messages, and whether these are the whole answer.

    Args:
        is_all: Whether the pieces were made of the whole answer.
    """
    if is_all and len(pieces) <= MAX_MESSAGES:
        return pieces, True
    return pieces[: MAX_MESSAGES - 1], False


def whole_file(text: str) -> dict[str, Any]:
    """Return an answer as a file; its text stands in the delivery itself."""
    return {"name": _NAME, "mime_type": "text/plain", "text": storable(text)}


def note(language: str | None) -> str:
    """Return what is said beside the file, in a language such as "de" or "pt-br"."""
    return in_language("answer.in_file", language)
