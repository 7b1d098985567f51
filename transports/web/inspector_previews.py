"""The beginning of a text as a line of plain words, for lists."""

import re
from typing import Final

from botservice.conversation.replay import visible
from botservice.core.formatted_text import Block, Blocks, FormattedText, List, Quote, Rule, Table, plain_text
from botservice.core.visible_text import shown_beginning
from transports.markdown.reading import read_markdown

_EXCERPT: Final = 300  # characters
_MARKUP: Final = re.compile(r"[|*_#`~\[\]<>\\$&]|^ *(?:[-+]|\d+[.)]) |^ *-{3,}", re.MULTILINE)


def show_excerpt(text: str) -> str:
    """Return the beginning of a text in one line, as it was written."""
    return _one_line(text[: 2 * _EXCERPT])


def show_preview(markdown: str) -> str:
    """Return the words that an answer begins with, in one line: without the signs of its Markdown."""
    begun = markdown[: 2 * _EXCERPT]
    return _one_line(_words(read_markdown(begun)) if _MARKUP.search(begun) else begun)


def _one_line(text: str) -> str:
    line = " ".join(visible(text).split())
    return line if len(line) <= _EXCERPT else f"{shown_beginning(line, _EXCERPT)}…"


def _words(blocks: Blocks) -> str:
    return " ".join(filter(None, map(_words_of, blocks)))


def _words_of(block: Block) -> str:
    match block:
        case Table(rows):
            lines = (", ".join(filter(None, (plain_text(cell).strip() for cell in row))) for row in rows)
            return "; ".join(filter(None, lines))
        case List(items):
            return ", ".join(f"{item.number or ''} {_words(item.blocks)}".strip() for item in items)
        case Quote(blocks):
            return _words(blocks)
        case Rule():
            return ""
        case _:
            return FormattedText((block,)).plain
