"""A text with its formatting, as a tree of blocks that hold spans: what every platform's renderer takes.

What stands in a span is shown as it is, sign by sign: nothing in it is markup.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, TypeAlias


@dataclass(frozen=True, slots=True)
class Span:
    """Words with one formatting; a line break in them is one that people see.

    Attributes:
        is_command: Whether it begins with a command of the chat, such as /forget, which a platform may write otherwise.
        at: The time that the words name, in ISO 8601, so that a platform can show it by each reader's clock.
    """

    text: str
    bold: bool = False
    italic: bool = False
    code: bool = False
    strike: bool = False
    underline: bool = False
    spoiler: bool = False
    link: str | None = None
    is_command: bool = False
    at: str | None = None


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula within a line.

    Attributes:
        tex: What stands between its signs.
        written: All of it, with its signs.
    """

    tex: str
    written: str


Inline: TypeAlias = Span | Formula
Spans: TypeAlias = tuple[Inline, ...]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """Words that belong together.

    Attributes:
        is_close: Whether no empty line parts it from what stands before it; so of every block.
    """

    spans: Spans
    is_close: bool = False


@dataclass(frozen=True, slots=True)
class Heading:
    """A title of a level from 1 to 6."""

    spans: Spans
    level: int
    is_close: bool = False


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """Lines of code, without the end of the last one; the language is empty where none is named."""

    text: str
    language: str = ""
    is_close: bool = False


@dataclass(frozen=True, slots=True)
class Quote:
    """What another person said."""

    blocks: tuple["Block", ...]
    is_close: bool = False


@dataclass(frozen=True, slots=True)
class Item:
    """A point of a list.

    Attributes:
        number: The number with its sign as it was written, such as "7."; None for a point without one.
        is_checked: Whether its box is ticked; None where it has none.
    """

    blocks: tuple["Block", ...]
    number: str | None = None
    is_checked: bool | None = None


@dataclass(frozen=True, slots=True)
class List:
    """Points below each other."""

    items: tuple[Item, ...]
    is_close: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells; the first row is the head, and rows may differ in length.

    Attributes:
        aligned: "left", "center", "right" or "" for each column of the head.
    """

    rows: tuple[tuple[Spans, ...], ...]
    aligned: tuple[str, ...]
    is_close: bool = False


@dataclass(frozen=True, slots=True)
class FormulaBlock:
    """A formula on lines of its own; `written` has its signs."""

    tex: str
    written: str
    is_close: bool = False


@dataclass(frozen=True, slots=True)
class Rule:
    """A line across."""

    is_close: bool = False


Block: TypeAlias = Paragraph | Heading | CodeBlock | Quote | List | Table | FormulaBlock | Rule
Blocks: TypeAlias = tuple[Block, ...]

_KINDS: Final[Mapping[str, type]] = {
    each.__name__: each
    for each in (Formula, Paragraph, Heading, CodeBlock, Quote, Item, List, Table, FormulaBlock, Rule)
}


@dataclass(frozen=True, slots=True)
class FormattedText:
    """A text that the service itself writes, with its formatting."""

    blocks: Blocks = ()

    @property
    def plain(self) -> str:
        """The words alone, as they are kept and searched."""
        return _below(self.blocks)

    def to_json(self) -> list[Any]:
        """Return it as values that JSON has; `from_json` reads them."""
        return [_to_json(each) for each in self.blocks]

    @classmethod
    def from_json(cls, stored: Iterable[Any]) -> "FormattedText":
        """Read what `to_json` returned, in this release or in a later one."""
        return cls(_blocks_from_json(stored))


def plain_text(spans: Spans) -> str:
    """Return the words of spans; a formula is its TeX."""
    return "".join(each.text if isinstance(each, Span) else each.tex for each in spans)


def _below(blocks: Blocks) -> str:
    parts: list[str] = []
    for at, block in enumerate(blocks):
        parts.extend(("" if not at else "\n" if block.is_close else "\n\n", _plain(block)))
    return "".join(parts)


def _plain(block: Block) -> str:
    match block:
        case Paragraph(spans) | Heading(spans):
            return plain_text(spans)
        case CodeBlock(text) | FormulaBlock(text):
            return text
        case Quote(blocks):
            return _below(blocks)
        case List(items):
            return "\n".join(f"{item.number or '-'} {_below_point(item.blocks)}" for item in items)
        case Table(rows):
            return "\n".join(" | ".join(plain_text(cell) for cell in row) for row in rows)
        case Rule():
            return "———"


def _below_point(blocks: Blocks) -> str:
    """Return the words of a point of a list; a list in it is indented."""
    parts = (_plain(each).replace("\n", "\n  ") if isinstance(each, List) else _plain(each) for each in blocks)
    return "\n  ".join(parts)


def _to_json(value: Any) -> Any:
    """Return a value for JSON: a span names no kind, and what is as by default is left out."""
    if isinstance(value, tuple):
        return [_to_json(each) for each in value]
    if value is None or isinstance(value, str | bool | int):
        return value
    named = ((each, getattr(value, each.name)) for each in fields(value))
    kept = {each.name: _to_json(held) for each, held in named if held is not each.default}
    return kept if isinstance(value, Span) else {"kind": type(value).__name__, **kept}


def _from_json(stored: Any) -> Any:
    """Read a value that `_to_json` returned, in this release or in a later one with kinds and fields of its own."""
    if isinstance(stored, list):
        return tuple(_from_json(each) for each in stored)
    if not isinstance(stored, Mapping):
        return stored
    kind = _KINDS.get(stored["kind"]) if "kind" in stored else Span
    if kind is None:
        return _unknown(stored)
    known = {each.name for each in fields(kind)} & stored.keys()
    return kind(**{name: (_blocks_from_json if name == "blocks" else _from_json)(stored[name]) for name in known})


def _blocks_from_json(stored: Iterable[Any]) -> tuple[Any, ...]:
    read = (_from_json(each) for each in stored)
    return tuple(Paragraph((each,)) if isinstance(each, Span) else each for each in read)


def _unknown(stored: Mapping[str, Any]) -> Any:
    """Return a kind of a later release as the words that it holds."""
    if "blocks" in stored:
        return Quote(_blocks_from_json(stored["blocks"]))
    if "spans" in stored:
        return Paragraph(_from_json(stored["spans"]))
    return Span(str(stored.get("text") or stored.get("written") or ""))
