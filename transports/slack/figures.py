"""Where a text holds tables and charts, and what they are in a message: blocks of their own between its words."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

from markdown_it.token import Token

from transports.common.too_long_messages import is_too_intricate
from transports.markdown.parser import PARSER
from transports.slack import charts
from transports.slack.charts import MAX_TABLE_CHARACTERS, characters_in, read_cells, table_block
from transports.slack.formatting import markdown, may_hold_figures
from transports.slack.refusals import Feature

_MAX_FIGURES: Final = 20  # with the words between them, so many blocks as a message holds beside its buttons
# What stands at the end of a text that grows and may yet become a table or a chart.
_TABLE_BEGUN: Final = re.compile(r"(?:^|(?<=\n))(?:[ ]{0,3}\|[^\n]*(?:\n|\Z))+\Z")
_CHART_BEGUN: Final = re.compile(r"(?:^|(?<=\n))[ ]{0,3}`{1,3}[a-z]*\Z")
_NOTHING: Final[frozenset[Feature]] = frozenset()


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


def find_figures(text: str, refused: frozenset[Feature] = _NOTHING) -> list[Figure]:
    """Return the tables and charts of a text, in order."""
    if not may_hold_figures(text) or "\r" in text or is_too_intricate(text):
        return []
    found = _Finder(refused)
    for block in _blocks_of(text):
        found.look_at(block, text)
    return found.figures


def drawn(figures: Sequence[Figure]) -> frozenset[Feature]:
    """Return what has to be drawn for figures."""
    return frozenset(figure.feature for figure in figures if figure.block is not None)


def suspect(needs: frozenset[Feature]) -> Feature:
    """Return what to blame where a form was refused: the rarest of what it needs."""
    return Feature.CHARTS if Feature.CHARTS in needs else Feature.TABLES


def as_blocks(text: str, figures: Sequence[Figure]) -> list[dict[str, Any]]:
    """Return a text as blocks, its figures drawn."""
    return [markdown(each.strip("\n")) if isinstance(each, str) else each for each in _parts(text, 0, figures)]


def as_chunks(text: str, figures: Sequence[Figure], begin: int = 0) -> list[dict[str, Any]]:
    """Return a text from somewhere on as pieces of a stream, its figures drawn."""
    return [
        {"type": "markdown_text", "text": each} if isinstance(each, str) else {"type": "blocks", "blocks": [each]}
        for each in _parts(text, begin, figures)
    ]


def in_words(text: str, figures: Sequence[Figure]) -> str:
    """Return a text whose figures are words, as every workspace shows it."""
    said, at = "", 0
    for figure in figures:
        said, at = said + text[at : figure.begin] + figure.words, figure.end
    return said + text[at:]


def settled(text: str, refused: frozenset[Feature] = _NOTHING) -> str:
    """Return so much of a text that grows as holds no figure that is still being written."""
    if ("|" not in text and "`" not in text) or "\r" in text or is_too_intricate(text):
        return text
    last = next(reversed(list(_blocks_of(text))), None)
    is_table = last is not None and last.kind == "table_open"
    if last is not None and last.is_open(text) and not (is_table and Feature.TABLES in refused):
        return text[: last.begin]
    begun = _CHART_BEGUN.search(text)
    if begun is None and not is_table and Feature.TABLES not in refused:
        begun = _TABLE_BEGUN.search(text)
    is_code = last is not None and last.kind == "fence" and begun is not None and begun.start() < last.end
    return text if begun is None or is_code else text[: begun.start()]


@dataclass(frozen=True, slots=True)
class _Block:
    """A top block of markdown, with where it stands."""

    tokens: Sequence[Token]
    begin: int
    end: int

    @property
    def kind(self) -> str:
        return self.tokens[0].type

    @property
    def is_chart(self) -> bool:
        return self.kind == "fence" and self.tokens[0].info.strip() == charts.NAME

    def is_open(self, text: str) -> bool:
        """Return whether more of it may come."""
        if self.kind == "table_open":
            return not text[self.end :].strip() and not text.endswith("\n\n")
        if self.kind != "fence":
            return False
        lines = text[self.begin : self.end].rstrip("\n").split("\n")
        if len(lines) < 2:
            return charts.NAME.startswith(self.tokens[0].info.strip())
        is_closed = lines[-1].strip() == self.tokens[0].markup and text[: self.end].endswith("\n")
        return self.is_chart and not is_closed


class _Finder:
    """Looks for figures, within what a message holds of them."""

    def __init__(self, refused: frozenset[Feature]) -> None:
        self.figures: list[Figure] = []
        self._refused = refused
        self._caption = ""
        self._room = MAX_TABLE_CHARACTERS
        self._charts = 0

    def look_at(self, block: _Block, text: str) -> None:
        """Take a block, if it is a figure."""
        if block.kind == "heading_open":
            self._caption = block.tokens[1].content.strip("*_ ")
        elif len(self.figures) < _MAX_FIGURES and block.kind == "table_open" and Feature.TABLES not in self._refused:
            self._take_table(block, text)
        elif len(self.figures) < _MAX_FIGURES and block.is_chart:
            self._take_chart(block)

    def _take_table(self, block: _Block, text: str) -> None:
        cells = read_cells(block.tokens)
        table = None if cells is None else table_block(cells, self._caption)
        if cells is not None and table is not None and characters_in(cells) <= self._room:
            self._room -= characters_in(cells)
            self.figures.append(Figure(block.begin, block.end, Feature.TABLES, table, text[block.begin : block.end]))

    def _take_chart(self, block: _Block) -> None:
        content = block.tokens[0].content
        is_drawn = self._charts < charts.MAX_CHARTS and Feature.CHARTS not in self._refused
        words = charts.in_words(content)
        if words is None:
            return
        chart = charts.chart_block(content) if is_drawn else None
        self._charts += chart is not None
        self.figures.append(Figure(block.begin, block.end, Feature.CHARTS, chart, words))


def _blocks_of(text: str) -> Iterator[_Block]:
    """Yield the top blocks of a text."""
    tokens = PARSER.parse(text)
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    for at, token in enumerate(tokens):
        if token.level or not token.map or token.nesting < 0:
            continue
        end = next((n for n in range(at + 1, len(tokens)) if not tokens[n].level), at) if token.nesting else at
        begin, after = (min(starts[line], len(text)) for line in token.map)
        yield _Block(tokens[at : end + 1], begin, after)


def _parts(text: str, begin: int, figures: Sequence[Figure]) -> list[str | dict[str, Any]]:
    """Return what says a text from somewhere on: its words, and between them the blocks that are drawn."""
    parts: list[str | dict[str, Any]] = []
    at, words = begin, ""
    for figure in figures:
        if figure.begin < at:
            continue
        words += text[at : figure.begin]
        at = figure.end
        if figure.block is None:
            words += figure.words
            continue
        parts += [words, figure.block] if words.strip() else [figure.block]
        words = ""
    words += text[at:]
    return [*parts, words] if words.strip() or (words and not parts) else parts
