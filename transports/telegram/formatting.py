"""From a tree of Markdown to texts with entities that Telegram takes."""

import logging
import re
from collections.abc import Sequence
from typing import Any, Final

from botservice.core.formatted_text import (
    Block,
    Blocks,
    CodeBlock,
    FormattedText,
    Formula,
    FormulaBlock,
    Heading,
    Item,
    List,
    Paragraph,
    Quote,
    Rule,
    Span,
    Spans,
    Table,
)
from botservice.core.messages import Moment, storable
from transports.common.too_long_messages import MAX_CHARACTERS
from transports.markdown.formatted_pieces import in_pieces
from transports.markdown.formula_words import formula_words
from transports.markdown.links import with_links_written
from transports.markdown.reading import read_whole
from transports.markdown.text_tables import as_columns, as_lists, width_of
from transports.telegram.entities import DATE_TIME, Entity, Rich, checked_link, normalised, with_moments
from transports.telegram.splitting import BLANKS, split, units

logger = logging.getLogger(__name__)

# Source: core.telegram.org/bots/api, sendMessage; an entity beyond the hundredth is silently dropped.
MAX_TEXT_UNITS = 4096
MAX_CAPTION_UNITS = 1024
MAX_ENTITIES = 100
_DATE_FORMAT = "dt"  # the date and the time of day, both short
_MAX_TABLE_WIDTH: Final = 42  # what fits on a line of a phone, in letters of one width
_LEAST_SOURCES: Final = 3  # fewer are no burden
_STYLES: Final = ("bold", "italic", "underline", "strike", "spoiler")
_KINDS: Final = {"strike": "strikethrough"}
_TITLES: Final = (("bold", "underline"),) * 2 + (("bold",),) * 2 + (("italic",),) * 2
# What reads the same whether it is taken for markdown or not: no marks, and no line that may begin anything.
_LONGEST_PLAIN = 2_000
_MARKS = r"*_`~\[\]<>|$#!\\&\x00-\x1f"
_LINE = rf"(?![\s+=:-]|\d+[.)])[^{_MARKS}]*[^{_MARKS}\s]"
_PLAIN = re.compile(rf"{_LINE}(?:\n{{1,2}}{_LINE})*")


def format_markdown(markdown: str, *, max_units: int = MAX_TEXT_UNITS, moments: Sequence[Moment] = ()) -> list[Rich]:
    """Return the messages that markdown makes, in order; none if there is nothing to read."""
    rich = render(markdown)
    return _pieces(with_moments(rich, moments) if moments else rich, max_units)


def format_formatted(
    text: FormattedText, *, max_units: int = MAX_TEXT_UNITS, moments: Sequence[Moment] = ()
) -> list[Rich]:
    """Return the messages that a formatted text makes, in order; of a very long one those of its beginning."""
    rich = render_blocks(next(in_pieces(text.blocks, MAX_CHARACTERS), ()))
    return _pieces(with_moments(rich, moments) if moments else rich, max_units)


def format_plain(text: str, *, max_units: int = MAX_TEXT_UNITS) -> list[Rich]:
    """Return the messages that a text makes as it is."""
    return _pieces(Rich(storable(text)), max_units)


def render(markdown: str) -> Rich:
    """Return markdown as one text with entities, however long; markup without words stays as it is."""
    if not markdown.strip():
        return Rich("")
    if is_plain(markdown):
        return Rich(storable(markdown))
    rich = render_blocks(read_whole(storable(markdown)))
    return rich if rich.text.strip(BLANKS) else Rich(storable(markdown))


def render_blocks(blocks: Blocks) -> Rich:
    """Return a tree as one text with entities."""
    page = _Page()
    page.write_blocks(blocks)
    text = "".join(page.parts).rstrip()
    return normalised(Rich(text, tuple(page.entities)))


def is_plain(text: str) -> bool:
    """Return whether a text, as short as most are, holds nothing that markdown would make something of."""
    return len(text) <= _LONGEST_PLAIN and _PLAIN.fullmatch(text) is not None


def is_list_of_sources(block: Block) -> bool:
    """Return whether a list names the pages that an answer rests on: a numbered link in each of its points."""
    if not isinstance(block, List) or len(block.items) < _LEAST_SOURCES:
        return False
    return all(each.number is not None and _begins_with_link(each) for each in block.items)


def _begins_with_link(item: Item) -> bool:
    first = item.blocks[0] if len(item.blocks) == 1 else None
    words = first.spans[0] if isinstance(first, Paragraph) else None
    return isinstance(words, Span) and words.link is not None


class _Page:
    """A text with entities that grows block by block."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.entities: list[Entity] = []
        self._length = 0
        self._indent = ""  # what every line of a point begins with

    def write_blocks(self, blocks: Blocks, *, is_in_list: bool = False) -> None:
        """Write blocks below each other."""
        for at, block in enumerate(blocks):
            if at:
                self._write("\n" if is_in_list or block.is_close else "\n\n")
                self._write(self._indent if isinstance(block, Paragraph | Heading | Rule) else "")
            begin = self._length
            self._write_block(block)
            if at == len(blocks) - 1 and not is_in_list and is_list_of_sources(block):
                self._note("expandable_blockquote", begin)

    def _write_block(self, block: Block) -> None:
        begin = self._length
        match block:
            case Paragraph(spans):
                self._write_spans(spans)
            case Heading(spans, level):
                self._write_spans(spans)
                for kind in _TITLES[level - 1]:
                    self._note(kind, begin)
            case CodeBlock(text, language):
                self._write(text)
                self._note("pre", begin, language or None)
            case FormulaBlock(tex):
                self._write(formula_words(tex))
                self._note("pre", begin)
            case Rule():
                self._write("———")
            case Quote(blocks):
                self.write_blocks(blocks)
                self._note("blockquote", begin)
            case Table():
                self._write_table(block)
            case List(items):
                self._write_list(items)

    def _write_list(self, items: Sequence[Item]) -> None:
        outer = self._indent
        for at, item in enumerate(items):
            self._write(f"\n{outer}" if at else outer)
            number = f"{item.number} " if item.number is not None else ""
            box = {None: "", True: "☑ ", False: "☐ "}[item.is_checked]
            self._write(f"{number}{box}" or "• ")
            self._indent = f"{outer}  "
            if item.blocks and not isinstance(item.blocks[0], Paragraph | Heading | Rule):
                self._write("\n")
            self.write_blocks(item.blocks, is_in_list=True)
            self._indent = outer

    def _write_table(self, table: Table) -> None:
        rows = [[_cell_text(cell) for cell in row] for row in table.rows]
        columns = max(map(len, rows))
        widths = (max(width_of(row[at]) if at < len(row) else 0 for row in rows) for at in range(columns))
        has_links = any(isinstance(each, Span) and each.link for row in table.rows for cell in row for each in cell)
        if len(rows) > 1 and (has_links or sum(width + 3 for width in widths) > _MAX_TABLE_WIDTH):
            outer, self._indent = self._indent, ""
            self.write_blocks(as_lists(table))
            self._indent = outer
            return
        begin = self._length
        self._write(as_columns(rows))
        self._note("pre", begin)

    def _write_spans(self, spans: Spans) -> None:
        open_from: dict[tuple[str, str | None], int] = {}
        for each in with_links_written(spans, checked_link):
            begin = self._length
            if isinstance(each, Formula):
                kinds: set[tuple[str, str | None]] = {("code", None)}
                text = formula_words(each.tex)
            else:
                text = each.text.replace("\n", f"\n{self._indent}")
                kinds = _kinds_of(each)
            for kind in [kind for kind in open_from if kind not in kinds]:
                self._note(kind[0], open_from.pop(kind), kind[1])
            for kind in kinds:
                open_from.setdefault(kind, begin)
            self._write(text)
        for (name, argument), begin in open_from.items():
            self._note(name, begin, argument)

    def _write(self, text: str) -> None:
        if text:
            self.parts.append(text)
            self._length += len(text)

    def _note(self, kind: str, begin: int, argument: str | None = None) -> None:
        self.entities.append(Entity(kind, begin, self._length, argument))


def _kinds_of(span: Span) -> set[tuple[str, str | None]]:
    """Return the entities in which a span stands; code takes no other, and Telegram links bare addresses itself."""
    is_known = span.link is None or span.link == span.text or span.link.startswith("tg://emoji")
    link = set() if is_known else {("text_link", span.link)}
    if span.code:
        return link or {("code", None)}
    return {(_KINDS.get(name, name), None) for name in _STYLES if getattr(span, name)} | link


def _cell_text(cell: Spans) -> str:
    return "".join(each.text if isinstance(each, Span) else formula_words(each.tex) for each in cell)


def _pieces(rich: Rich, max_units: int) -> list[Rich]:
    """Return what is sent of rich; most of what is said needs no cutting."""
    text = rich.text
    is_short = 2 * len(text) <= max_units and len(rich.entities) <= MAX_ENTITIES  # a character is two units at most
    if is_short and text and not text[0].isspace() and not text[-1].isspace():
        return [rich] if text.strip(BLANKS) else []
    return list(split(rich, max_units=max_units, max_entities=MAX_ENTITIES))


def as_wire(rich: Rich) -> list[dict[str, Any]]:
    """Return the entities of rich in the Bot API's form, counted in UTF-16 code units."""
    wire, count = [], len if rich.text.isascii() else units
    for each in rich.entities:
        offset, length = count(rich.text[: each.begin]), count(rich.text[each.begin : each.end])
        entity: dict[str, Any] = {"type": each.kind, "offset": offset, "length": length}
        if each.kind == DATE_TIME and each.argument is not None:
            entity |= {"unix_time": int(each.argument), "date_time_format": _DATE_FORMAT}
        elif each.argument is not None:
            entity["url" if each.kind == "text_link" else "language"] = each.argument
        wire.append(entity)
    return wire
