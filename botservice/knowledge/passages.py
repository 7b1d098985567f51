"""Cutting a document into passages along its headings."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from botservice.agent.knowledge_base import BETWEEN
from botservice.core.errors import KnowledgeError
from botservice.core.quoting import in_one_line, shortened

LONGEST: Final = 1_600  # characters: 200 to 400 tokens
_SHORT: Final = 400  # a shorter section stands together with the sections below it
_DEEPEST: Final = 6  # levels of headings
_LONGEST_HEADING: Final = 120
_MOST: Final = 20_000  # passages of a document
_FENCE: Final = re.compile(r"(```|~~~)")
_MARKS: Final = re.compile(r"[*_`]+")
_PAGE: Final = "\f"


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a document that answers a question by itself.

    Attributes:
        heading: The headings that it stands below, the outermost first; "" for none.
        page: The number of its page, from 1; None for documents without pages.
    """

    heading: str
    text: str
    page: int | None = None


@dataclass(slots=True)
class _Section:
    heading: str
    text: str
    page: int | None


def digest_of(passage: Passage) -> bytes:
    """Return what is the same for passages with the same heading and words."""
    return hashlib.blake2b(f"{passage.heading}\n{passage.text}".encode("utf-8", "replace"), digest_size=16).digest()


def split_document(text: str) -> tuple[str, list[Passage]]:
    """Cut a document in Markdown, or in plain text, into passages.

    Args:
        text: Pages are separated by form feeds, where there are pages.

    Returns:
        The first heading, or "", and the passages in order.

    Raises:
        KnowledgeError: there are too many passages.
    """
    sections = list(_sections(text))
    title = next((each.heading.split(BETWEEN)[0] for each in sections if each.heading), "")
    pieces = ((section, piece) for section in _joined(sections) for piece in _pieces(section.text))
    found = [Passage(section.heading, piece, section.page) for section, piece in islice(pieces, _MOST + 1)]
    if len(found) > _MOST:
        raise KnowledgeError(f"it has more than {_MOST:,} sections: divide the document")
    if not found and title:  # nothing but headings
        found = [Passage("", piece) for piece in _pieces(text.replace(_PAGE, "\n").strip())]
    return title, found


def short_heading(text: str) -> str:
    """Return a heading or a title as one line that is not too long, without signs that cannot be seen."""
    return shortened(in_one_line(text), _LONGEST_HEADING)


def _sections(text: str) -> Iterator[_Section]:
    """Yield the text below each heading, page by page."""
    has_pages = _PAGE in text
    open_headings: list[tuple[int, str]] = []
    for number, page in enumerate(text.split(_PAGE), 1):
        lines: list[str] = []
        fence = ""
        for line in page.splitlines():
            mark = _FENCE.match(line.lstrip())
            if mark and fence in ("", mark[1]):
                fence = "" if fence else mark[1]
            level = 0 if fence else _level_of(line)
            if not level:
                lines.append(line)
                continue
            yield _Section(_path(open_headings), "\n".join(lines).strip(), number if has_pages else None)
            lines.clear()
            open_headings = [each for each in open_headings if each[0] < level]
            open_headings.append((level, short_heading(_MARKS.sub("", line.strip("# ")))))
        yield _Section(_path(open_headings), "\n".join(lines).strip(), number if has_pages else None)


def _level_of(line: str) -> int:
    """Return the level of a heading, 1 for the highest; 0 for any other line."""
    level = len(line) - len(line.lstrip("#"))
    return level if level <= _DEEPEST and line[level : level + 1] == " " else 0


def _path(headings: list[tuple[int, str]]) -> str:
    return BETWEEN.join(words for _, words in headings if words)


def _joined(sections: list[_Section]) -> Iterator[_Section]:
    """Yield sections that are not empty; a short one together with those below it."""
    last: _Section | None = None
    for section in sections:
        if not section.text:
            continue
        above = f"{last.heading}{BETWEEN}" if last is not None and last.heading else ""
        is_below = last is not None and f"{section.heading}{BETWEEN}".startswith(above) and last.page == section.page
        if last is not None and is_below and len(last.text) < _SHORT and len(last.text) + len(section.text) <= LONGEST:
            own = section.heading.removeprefix(last.heading).removeprefix(BETWEEN)
            last.text = "\n\n".join(part for part in (last.text, own, section.text) if part)
            continue
        if last is not None:
            yield last
        last = _Section(section.heading, section.text, section.page)
    if last is not None:
        yield last


def _pieces(text: str) -> Iterator[str]:
    """Yield a section in pieces of at most LONGEST characters; each piece of a table has the table's head."""
    if len(text) <= LONGEST:
        yield text
        return
    from botservice.search.passages import split_passages

    head = ""
    for start, end in split_passages(text, LONGEST):
        piece = text[start:end].strip()
        lines = piece.splitlines()
        if head and lines and lines[0].startswith("|"):
            piece = f"{head}\n{piece}"
        rules = [at for at, line in enumerate(lines) if at and re.fullmatch(r"\|[\s:|-]+\|", line)]
        if rules:
            head = "\n".join(lines[rules[-1] - 1 : rules[-1] + 1])
        if lines and not lines[-1].startswith("|"):
            head = ""
        yield piece
