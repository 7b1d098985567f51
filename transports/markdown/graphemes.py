"""Cuts between what people see as single characters: flags, families, letters with accents, syllables of Hangul."""

from typing import Final

import regex

_CHARACTER: Final = regex.compile(r"\X")
_LONGEST: Final = 64  # code points of one character; a longer one is torn


def last_cut(text: str, begin: int, end: int) -> int:
    """Return the last place up to end, and behind begin, that tears no character; end if there is none.

    Args:
        begin: Where a character begins.
    """
    if end >= len(text) or text[begin : end + 1].isascii():
        return min(end, len(text))
    cut = begin
    for found in _CHARACTER.finditer(text, begin, min(len(text), end + _LONGEST)):
        if found.end() > end:
            break
        cut = found.end()
    return cut if cut > begin else end
