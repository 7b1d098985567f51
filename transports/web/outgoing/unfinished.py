"""What of a section is shown while it is written: without signs whose meaning the next words will decide."""

import re
from typing import Final

_FENCED: Final = re.compile(r"(?:`{3,}|~{3,})")
_LINK: Final = re.compile(r"!?\[(?P<text>[^\[\]\n]*)(?:\]\([^)\s]*)?$")
_HEAD: Final = re.compile(r"(?:^|\n)[ \t]*\|[^\n]*(?:\n[ \t]*\|?[ \t:|-]*)?$")
_LAST_MARKS: Final = re.compile(r"(?:[*_~]{1,3}|`{1,2})$")
_OPEN_FORMULA: Final = re.compile(r"\\\[(?:(?!\\\])[\s\S])*$")
_MARKED: Final = ("**", "~~", "`")
_LONGEST: Final = 20_000  # characters; a longer section is shown as it stands


def presentable(section: str) -> str:
    """Return an open section as it is shown: marks that are not closed yet are, and half a link is its words."""
    if len(section) > _LONGEST or _FENCED.match(section):
        return section
    shown = section
    if section.count("$$") % 2:
        shown = shown[: shown.rindex("$$")]
    shown = _OPEN_FORMULA.sub("", shown)
    head = _HEAD.search(shown)
    if head is not None and not _is_in_table(shown[: head.start()]):
        shown = shown[: head.start()]
    shown = _LINK.sub(r"\g<text>", shown)
    return _with_marks_closed(shown)


def _is_in_table(before: str) -> bool:
    """Return whether a line that begins with a bar goes on with a table."""
    return before.rpartition("\n")[2].lstrip().startswith("|")


def _with_marks_closed(text: str) -> str:
    line = text.rpartition("\n")[2]
    if line.lstrip().startswith("    "):
        return text
    marks = _LAST_MARKS.search(line)
    if marks is not None and line.count(marks[0]) % 2:
        text, line = text[: -len(marks[0])], line[: -len(marks[0])]
    missing = "".join(mark for mark in reversed(_MARKED) if line.count(mark) % 2)
    return f"{text.rstrip(' ')}{missing}" if missing else text
