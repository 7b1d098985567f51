"""A growing text of Markdown, cut where nothing in it goes on beyond the cut, and as it can be read already."""

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
