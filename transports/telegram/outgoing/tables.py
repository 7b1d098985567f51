"""Tables that a phone cannot show: as a list for each row, with links and all.

Telegram has no tables. A narrow one is shown in letters of one width; in a wide one the lines would break, and links
cannot stand in it at all. The letters of East Asia are twice as wide as others, which only this module reckons with.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pyromark

# What fits on a line of a phone, in letters of one width.
MAX_WIDTH = 42

_CONTAINERS = ("BlockQuote", "List", "Item")


@dataclass(slots=True)
class Table:
    """A table as it stands in the source, in bytes."""

    begin: int
    end: int
    rows: list[list[str]] = field(default_factory=list)
    has_links: bool = False

    @property
    def has_wide_letters(self) -> bool:
        """Whether columns are only straight where letters of twice the width count as two."""
        return any(_width(cell) > len(cell) for row in self.rows for cell in row)

    @property
    def width(self) -> int:
        """How wide it is in letters of one width."""
        columns = max(map(len, self.rows))
        return sum(
            3 + max(_width(row[place]) if place < len(row) else 0 for row in self.rows) for place in range(columns)
        )


def unroll_tables(markdown: str, options: pyromark.Options) -> str:
    """Return markdown with lists in the place of tables that cannot be read as such, and straight columns in others."""
    data = markdown.encode()
    parts, done = [], 0
    for table in _tables(data, markdown, options):
        if len(table.rows) > 1 and (table.has_links or table.width > MAX_WIDTH):
            parts += [data[done : table.begin], f"\n{_as_lists(table.rows)}\n".encode()]
            done = table.end
        elif table.has_wide_letters:
            parts += [data[done : table.begin], f"\n{_as_block(table.rows)}\n".encode()]
            done = table.end
    return b"".join([*parts, data[done:]]).decode()


def _tables(data: bytes, markdown: str, options: pyromark.Options) -> Iterator[Table]:
    table: Table | None = None
    depth = 0
    for event, place in pyromark.events_with_range(markdown, options=options):
        kind, name = next(iter(event.items())) if isinstance(event, dict) else ("", event)
        tag = next(iter(name)) if isinstance(name, dict) else name
        if tag in _CONTAINERS:
            depth += {"Start": 1, "End": -1}.get(kind, 0)
        elif tag == "Table":
            if kind == "Start" and not depth:
                table = Table(place["start"], place["end"])
            elif table is not None:
                yield table
                table = None
        elif table is not None and kind == "Start":
            if tag in ("TableHead", "TableRow"):
                table.rows.append([])
            elif tag == "TableCell":
                table.rows[-1].append(data[place["start"] : place["end"]].decode().strip())
            elif tag in ("Link", "Image"):
                table.has_links = True


def _as_lists(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    return "\n\n".join("\n".join(_as_list(head, row)) for row in body)


def _as_list(head: Sequence[str], row: Sequence[str]) -> Iterator[str]:
    """Yield a row as a line and the points below it; its first cell says what it is about."""
    first, *others = row
    plain = first.replace("**", "")
    yield f"**{plain}**" if plain else "—"
    for title, cell in zip(head[1:], others, strict=False):
        if cell:
            yield f"- {title}: {cell}" if title else f"- {cell}"


def _as_block(rows: Sequence[Sequence[str]]) -> str:
    """Return a table as code: every cell as wide as its column, in letters of one width."""
    plain = [[cell.replace("**", "").replace("`", "").replace("\\|", "|") for cell in row] for row in rows]
    columns = max(map(len, plain))
    filled = [row + [""] * (columns - len(row)) for row in plain]
    widths = [max(_width(row[place]) for row in filled) for place in range(columns)]
    head, *body = [
        " | ".join(cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in filled
    ]
    return "\n".join(["```", head, "-+-".join("-" * width for width in widths), *body, "```"])


def _width(text: str) -> int:
    return sum(1 + (unicodedata.east_asian_width(each) in "WF") for each in text)
