"""Markdown that is still written, as it can be read already: marks that are not closed yet are, and halves do not show.

This is for screens that draw a text again and again. What a platform only adds to is settled by its own renderer.
"""

import re
from typing import Final

from transports.markdown.sections import Sections

_FENCED: Final = re.compile(r" {0,3}(?:`{3,}|~{3,})")
_LINK: Final = re.compile(r"!?\[(?P<text>[^\[\]\n]*)(?:\]\([^)\s]*)?$")
_HEAD: Final = re.compile(r"(?:^|\n)[ \t]*\|[^\n]*(?:\n[ \t]*\|?[ \t:|-]*)?$")
_LAST_MARKS: Final = re.compile(r"(?:[*_~]{1,3}|`{1,2})$")
_OPEN_FORMULA: Final = re.compile(r"\\\[(?:(?!\\\])[\s\S])*$")
_MARKED: Final = ("**", "~~", "`")
_LONGEST: Final = 20_000  # characters; a longer section is shown as it stands


def readable_so_far(text: str) -> str:
    """Return a text that grows as it can be read already."""
    sections = Sections()
    sections.add(text)
    section = sections.open
    return text.removesuffix(section) + close_section(section) if text.endswith(section) else text


def close_section(section: str) -> str:
    """Return the last section of a text that grows as it can be read already; half a link is its words."""
    if len(section) > _LONGEST or _FENCED.match(section):
        return section
    shown = section
    if section.count("$$") % 2:
        shown = shown[: shown.rindex("$$")]
    shown = _OPEN_FORMULA.sub("", shown)
    head = _HEAD.search(shown)
    if head is not None and not _is_in_table(shown[: head.start()]):
        shown = shown[: head.start()]
    return _with_marks_closed(_LINK.sub(r"\g<text>", shown))


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
