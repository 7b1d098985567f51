"""Tables of markdown as blocks that people can sort and page through, where that loses nothing."""

import re
from collections.abc import Sequence
from typing import Any, Final

from markdown_it.token import Token

# Source: docs.slack.dev, reference/block-kit/blocks/data-table-block.
MAX_ROWS: Final = 100
MAX_COLUMNS: Final = 20
MAX_TABLE_CHARACTERS: Final = 10_000
_PAGE_ROWS: Final = 20
_MAX_CAPTION: Final = 150
_EMPTY: Final = "-"
_PLAIN: Final = frozenset({"text", "code_inline", "strong_open", "strong_close", "em_open", "em_close", "softbreak"})
# "1,234.5", "-3 %", "€ 12": the sign and the unit are shown, the number is what a column is sorted by.
_NUMBER: Final = re.compile(r"[$€£¥]? ?([-+−]?(?:\d{1,3}(?:,\d{3})+|\d{1,15})(?:\.\d{1,9})?) ?[%$€£¥]?")  # noqa: RUF001 - people write it

Cells = list[list[str]]


def read_cells(tokens: Sequence[Token]) -> Cells | None:
    """Return the texts of a table's cells, row by row, or None if they hold more than text, such as links."""
    rows: Cells = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            children = token.children or []
            if any(each.type not in _PLAIN for each in children) or "://" in token.content:
                return None
            rows[-1].append("".join(each.content or " " * (each.type == "softbreak") for each in children).strip())
    return rows


def number_in(text: str) -> float | None:
    """Return the number that a cell shows, or None if it shows something else."""
    found = _NUMBER.fullmatch(text)
    return None if found is None else float(found[1].replace(",", "").replace("−", "-"))  # noqa: RUF001


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
    value = number_in(text) if is_number else None
    if value is None:
        return _text(text)
    return {"type": "raw_number", "value": int(value) if value.is_integer() else value, "text": text}


def _text(text: str) -> dict[str, Any]:
    return {"type": "raw_text", "text": text or _EMPTY}
