"""The blocks of an answer: its tables and charts between its words, or words where a workspace draws none.

People can sort and page through such a block. A table that would lose something, such as its links, stays words. A
chart is a block of code that is called "chart", with a line that says which, and a table with the numbers:

    ```chart
    bar: Visitors by month
    | Month | Website | Shop |
    |---|---|---|
    | May | 1,200 | 300 |
    ```

Nothing else becomes a chart. Where Slack shows none, people read the title and the table.
"""

import re
from dataclasses import dataclass, replace
from typing import Any, Final

from botservice.core.formatted_text import Blocks, CodeBlock, FormattedText, Heading, Inline, Span, Table, plain_text
from botservice.core.messages import is_blank
from transports.markdown.reading import read_markdown, read_whole
from transports.slack.refusals import Feature
from transports.slack.rendering import CHART, placed_blocks, render_words

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


_MAX_FIGURES: Final = 20  # with the words between them, so many blocks as a message holds next to its buttons


@dataclass(frozen=True, slots=True)
class Figure:
    """A table or a chart in a text.

    Attributes:
        begin, end: Where it stands.
        block: What Slack draws, or None if it draws nothing.
        words: What stands there where it does not.
    """

    begin: int
    end: int
    feature: Feature
    block: dict[str, Any] | None
    words: str


@dataclass(frozen=True, slots=True)
class SlackPage:
    """An answer as Markdown for Slack, with what of it can be drawn."""

    text: str
    figures: tuple[Figure, ...] = ()

    @property
    def needs(self) -> frozenset[Feature]:
        """What has to be drawn for it."""
        return frozenset(figure.feature for figure in self.figures if figure.block is not None)

    @property
    def words(self) -> str:
        """The text whose figures are words, as every workspace shows it."""
        return "".join(map(str, _parts(self.refusing(frozenset(Feature)), 0)))

    def refusing(self, refused: frozenset[Feature]) -> "SlackPage":
        """Return it without drawing what a workspace refuses."""
        shown = (replace(each, block=None) if each.feature in refused else each for each in self.figures)
        return replace(self, figures=tuple(shown))

    def before(self, end: int) -> "SlackPage":
        """Return its beginning, in which no figure is torn."""
        end = min([end, *(each.begin for each in self.figures if each.end > end)])
        text = self.text[:end].rstrip("\n")
        return SlackPage(text, tuple(each for each in self.figures if each.end <= len(text)))

    def blocks(self) -> list[dict[str, Any]]:
        """Return it as blocks, its figures drawn."""
        return [markdown(each.strip("\n")) if isinstance(each, str) else each for each in _parts(self, 0)]

    def chunks(self, begin: int = 0) -> list[dict[str, Any]]:
        """Return it from somewhere on as pieces of a stream, its figures drawn."""
        return [
            {"type": "markdown_text", "text": each} if isinstance(each, str) else {"type": "blocks", "blocks": [each]}
            for each in _parts(self, begin)
        ]


def _parts(page: SlackPage, begin: int) -> list[str | dict[str, Any]]:
    """Return what says a page from somewhere on: its words, and between them the blocks that are drawn."""
    parts: list[str | dict[str, Any]] = []
    at, words = begin, ""
    for figure in page.figures:
        if figure.begin < at:
            continue
        words += page.text[at : figure.begin]
        at = figure.end
        if figure.block is None:
            words += figure.words
            continue
        parts += [words, figure.block] if words.strip() else [figure.block]
        words = ""
    words += page.text[at:]
    return [*parts, words] if words.strip() or (words and not parts) else parts


def markdown(text: str) -> dict[str, Any]:
    """Return text as a block that takes markdown as models write it."""
    return {"type": "markdown", "text": text}


def suspect(needs: frozenset[Feature]) -> Feature:
    """Return what to blame where a form was refused: the rarest of what it needs."""
    return Feature.CHARTS if Feature.CHARTS in needs else Feature.TABLES


def read_page(text: str) -> SlackPage:
    """Return a whole answer; one of which no word would be seen stays as it was written."""
    blocks = read_whole(text)
    return SlackPage(render_words(text)) if is_blank(FormattedText(blocks).plain) else as_page(blocks)


def as_page(blocks: Blocks, *, is_growing: bool = False) -> SlackPage:
    """Return the blocks of an answer.

    Args:
        is_growing: More may come: what that may change of the last block is left out.
    """
    parts, figures, at = list[str](), list[Figure](), 0
    caption, room = "", MAX_TABLE_CHARACTERS
    for block, said in placed_blocks(blocks, is_growing=is_growing):
        end = at + len(said)
        if isinstance(block, Heading):
            caption = plain_text(block.spans).strip()
        elif isinstance(block, Table) and len(figures) < _MAX_FIGURES and (cells := read_cells(block)) is not None:
            table = table_block(cells, caption)
            if table is not None and characters_in(cells) <= room:
                room -= characters_in(cells)
                figures.append(Figure(at, end, Feature.TABLES, table, said))
        elif isinstance(block, CodeBlock) and block.language == CHART and len(figures) < _MAX_FIGURES:
            drawn = sum(each.feature is Feature.CHARTS and each.block is not None for each in figures)
            if (words := in_words(block.text)) is not None:
                chart = chart_block(block.text) if drawn < MAX_CHARTS else None
                figures.append(Figure(at, end, Feature.CHARTS, chart, words))
        parts.append(said)
        at = end
    return SlackPage("".join(parts), tuple(figures))
