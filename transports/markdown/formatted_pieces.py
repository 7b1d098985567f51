"""Cutting a formatted text into pieces that are short enough for a message."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, chain
from typing import Final

from botservice.core.formatted_text import (
    Block,
    Blocks,
    CodeBlock,
    FormattedText,
    FormulaBlock,
    Heading,
    Item,
    List,
    Paragraph,
    Quote,
    Rule,
    Span,
    Spans,
    Table,
)
from botservice.core.visible_text import begun_isolate
from transports.markdown.graphemes import last_cut
from transports.markdown.text_tables import as_lists

_MARKER: Final = 8  # what a point of a list takes beside its words
_LINES: Final = re.compile(r"\n")
_WORDS: Final = (_LINES, re.compile(r"(?<=[.!?…。！？])\s+"), re.compile(r"\s+"))  # noqa: RUF001 - sentences end in many scripts


def in_pieces(blocks: Blocks, limit: int) -> Iterator[Blocks]:
    """Yield blocks in pieces of at most so many characters, cut where a reader would; nothing is left out."""
    piece: list[Block] = []
    room = limit
    for block in _small(blocks, limit):
        length = _length(block)
        if piece and length > room:
            yield tuple(piece)
            piece, room = [], limit
        piece.append(block)
        room -= length
    if piece:
        yield tuple(piece)


def _length(block: Block) -> int:
    return len(FormattedText((block,)).plain) + 2


def _small(blocks: Blocks, limit: int) -> Iterator[Block]:
    """Yield blocks, those that are too long in parts of their kind."""
    for block in blocks:
        match block:
            case _ if _length(block) <= limit or isinstance(block, Rule):
                yield block
            case CodeBlock(text):
                yield from (replace(block, text=part.removesuffix("\n")) for part in _parts(text, limit - 2, (_LINES,)))
            case Paragraph(spans) | Heading(spans):
                yield from (Paragraph(part, is_close=True) for part in _cut(spans, limit - 2))
            case FormulaBlock(_, written):
                yield from (Paragraph((Span(part),), is_close=True) for part in _parts(written, limit - 2))
            case Quote(inner):
                yield from (Quote(piece) for piece in in_pieces(inner, limit - 2))
            case Table(rows):
                yield from _table(block, rows, limit)
            case List(items):
                yield from chain.from_iterable(_item(each, limit) for each in items)


def _item(item: Item, limit: int) -> Iterator[Block]:
    """Yield a point of a list; what has no room in it stands below."""
    first, *others = list(in_pieces(item.blocks, limit - _MARKER)) or [()]
    yield List((replace(item, blocks=first),), is_close=True)
    for each in others:
        yield from each


def _table(table: Table, rows: Sequence[tuple[Spans, ...]], limit: int) -> Iterator[Block]:
    """Yield a table in parts that repeat its head; a row that is too long by itself becomes a list."""
    head, held = rows[0], list[tuple[Spans, ...]]()
    for row in rows[1:]:
        if held and _length(replace(table, rows=(head, *held, row))) > limit:
            yield replace(table, rows=(head, *held))
            held = []
        if _length(alone := replace(table, rows=(head, row))) > limit:
            yield from _small(as_lists(alone), limit)
        else:
            held.append(row)
    if held or len(rows) == 1:
        yield replace(table, rows=(head, *held)) if held else Paragraph(sum(head, ()))


def _cut(spans: Spans, limit: int) -> Iterator[Spans]:
    """Yield words in parts, each with its formatting."""
    words = [each if isinstance(each, Span) else Span(each.written) for each in spans]
    text, begin = "".join(each.text for each in words), 0
    starts = list(accumulate((len(each.text) for each in words), initial=0))
    for part in _parts(text, limit):
        opening = begun_isolate(text, begin)
        end = begin + len(part) - len(opening)
        inside = (
            replace(each, text=each.text[max(0, begin - start) : max(0, end - start)])
            for each, start in zip(words, starts, strict=False)
        )
        kept = [each for each in inside if each.text]
        yield (Span(opening), *kept) if opening else tuple(kept)
        begin = end


def _parts(text: str, limit: int, borders: Sequence[re.Pattern[str]] = _WORDS) -> Iterator[str]:
    """Yield a text in parts that are all of it."""
    begin = 0
    while begin < len(text):
        opening = begun_isolate(text, begin)
        furthest = begin + limit - len(opening)
        end = len(text) if furthest >= len(text) else _border(text, begin, furthest, borders)
        yield opening + text[begin:end]
        begin = end


def _border(text: str, begin: int, furthest: int, borders: Sequence[re.Pattern[str]]) -> int:
    """Return where a part ends best."""
    for border in borders:
        ends = [found.end() for found in border.finditer(text, begin + (furthest - begin) // 3, furthest)]
        if ends:
            return ends[-1]
    return last_cut(text, begin, furthest)
