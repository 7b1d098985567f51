"""Tables and charts as blocks that people can sort and page through, where that loses nothing.

A chart is a block of code that is called "chart", with a line that says which, and a table with the numbers:

    ```chart
    bar: Visitors by month
    | Month | Website | Shop |
    |---|---|---|
    | May | 1,200 | 300 |
    ```

Nothing else becomes a chart. Where Slack shows none, people read the title and the table.
"""

import re
from typing import Any, Final

from botservice.core.formatted_text import Inline, Span, Table, plain_text
from transports.markdown.reading import read_markdown

# Source: docs.slack.dev, reference/block-kit/blocks/data-table-block.
MAX_ROWS: Final = 100
MAX_COLUMNS: Final = 20
MAX_TABLE_CHARACTERS: Final = 10_000
_PAGE_ROWS: Final = 20
_MAX_CAPTION: Final = 150
_EMPTY: Final = "-"
# "1,234.5", "-3 %", "€ 12": the sign and the unit are shown, the number is what a column is sorted by.
_NUMBER: Final = re.compile(r"[$€£¥]? ?([-+−]?(?:\d{1,3}(?:,\d{3})+|\d{1,15})(?:\.\d{1,9})?) ?[%$€£¥]?")  # noqa: RUF001 - people write it

Cells = list[list[str]]

NAME: Final = "chart"
# Source: docs.slack.dev, reference/block-kit/blocks/data-visualization-block.
MAX_CHARTS: Final = 2
_MAX_SERIES: Final = 6
_MAX_CATEGORIES: Final = 20
_MAX_TITLE: Final = 50
_MAX_LABEL: Final = 20
_HEAD: Final = re.compile(r"(pie|bar|line|area):([^\n]+)", re.IGNORECASE)


def read_cells(table: Table) -> Cells | None:
    """Return the texts of a table's cells, row by row, or None if they hold more than text, such as links."""
    if not all(_is_plain(each) for row in table.rows for cell in row for each in cell):
        return None
    return [[plain_text(cell).replace("\n", " ").strip() for cell in row] for row in table.rows]


def _is_plain(each: Inline) -> bool:
    return isinstance(each, Span) and not (each.link or each.strike or each.spoiler) and "://" not in each.text


def number_in(text: str) -> float | None:
    """Return the number that a cell shows, whole where it is, or None if it shows something else."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        return None
    number = float(found[1].replace(",", "").replace("−", "-"))  # noqa: RUF001
    return int(number) if number.is_integer() else number


def table_block(cells: Cells, caption: str) -> dict[str, Any] | None:
    """Return a table as a block, or None if Slack would not take it."""
    if not 2 <= len(cells) <= MAX_ROWS + 1 or not 1 <= len(cells[0]) <= MAX_COLUMNS:
        return None
    if any(len(row) != len(cells[0]) for row in cells) or characters_in(cells) > MAX_TABLE_CHARACTERS:
        return None
    head, *rows = cells
    numeric = [all(number_in(row[column]) is not None for row in rows) for column in range(len(head))]
    return {
        "type": "data_table",
        "caption": (caption or ", ".join(filter(None, head)) or _EMPTY)[:_MAX_CAPTION],
        "page_size": min(len(rows), _PAGE_ROWS),
        "rows": [
            [_text(cell) for cell in head],
            *([_cell(cell, is_number=numeric[at]) for at, cell in enumerate(row)] for row in rows),
        ],
    }


def characters_in(cells: Cells) -> int:
    """Return how many characters a table's cells have, as Slack counts them."""
    return sum(len(cell or _EMPTY) for row in cells for cell in row)


def _cell(text: str, *, is_number: bool) -> dict[str, Any]:
    return {"type": "raw_number", "value": number_in(text), "text": text} if is_number else _text(text)


def _text(text: str) -> dict[str, Any]:
    return {"type": "raw_text", "text": text or _EMPTY}


def in_words(content: str) -> str | None:
    """Return what a chart says without being drawn, its title and its table, or None if it is no chart."""
    found, rest = _read_head(content)
    return None if found is None else f"**{found[1]}**\n\n{rest.strip()}\n"


def _read_head(content: str) -> tuple[tuple[str, str] | None, str]:
    """Return what kind of chart is called what, and the rest, or None if the first line does not say so."""
    head, _, rest = content.partition("\n")
    found = _HEAD.fullmatch(head.strip())
    title = "" if found is None else found[2].strip()
    return (None if found is None or not title else (found[1].lower(), title)), rest


def chart_block(content: str) -> dict[str, Any] | None:
    """Return a chart as a block, or None if it is not one, or Slack would not take it."""
    found, rest = _read_head(content)
    blocks = read_markdown(rest.strip())
    cells = read_cells(blocks[0]) if len(blocks) == 1 and isinstance(blocks[0], Table) else None
    if found is None or not cells or len(found[1]) > _MAX_TITLE:
        return None
    kind, title = found
    chart = _pie(cells) if kind == "pie" else _with_axes(kind, cells)
    return None if chart is None else {"type": "data_visualization", "title": title, "chart": chart}


def _pie(cells: Cells) -> dict[str, Any] | None:
    points = _points(cells, 1)
    if len(cells[0]) != 2 or points is None or len(points) > _MAX_SERIES or any(each["value"] <= 0 for each in points):
        return None
    return {"type": "pie", "segments": points}


def _with_axes(kind: str, cells: Cells) -> dict[str, Any] | None:
    names, series = cells[0][1:], [_points(cells, column) for column in range(1, len(cells[0]))]
    if not 1 <= len(names) <= _MAX_SERIES or len(set(names)) != len(names) or not all(map(_is_label, names)):
        return None
    if any(points is None for points in series):
        return None
    return {
        "type": kind,
        "series": [{"name": name, "data": points} for name, points in zip(names, series, strict=True)],
        "axis_config": {"categories": [row[0] for row in cells[1:]], "x_label": cells[0][0][:_MAX_TITLE]},
    }


def _points(cells: Cells, column: int) -> list[dict[str, Any]] | None:
    """Return the numbers of a column with what they are called, or None if they are not all numbers."""
    rows = cells[1:]
    labels = [row[0] for row in rows]
    if not 1 <= len(rows) <= _MAX_CATEGORIES or not all(map(_is_label, labels)) or len(set(labels)) != len(labels):
        return None
    points: list[dict[str, Any]] = []
    for row in rows:
        value = number_in(row[column]) if column < len(row) else None
        if value is None:
            return None
        points.append({"label": row[0], "value": value})
    return points


def _is_label(text: str) -> bool:
    return 1 <= len(text) <= _MAX_LABEL
