r"""From a tree to Markdown as Slack's own parser reads it: of what is no mark, no sign can be taken for one.

Slack reads Markdown itself, as its streams and its blocks of it come, and reads it as CommonMark does, with tables
(docs.slack.dev, markdown-block: `\*` is an asterisk).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from botservice.core.formatted_text import (
    Block,
    Blocks,
    CodeBlock,
    Formula,
    FormulaBlock,
    Heading,
    Inline,
    Item,
    List,
    Paragraph,
    Quote,
    Rule,
    Span,
    Spans,
    Table,
)
from transports.markdown.links import write_marked
from transports.markdown.tags import ELEMENTS

MENTION: Final = r"<(?:[@#][A-Z0-9]+|!(?:channel|here|everyone|subteam\^[A-Z0-9]+))(?:\|[^<>\n]*)?>"  # that may be made
_SIGN: Final = re.compile(
    rf"(?P<mention>{MENTION})|[`\[\]]|[*_~](?!(?<=\s[*_~])\s)"
    r"|\\(?=[!-/:-@\[-`{-~\s]|\Z)|<(?=[\w!?/@#])|&(?=#?\w{1,32};)|!(?=\[)"
)
_BEGINS_BLOCK: Final = re.compile(r"#{1,6}(?:\s|\Z)|>|[-+*](?:\s|\Z)|[-=]+\s*\Z|[|:-][|:\s-]*\Z")
_NUMBER: Final = re.compile(r"(\d{1,9})([.)](?:\s|\Z))")
_SCHEMES: Final = ("http://", "https://", "mailto:", "tel:")
CHART: Final = "chart"  # what a block of code is called that is one
_MARKS: Final = {"bold": "**", "italic": "*", "strike": "~~"}
_BOXES: Final = {None: "", True: "[x] ", False: "[ ] "}
_SIDES: Final = {"left": ":---", "right": "---:", "center": ":---:", "": "---"}

# In the words at the end of a text that grows: what may become a mark, or other signs, with what comes next.
_OPEN: Final = re.compile(
    r"(?<![^\W_])[*_](?=[^\s*_])|(?:\*\*|__)(?=\S)|~~?(?=\S)|`|\[|\|\|"
    rf"|<(?=[^<>\n]*\Z|/?(?:{'|'.join(ELEMENTS)})\b)|(?:(?<![*_~<$\\!&|])[*_~<$\\!&|]+|&#?\w+)\Z|(?<!\S)(?=\S*\Z)\S*?://"
)
# A last line that may belong to another block with what comes next, such as a table.
_OPEN_LINE: Final = re.compile(
    r"(?:[ \t>]*+(?:[-+*=#~`_|:][-+*=#~`_|: \t]*|\d{1,9}[.)]?[ \t]*|)(?!\n)|[^\n|]*\|[^\n]*\n?)"
)
_OPEN_ESCAPE: Final = re.compile(r"\\\S?\Z")

_NO_NUMBER: Final = -1


@dataclass(slots=True)
class _Numbering:
    """The number that Slack would show before the next point; None if it takes any."""

    expected: int | None = None

    def takes(self, number: int) -> bool:
        """Return whether a point is shown with its number; another one is counted from there."""
        if self.expected not in (None, number):
            return False
        self.expected = number + 1
        return True


def settled_source(text: str) -> str:
    """Return a text that grows without an end whose meaning is not known yet."""
    text = _OPEN_ESCAPE.sub("", text)
    begin = text.rfind("\n") + 1
    formula = max(text.rfind("\\(", begin), text.rfind("\\[", begin))
    if formula >= 0 and not any(closing in text[formula:] for closing in ("\\)", "\\]")):
        text = text[:formula]
    while text and _OPEN_LINE.fullmatch(text, begin := text.rfind("\n", 0, -1) + 1):
        text = text[:begin]
    return text


def render_blocks(blocks: Blocks, *, is_growing: bool = False) -> str:
    """Return a tree as Markdown.

    Args:
        is_growing: More may come: what that may change of the last block is left out.
    """
    return "".join(said for _, said in placed_blocks(blocks, is_growing=is_growing))


def placed_blocks(
    blocks: Blocks, *, is_growing: bool = False, counts: bool = True
) -> Iterator[tuple[Block | None, str]]:
    """Yield the blocks of a tree with what each becomes, and what stands between them with None.

    Args:
        counts: Whether numbered points may be points; they are words where the list around them has become words.
    """
    before: Block | None = None
    numbering = _Numbering(None if counts else _NO_NUMBER)
    for at, block in enumerate(blocks):
        if not isinstance(block, List):
            numbering = _Numbering(None if counts else _NO_NUMBER)
        said = _block(block, numbering, is_growing=is_growing and at == len(blocks) - 1)
        if not said:
            continue
        if before is not None:
            yield None, "\n" if _is_close(before, block) else "\n\n"
        yield block, said
        before = block


def _is_close(before: Block, block: Block) -> bool:
    """Return whether a block may begin on the next line, and is not taken for a part of the one before."""
    if isinstance(before, Quote | List | Table) or isinstance(block, Table | Rule | FormulaBlock):
        return False
    return block.is_close


def _block(block: Block, numbering: _Numbering, *, is_growing: bool) -> str:
    said = ""
    match block:
        case Paragraph(spans):
            said = _lines(_settled(spans) if is_growing else spans)
        case Heading(spans, level):
            words = render_spans(_settled(spans) if is_growing else spans)
            said = f"{'#' * level} {words.replace(chr(10), ' ').strip()}"
        case CodeBlock(text, language):
            said = "" if is_growing and language == CHART else _code(text, language, is_growing=is_growing)
        case FormulaBlock(_, written):
            said = render_words(written)
        case Rule():
            said = "---"
        case Quote(inner):
            said = "\n".join(f"> {each}".rstrip() for each in render_blocks(inner, is_growing=is_growing).split("\n"))
        case Table(rows, aligned):
            said = "" if is_growing else _table(rows, aligned)
        case List(items):
            last = len(items) - 1
            points = (_item(each, numbering, is_growing=is_growing and at == last) for at, each in enumerate(items))
            said = "\n".join(points)
    return said


def _item(item: Item, numbering: _Numbering, *, is_growing: bool) -> str:
    """Return a point of a list; one whose number would be counted again becomes words, with all that is in it."""
    marker = f"{item.number} " if item.number is not None else "- "
    is_point = item.number is None or numbering.takes(int(item.number[:-1]))
    inner = "".join(said for _, said in placed_blocks(item.blocks, is_growing=is_growing, counts=is_point))
    if not is_point:
        is_on_same_line = not item.blocks or isinstance(item.blocks[0], Paragraph)
        return f"{marker[:-2]}\\{marker[-2]}{' ' if is_on_same_line else chr(10)}{_BOXES[item.is_checked]}{inner}"
    first, *rest = f"{marker}{_BOXES[item.is_checked]}{inner}".split("\n")
    return "\n".join([first.rstrip(), *(f"{' ' * len(marker)}{line}".rstrip() for line in rest)])


def _code(text: str, language: str, *, is_growing: bool) -> str:
    fence = _ticks(text, 3)
    if is_growing:  # what closes it may have begun
        before, _, last = text.rpartition("\n")
        text = text if last.strip(" `~") else before
        return f"{fence}{language}\n{text}" if text else ""
    return "\n".join([f"{fence}{language}", *([text] if text else []), fence])


def _ticks(text: str, least: int) -> str:
    """Return more ticks than stand in a row in a text."""
    return "`" * max(least, 1 + max((len(each) for each in re.findall(r"`+", text)), default=0))


def _table(rows: Sequence[Sequence[Spans]], aligned: Sequence[str]) -> str:
    """Return a table; what a row has beyond the head joins its last cell."""
    columns, lines = len(rows[0]), []
    for row in rows:
        cells = [render_spans(cell).replace("\n", " ").replace("|", "\\|") for cell in row]
        cells += [""] * (columns - len(cells))
        last = " \\| ".join(cells[columns - 1 :])
        lines.append(f"| {' | '.join([*cells[: columns - 1], last])} |")
    sides = "|".join(_SIDES[side] for side in [*aligned, *[""] * columns][:columns])
    return "\n".join([lines[0], f"|{sides}|", *lines[1:]])


def render_words(text: str) -> str:
    """Return a text as it is."""
    return _lines((Span(text),))


def _lines(spans: Spans) -> str:
    """Return words of which no line begins another block."""
    lines = (line.strip(" \t") for line in render_spans(spans).split("\n"))
    escaped = (f"\\{line}" if _BEGINS_BLOCK.match(line) else line for line in lines)
    return "\n".join(_NUMBER.sub(r"\1\\\2", line, count=1) if _NUMBER.match(line) else line for line in escaped)


def render_spans(spans: Spans) -> str:
    """Return words with the marks around them."""
    return write_marked(spans, _checked_link, _marks, _words)


def _checked_link(address: str) -> str | None:
    return address if address.strip().lower().startswith(_SCHEMES) else None


def _marks(span: Span) -> list[tuple[str, str]]:
    if not span.text:
        return []
    styles = [(mark, mark) for name, mark in _MARKS.items() if getattr(span, name)]
    if span.link is None or span.link == span.text:
        return styles
    target = span.link.replace("<", "%3C").replace(">", "%3E").replace("\n", "%0A")
    return [("[", f"](<{target}>)" if re.search(r"[\s()\\]", target) else f"]({target})"), *styles]


def _words(each: Inline) -> str:
    if isinstance(each, Formula):
        return escape(each.written)
    if each.code:
        text = each.text.replace("\n", " ")
        is_padded = "`" in (text[:1], text[-1:]) or (text[:1] == text[-1:] == " " and text.strip() != "")
        space, ticks = " " * is_padded, _ticks(text, 1)
        return f"{ticks}{space}{text}{space}{ticks}"
    if each.link is not None and each.link == each.text:
        return each.text
    return f"||{escape(each.text)}||" if each.spoiler and each.text else escape(each.text)


def escape(text: str) -> str:
    """Return words in which no sign is a mark."""
    return _SIGN.sub(lambda found: found["mention"] or (f"\\{found[0]}" if not found[0].isspace() else found[0]), text)


def _settled(spans: Spans) -> Spans:
    """Return so much of words that grow as nothing that comes can change."""
    kept: list[Inline] = []
    for each in spans:
        if isinstance(each, Span) and not each.code and (found := _OPEN.search(each.text)) is not None:
            kept += [] if _marks(each) else [replace(each, text=each.text[: found.start()])]
            break
        kept.append(each)
    return tuple(kept)
