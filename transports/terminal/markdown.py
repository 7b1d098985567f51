"""A tree of Markdown on a terminal, with each line break that was written, and addresses next to their words."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from rich import box
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.rule import Rule as Line
from rich.segment import Segment
from rich.style import Style
from rich.syntax import Syntax
from rich.table import Table as Grid
from rich.text import Text

from botservice.core.formatted_text import (
    Block,
    Blocks,
    CodeBlock,
    Formula,
    FormulaBlock,
    Heading,
    Item,
    List,
    Paragraph,
    Quote,
    Rule,
    Spans,
    Table,
)
from transports.markdown.links import with_links_written
from transports.markdown.text_tables import as_lists

_LEAST_WIDTH: Final = 24  # columns of a terminal that stay for words, however deep they stand
_LEAST_COLUMN: Final = 8
_CODE: Final = "markdown.code"
_QUOTE: Final = Style(color="magenta")
_BOXES: Final = {None: "", True: "☑ ", False: "☐ "}


def draw(blocks: Blocks) -> RenderableType:
    """Return a tree as what a console prints."""
    return Group(*_below(blocks))


def _below(blocks: Blocks, *, is_in_list: bool = False) -> Iterator[RenderableType]:
    for at, block in enumerate(blocks):
        if at and not is_in_list and not block.is_close:
            yield Text("")
        yield _drawn(block)


def _drawn(block: Block) -> RenderableType:
    drawn: RenderableType
    match block:
        case Paragraph(spans):
            drawn = words(spans)
        case Heading(spans, level):
            drawn = words(spans)
            drawn.stylize(Style(bold=True, underline=level == 1))
        case CodeBlock(text, language):
            drawn = Syntax(text, language or "text", theme="ansi_dark", word_wrap=True)
        case FormulaBlock(_, written):
            drawn = Text(written)
        case Rule():
            drawn = Line(style="dim")
        case Quote(inner):
            drawn = _Prefixed(draw(inner), Text("▌ ", _QUOTE), Text("▌ ", _QUOTE))
        case List(items):
            drawn = Group(*map(_point, items))
        case Table():
            drawn = _FittingTable(block)
    return drawn


def _point(item: Item) -> RenderableType:
    number = f" {item.number} " if item.number is not None else ""
    box_sign = _BOXES[item.is_checked]
    mark = f"{number or ' '}{box_sign}" if number or box_sign else " • "
    return _Prefixed(Group(*_below(item.blocks, is_in_list=True)), Text(mark, "bold"), Text(" " * len(mark)))


def words(spans: Spans) -> Text:
    """Return words with their formatting; an address stands in brackets behind what leads there."""
    text = Text(overflow="fold")
    for each in with_links_written(spans, lambda _: None):
        if isinstance(each, Formula):
            text.append(each.written)
        elif each.code:
            text.append(each.text, _CODE)
        else:
            said = f"||{each.text}||" if each.spoiler else each.text
            # None where it is off, so that it takes nothing from what stands around it.
            style = Style(
                bold=each.bold or None,
                italic=each.italic or None,
                underline=each.underline or None,
                strike=each.strike or None,
            )
            text.append(said, style)
    return text


@dataclass(frozen=True)
class _Prefixed:
    """Something with a sign before its first line, and another one before all others."""

    inner: RenderableType
    first: Text
    others: Text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width - self.first.cell_len
        is_narrow = width < _LEAST_WIDTH
        lines = console.render_lines(self.inner, options if is_narrow else options.update(width=width), pad=False)
        if is_narrow:
            yield self.first
        for number, line in enumerate(lines or [[]]):
            if not is_narrow:
                prefix = self.others if number else self.first
                yield from (each for each in console.render(prefix, options) if each.text != "\n")
            yield from line
            yield Segment.line()


@dataclass(frozen=True)
class _FittingTable:
    """A table where the terminal has room for its columns; else a list for each row, in which nothing is cut off."""

    table: Table

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        head, *rows = [[words(cell) for cell in row] for row in self.table.rows]
        columns = max(map(len, self.table.rows))
        if rows and columns * (_LEAST_COLUMN + 2) > options.max_width and not _fits([head, *rows], options.max_width):
            yield draw(as_lists(self.table))
            return
        grid = Grid(box=box.SIMPLE_HEAD, header_style="bold", pad_edge=False)
        for title, side in zip_longest([*head, *[Text()] * (columns - len(head))], self.table.aligned, fillvalue=""):
            grid.add_column(title, justify=side or "left", overflow="fold")  # type: ignore[arg-type] # one of the three
        for row in rows:
            grid.add_row(*row)
        yield grid


def _fits(rows: Iterable[list[Text]], width: int) -> bool:
    """Return whether every line of a table has room without being broken."""
    columns = zip_longest(*rows, fillvalue=Text())
    return sum(max(max(map(len, cell.plain.split("\n"))) + 2 for cell in column) for column in columns) <= width
