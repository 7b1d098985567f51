"""A growing text of Markdown, cut where nothing in it goes on beyond the cut: each section is formatted by itself.

Where a cut is depends on the text alone and never on the pieces in which it came, so that an answer looks while it is
written as it does once it is stored.
"""

import re
from typing import Final

_FENCE: Final = re.compile(r"(?P<indent> {0,3})(?:(?P<marks>`{3,})[^`]*$|(?P<waves>~{3,}))")
_HEADING: Final = re.compile(r"#{1,6}(?:[ \t]|$)")
_ITEM: Final = re.compile(r"[ \t]{0,3}(?:[-+*]|\d{1,9}[.)])(?:[ \t]|$)")
# How a line begins that is a paragraph, a table or a quotation, whatever comes after: then it need not be whole.
_CLEAR: Final = re.compile(r"[^\s\d+*\-#`~]|[+*-][^\s+*-]|\*\*[^\s*]|\d{1,9}[^\d.)]|`{1,2}[^`]")
_MOST: Final = 2_000  # sections that a page can lay out; what comes after them is one more
_LONGEST_LOOK: Final = 16  # characters from which it is clear how a line begins


class Sections:
    """Cuts a text that grows."""

    def __init__(self) -> None:
        self.closed: list[str] = []
        self.length = 0
        self._lines: list[str] = []
        self._rest: list[str] = []
        self._rest_length = 0
        self._fence: str | None = None  # the shortest line that ends the block of code
        self._has_items = False
        self._is_after_blank = False
        self._cuts = 0

    @property
    def open(self) -> str:
        """The section that still grows."""
        return "\n".join([*self._lines, "".join(self._rest)])

    def add(self, piece: str) -> None:
        """Take what comes next."""
        self.length += len(piece)
        first, *others = piece.split("\n")
        self._go_on(first)
        for each in others:
            self._end_line()
            self._go_on(each)

    def end(self) -> None:
        """Take note that nothing more comes: what may have been the beginning of a line is all of it."""
        if self._rest:
            self._end_line()

    def take_closed(self) -> list[str]:
        """Return the sections that were closed since the last time."""
        taken, self.closed = self.closed, []
        return taken

    def _go_on(self, text: str) -> None:
        if text:
            self._rest.append(text)
            self._rest_length += len(text)
        is_looked_at = self._is_after_blank and self._fence is None and self._rest_length - len(text) < _LONGEST_LOOK
        if is_looked_at and _CLEAR.match("".join(self._rest)):
            self._cut()

    def _end_line(self) -> None:
        line = "".join(self._rest).removesuffix("\r")
        self._rest, self._rest_length = [], 0
        if self._fence is not None:
            self._lines.append(line)
            if _closes(line, self._fence):
                self._fence = None
                self._cut()
        elif (fence := _FENCE.match(line)) and not (fence["indent"] and self._has_items):
            self._cut()
            self._lines.append(line)
            self._fence = fence["marks"] or fence["waves"]
        elif _HEADING.match(line):
            self._cut()
            self._lines.append(line)
            self._cut()
        else:
            self._take_line(line)

    def _take_line(self, line: str) -> None:
        is_item = _ITEM.match(line) is not None
        is_blank = not line.strip()
        if self._is_after_blank and not is_blank and not line[0].isspace() and not (is_item and self._has_items):
            self._cut()
        self._lines.append(line)
        self._has_items |= is_item
        self._is_after_blank = is_blank

    def _cut(self) -> None:
        """Close what there is before the line that has begun."""
        if self._cuts >= _MOST:
            return
        if any(line.strip() for line in self._lines):
            self.closed.append("\n".join(self._lines).strip("\n"))
            self._cuts += 1
        self._lines = []
        self.length = self._rest_length
        self._has_items = self._is_after_blank = False


def split_sections(text: str) -> list[str]:
    """Return the sections of a whole text."""
    sections = Sections()
    sections.add(text)
    sections.end()
    last = sections.open
    return [*sections.closed, *([last.strip("\n")] if last.strip() else [])]


def _closes(line: str, fence: str) -> bool:
    """Return whether a line ends a block of code that a fence began: as many of the same signs or more, alone."""
    marks = line.rstrip(" \t").removeprefix(" ").removeprefix(" ").removeprefix(" ")
    return len(marks) >= len(fence) and marks == fence[0] * len(marks)
