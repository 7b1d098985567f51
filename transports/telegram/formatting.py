"""Formatting: from a tree of Markdown to messages of text with entities, none too long, and none that shows nothing."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

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
from transports.markdown.formulas import formula_words
from transports.markdown.links import with_links_written
from transports.markdown.reading import read_whole
from transports.markdown.splitting import in_pieces
from transports.markdown.text_tables import as_columns, as_lists, width_of

_HOST = re.compile(r"(?:[^\s<>\"'\\^`{|}.]+\.)+[^\W\d][^\s<>\"'\\^`{|}.]+")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_OTHER_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?!//|\d)")
_APP_SCHEMES = ("tg", "ton", "tonsite")
DATE_TIME = "date_time"  # a time as each reader's own. Source: core.telegram.org/bots/api#date-time-entity-formatting
_DATE_FORMAT: Final = "dt"  # the date and the time of day, both short


@dataclass(frozen=True, slots=True)
class Entity:
    """A stretch of text that is formatted. Places count in code points until the text is sent.

    Attributes:
        argument: A link's address, or the language of a block of code.
    """

    kind: str
    begin: int
    end: int
    argument: str | None = None


@dataclass(frozen=True, slots=True)
class Rich:
    """A text and its formatting."""

    text: str
    entities: tuple[Entity, ...] = ()


def units(text: str) -> int:
    """Return the length in UTF-16 code units, as Telegram counts."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


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


def checked_link(url: str) -> str | None:
    """Return an address that Telegram links, made whole, or None if it would refuse it.

    Source: td/telegram/LinkManager.cpp, check_link.
    """
    url = url.strip()
    if _OTHER_SCHEME.match(url):
        return None
    try:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return None
    if parts.scheme in _APP_SCHEMES:
        return url
    if parts.scheme not in ("http", "https") or any(each.isspace() for each in url):
        return None
    return parts.geturl() if _HOST.fullmatch(host) or _ADDRESS.fullmatch(host) else None


def with_moments(rich: Rich, moments: Sequence[Moment]) -> Rich:
    """Return rich with the times in it marked, as far as nothing else is marked there already."""
    found = []
    for moment in moments:
        begin = rich.text.find(moment.words) if moment.words else -1
        while begin >= 0:
            end = begin + len(moment.words)
            if all(_allows(each, begin, end) for each in rich.entities):
                found.append(Entity(DATE_TIME, begin, end, str(int(moment.at.timestamp()))))
            begin = rich.text.find(moment.words, end)
    return Rich(rich.text, (*rich.entities, *found)) if found else rich


def _allows(entity: Entity, begin: int, end: int) -> bool:
    """Return whether a time may stand next to, or inside of, an entity."""
    if entity.end <= begin or end <= entity.begin:
        return True
    return entity.kind not in ("code", "pre", "text_link", DATE_TIME) and entity.begin <= begin and end <= entity.end


# Source: core.telegram.org/bots/api, sendMessage; an entity beyond the hundredth is silently dropped.
MAX_TEXT_UNITS: Final = 4096
MAX_CAPTION_UNITS: Final = 1024
MAX_ENTITIES: Final = 100
_BLANKS: Final = " \n\t\u00a0\u00ad\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2800\u3164\ufeff"
_MAX_TABLE_WIDTH: Final = 42  # what fits on a line of a phone, in letters of one width
_LEAST_SOURCES: Final = 3  # fewer are no burden
_STYLES: Final = ("bold", "italic", "underline", "strike", "spoiler")
_QUOTES: Final = ("blockquote", "expandable_blockquote")
_KINDS: Final = {"strike": "strikethrough"}
_TITLES: Final = (("bold", "underline"),) * 2 + (("bold",),) * 2 + (("italic",),) * 2
Kind = tuple[str, str | None]
"""An entity's type, with its address or language."""


def render_blocks(blocks: Blocks, moments: Sequence[Moment] = ()) -> Rich:
    """Return a tree as one text with entities."""
    page = _Page()
    page.write_blocks(blocks)
    rich = page.finished()
    return with_moments(rich, moments) if moments else rich


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
    """A text with entities that grows block by block; each entity ends before those around it do."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._entities: list[Entity] = []
        self._length = 0
        self._indent = ""  # what every line of a point begins with
        self._open: list[tuple[Kind, int]] = []  # what began, and where: the innermost stands last
        self._titles: tuple[str, ...] = ()
        self._is_in_quote = False

    def finished(self) -> Rich:
        """Return the text without space around it, and its entities without those that would cover only space."""
        text = "".join(self._parts).rstrip()
        first = next((each.begin for each in self._entities if each.kind == "pre"), len(text))
        lead = min(len(text) - len(text.lstrip()), first)  # the indentation of code stays
        kept = (
            Entity(each.kind, max(0, each.begin - lead), min(each.end, len(text)) - lead, each.argument)
            for each in self._entities
            if text[each.begin : each.end].strip()
        )
        in_order = sorted(kept, key=lambda each: (each.begin, -each.end, each.kind not in _QUOTES))
        return Rich(text[lead:], tuple(in_order))

    def write_blocks(self, blocks: Blocks, *, is_in_list: bool = False) -> None:
        """Write blocks below each other."""
        for at, block in enumerate(blocks):
            if at:
                self._write("\n" if is_in_list or block.is_close else "\n\n")
                self._write(self._indent if isinstance(block, Paragraph | Heading | Rule) else "")
            is_last = at == len(blocks) - 1 and not is_in_list
            if is_last and not self._is_in_quote and is_list_of_sources(block):
                self._write_quote((block,), "expandable_blockquote")
            else:
                self._write_block(block)

    def _write_block(self, block: Block) -> None:
        match block:
            case Paragraph(spans):
                self._write_spans(spans)
            case Heading(spans, level):
                self._titles = _TITLES[level - 1]
                self._write_spans(spans)
                self._titles = ()
            case CodeBlock(text, language):
                self._write(text, [("pre", language or None)])
            case FormulaBlock(tex):
                self._write(formula_words(tex), [("pre", None)])
            case Rule():
                self._write("———")
            case Quote(blocks):
                self._write_quote(blocks, "blockquote")
            case Table():
                self._write_table(block)
            case List(items):
                self._write_list(items)

    def _write_quote(self, blocks: Blocks, kind: str) -> None:
        """Write a quotation; Telegram has none within another."""
        was_in_quote, self._is_in_quote, begin = self._is_in_quote, True, self._length
        self.write_blocks(blocks)
        self._is_in_quote = was_in_quote
        if not was_in_quote:
            self._entities.append(Entity(kind, begin, self._length))

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
        else:
            self._write(as_columns(rows), [("pre", None)])

    def _write_spans(self, spans: Spans) -> None:
        for each in with_links_written(spans, checked_link):
            if isinstance(each, Formula):
                self._format([("code", None)])
                self._write(formula_words(each.tex))
            else:
                self._format(_kinds_of(each, self._titles))
                self._write(each.text.replace("\n", f"\n{self._indent}"))
        self._format([])

    def _format(self, kinds: Sequence[Kind]) -> None:
        """Let what follows stand in some entities: those that are not among them end, and with them what they hold."""
        keep = next((at for at, (kind, _) in enumerate(self._open) if kind not in kinds), len(self._open))
        while len(self._open) > keep:
            (kind, argument), begin = self._open.pop()
            self._entities.append(Entity(kind, begin, self._length, argument))
        known = [kind for kind, _ in self._open]
        self._open += [(kind, self._length) for kind in kinds if kind not in known]

    def _write(self, text: str, kinds: Sequence[Kind] = ()) -> None:
        """Write a text, which may stand in entities of its own."""
        if kinds:
            self._format(kinds)
        self._parts.append(text)
        self._length += len(text)
        if kinds:
            self._format([])


def _kinds_of(span: Span, titles: Sequence[str]) -> list[Kind]:
    """Return the entities in which a span stands; code takes no other, and Telegram links bare addresses itself."""
    is_known = span.link is None or span.link == span.text or span.link.startswith("tg://emoji")
    link: list[Kind] = [] if is_known else [("text_link", span.link)]
    if span.code and is_known:
        return [("code", None)]
    names = [name for name in _STYLES if (getattr(span, name) and not span.code) or name in titles]
    return link + [(_KINDS.get(name, name), None) for name in names]


def _cell_text(cell: Spans) -> str:
    return "".join(each.text if isinstance(each, Span) else formula_words(each.tex) for each in cell)


def format_markdown(markdown: str, *, max_units: int = MAX_TEXT_UNITS, moments: Sequence[Moment] = ()) -> list[Rich]:
    """Return the messages that markdown makes, in order; none if there is nothing to read."""
    if not markdown.strip(_BLANKS):
        return []
    written = storable(markdown)
    pieces = format_blocks(read_whole(written), max_units=max_units, moments=moments)
    # Markup without words stays as it is.
    return pieces or format_blocks((Paragraph((Span(written),)),), max_units=max_units)


def format_formatted(
    text: FormattedText, *, max_units: int = MAX_TEXT_UNITS, moments: Sequence[Moment] = ()
) -> list[Rich]:
    """Return the messages that a formatted text makes, in order; of a very long one those of its beginning."""
    return format_blocks(next(in_pieces(text.blocks, MAX_CHARACTERS), ()), max_units=max_units, moments=moments)


def format_blocks(blocks: Blocks, *, max_units: int = MAX_TEXT_UNITS, moments: Sequence[Moment] = ()) -> list[Rich]:
    """Return the messages that a tree makes, in order, without those that would show nothing: they are refused."""

    def size(each: Blocks) -> int:
        shown = render_blocks(each, moments)
        return max(units(shown.text), len(shown.entities) * max_units // MAX_ENTITIES)

    whole = render_blocks(blocks, moments)
    if units(whole.text) <= max_units and len(whole.entities) <= MAX_ENTITIES:
        pieces: Iterable[Rich] = [whole]
    else:
        pieces = (render_blocks(each, moments) for each in in_pieces(blocks, max_units, size))
    return [each for each in pieces if each.text.strip(_BLANKS)]
