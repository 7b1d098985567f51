"""Tables for screens that draw none: in letters of one width where a line has room, else as a list for each row.

The letters of East Asia are twice as wide as others, which only this module reckons with.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from botservice.core.formatted_text import Blocks, Item, List, Paragraph, Span, Spans, Table, plain_text


def width_of(text: str) -> int:
    """Return how wide a text is in letters of one width."""
    return sum(1 + (unicodedata.east_asian_width(each) in "WF") for each in text)


def as_columns(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as lines, every cell as wide as its column."""
    columns = max(map(len, rows))
    filled = [[" ".join(cell.split("\n")) for cell in row] + [""] * (columns - len(row)) for row in rows]
    widths = [max(width_of(row[at]) for row in filled) for at in range(columns)]
    head, *body = [
        " | ".join(cell + " " * (width - width_of(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in filled
    ]
    return "\n".join([head, "-+-".join("-" * width for width in widths), *body])


def as_lists(table: Table) -> Blocks:
    """Return a table as words: each row as what its first cell says, and the points below it."""
    head, *rows = table.rows
    blocks: list[Paragraph | List] = []
    untold = {at for at in range(1, len(head)) if not any(row[at : at + 1] and has_words(row[at]) for row in rows)}
    for row in rows:
        first, *others = row or ((),)
        named = (*head[0], Span(": ")) if has_words(head[0]) else ()
        blocks.append(Paragraph((*named, *_as_title(first))))
        columns = enumerate(zip_longest(head[1:], others, fillvalue=()), 1)
        items = [_point(title, cell) for at, (title, cell) in columns if has_words(cell) or at in untold]
        untold = set()  # the title of a column without any words is said once
        if items:
            blocks.append(List(tuple(items), is_close=True))
    return tuple(blocks)


def has_words(cell: Spans) -> bool:
    """Return whether there is anything to read in a cell."""
    return plain_text(cell).strip() != ""


def _as_title(cell: Spans) -> Spans:
    if not has_words(cell):
        return (Span("—"),)
    return tuple(replace(each, bold=not each.code) if isinstance(each, Span) else each for each in cell)


def _point(title: Spans, cell: Spans) -> Item:
    """Return a cell with the title of its column."""
    return Item((Paragraph((*title, Span(": "), *cell) if has_words(title) else cell),))
