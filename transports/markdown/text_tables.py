"""Tables for screens that draw none: in letters of one width where a line has room, else as a list for each row.

The letters of East Asia are twice as wide as others, which only this module reckons with.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import replace
from itertools import zip_longest

from botservice.formatted_text import Blocks, Item, List, Paragraph, Span, Spans, Table, plain_text


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
    for row in rows:
        first, *others = row or ((),)
        named = (*head[0], Span(": ")) if plain_text(head[0]).strip() else ()
        blocks.append(Paragraph((*named, *_as_title(first))))
        items = [_point(title, cell) for title, cell in zip_longest(head[1:], others, fillvalue=())]
        shown = tuple(each for each in items if each is not None)
        if shown:
            blocks.append(List(shown, is_close=True))
    return tuple(blocks)


def _as_title(cell: Spans) -> Spans:
    if not plain_text(cell).strip():
        return (Span("—"),)
    return tuple(replace(each, bold=not each.code) if isinstance(each, Span) else each for each in cell)


def _point(title: Spans, cell: Spans) -> Item | None:
    """Return a cell with the title of its column; None where it is empty."""
    if not plain_text(cell).strip():
        return None
    return Item((Paragraph((*title, Span(": "), *cell) if plain_text(title).strip() else cell),))
