"""Finding the whole sentence around a quotation, so that no word is left out that turns its meaning."""

import re
import unicodedata
from typing import Final

LONGEST: Final = 300  # characters
_SHORTEST: Final = 2
_LOOKED_BACK: Final = 6  # characters: longer than any word after which a point need not end a sentence
_END: Final = re.compile(
    r"[!?\u061f\u2026]+[\"'\u201d\u00bb)\]]*(?=\s|$)|[\u3002\uff01\uff1f]+[\u300d\u300f]?|\.[\"'\u201d\u00bb)\]]*(?=\s|$)"
)
_QUESTION: Final = re.compile(r"[?\uff1f\u061f\u00bf]")
# Where a line ends or begins like that, the one before it goes on: "I do not eat:", "- eggs", "that I live there".
_GOES_ON: Final = (":", ",", ";", "\uff1a", "\uff0c", "\u3001")
_GONE_ON: Final = ("-", "*", "\u2013", "\u2014", "\u2022")
# A point after these need not end a sentence: initials, "Dr.", "z.B.".
_SHORT_WORD: Final = re.compile(r"(?:^|[\s.(])(?:\w|[^\W\d_a-z]\w{1,2})$")


def sentence_with(quote: str, own: str) -> str | None:
    """Return the sentence of a person's own words that holds a quotation word for word.

    Return None if there is none, if it is a question, or if it is too long to be a fact.
    """
    sought = _in_one_line(quote)
    if len(sought) < _SHORTEST:
        return None
    for line in _lines(own):
        place = _find_whole(sought, line)
        if place is not None:
            begin, end = _around(line, place, place + len(sought))
            sentence = line[begin:end].strip()
            return sentence if len(sentence) <= LONGEST and not _QUESTION.search(sentence) else None
    return None


def _in_one_line(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).split())


def _lines(own: str) -> list[str]:
    """Return the lines of a text, each joined with the one that it runs on into, where a "not" may stand."""
    lines: list[str] = []
    for line in filter(None, map(_in_one_line, own.splitlines())):
        if lines and (lines[-1].endswith(_GOES_ON) or line.startswith(_GONE_ON) or line[0].islower()):
            lines[-1] += f" {line}"
        else:
            lines.append(line)
    return lines


def _find_whole(sought: str, line: str) -> int | None:
    """Return where a quotation stands in a line, at whole words."""
    place = line.find(sought)
    while place >= 0:
        end = place + len(sought)
        if not (_is_within_a_word(line, place) or _is_within_a_word(line, end)):
            return place
        place = line.find(sought, place + 1)
    return None


def _is_within_a_word(line: str, place: int) -> bool:
    before, after = line[place - 1 : place], line[place : place + 1]
    return before.isalnum() and after.isalnum() and max(before, after) < "\u2e80"


def _around(line: str, begin: int, end: int) -> tuple[int, int]:
    """Return where the sentences begin and end that a part of a line lies in."""
    ends = [each.end() for each in _END.finditer(line) if not _is_abbreviated(line, each)]
    first = max((each for each in ends if each <= begin), default=0)
    return first, min((each for each in ends if each >= end), default=len(line))


def _is_abbreviated(line: str, found: re.Match[str]) -> bool:
    return (
        found[0].startswith(".")
        and found.end() < len(line)
        and bool(_SHORT_WORD.search(line[max(0, found.start() - _LOOKED_BACK) : found.start()]))
    )
