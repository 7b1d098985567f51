"""Tables and charts of an answer: blocks of their own between its words, or words where a workspace draws none."""

from dataclasses import dataclass, replace
from typing import Any, Final

from botservice.core.formatted_text import Block, Blocks, CodeBlock, FormattedText, Heading, Table, plain_text
from botservice.core.messages import is_blank
from transports.markdown.reading import read_whole
from transports.slack import charts
from transports.slack.charts import MAX_TABLE_CHARACTERS, characters_in, read_cells, table_block
from transports.slack.refusals import Feature
from transports.slack.rendering import placed_blocks, render_words

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
    finder, parts, at = _Finder(), list[str](), 0
    for block, said in placed_blocks(blocks, is_growing=is_growing):
        finder.look_at(block, said, at)
        parts.append(said)
        at += len(said)
    return SlackPage("".join(parts), tuple(finder.figures))


class _Finder:
    """Looks for figures, within what a message holds of them."""

    def __init__(self) -> None:
        self.figures: list[Figure] = []
        self._caption = ""
        self._room = MAX_TABLE_CHARACTERS
        self._charts = 0

    def look_at(self, block: Block | None, said: str, begin: int) -> None:
        """Take a block, if it is a figure."""
        end = begin + len(said)
        if isinstance(block, Heading):
            self._caption = plain_text(block.spans).strip()
        elif len(self.figures) >= _MAX_FIGURES:
            return
        elif isinstance(block, Table):
            cells = read_cells(block)
            table = None if cells is None else table_block(cells, self._caption)
            if cells is not None and table is not None and characters_in(cells) <= self._room:
                self._room -= characters_in(cells)
                self.figures.append(Figure(begin, end, Feature.TABLES, table, said))
        elif isinstance(block, CodeBlock) and block.language == charts.NAME:
            words = charts.in_words(block.text)
            if words is not None:
                chart = charts.chart_block(block.text) if self._charts < charts.MAX_CHARTS else None
                self._charts += chart is not None
                self.figures.append(Figure(begin, end, Feature.CHARTS, chart, words))
