"""Cutting a tree into pieces that a platform takes, where a reader would: between blocks, lines, sentences, words."""

import re
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, pairwise
from typing import Final

import regex

from botservice.core.formatted_text import (
    Block,
    Blocks,
    CodeBlock,
    FormattedText,
    FormulaBlock,
    Heading,
    Inline,
    List,
    Paragraph,
    Quote,
    Span,
    Spans,
    Table,
)
from botservice.core.visible_text import begun_isolate
from transports.markdown.text_tables import as_lists

_CHARACTER: Final = regex.compile(r"\X")
_LONGEST: Final = 64  # code points of one character; a longer one is torn


def last_cut(text: str, begin: int, end: int) -> int:
    """Return the last place up to end, and behind begin, that tears no character; end if there is none.

    Args:
        begin: Where a character begins.
    """
    if end >= len(text) or text[begin : end + 1].isascii():
        return min(end, len(text))
    cut = begin
    for found in _CHARACTER.finditer(text, begin, min(len(text), end + _LONGEST)):
        if found.end() > end:
            break
        cut = found.end()
    return cut if cut > begin else end


Size = Callable[[Blocks], int]
"""Returns how much blocks take in a message, in the platform's own measure; at least one for each character."""

_LEAST_FULL: Final = 0.4  # a fuller piece ends rather than that a block is cut
_GAP: Final = 2  # what stands between two blocks
_LINES: Final = re.compile(r"\n")
_SENTENCES: Final = re.compile(r"[.!?…؟۔।][\"'”’)\]»]*\s+|[。！？]")  # noqa: RUF001 - sentences end in many scripts
_WORDS: Final = (_LINES, _SENTENCES, re.compile(r"\s+"))


def plain_size(blocks: Blocks) -> int:
    """Return how many characters the words of blocks have."""
    return len(FormattedText(blocks).plain)


def in_pieces(blocks: Blocks, limit: int, size: Size = plain_size) -> Iterator[Blocks]:
    """Yield blocks in pieces that take at most so much each; nothing is left out."""
    waiting, piece, room = deque(blocks), list[Block](), limit
    while waiting:
        block = waiting.popleft()
        least = sum(map(_letters, block.spans)) if isinstance(block, Paragraph) else 0
        taken = least if least > limit else size((block,))
        if taken <= room:
            piece.append(block)
            room -= taken + _GAP
            continue
        is_begun = room < limit * (1 - _LEAST_FULL)
        is_whole = taken <= limit and (is_begun or isinstance(block, CodeBlock | FormulaBlock))
        if not is_whole and (not is_begun or not piece) and (parts := _cut(block, room, size)) != [block]:
            waiting.extendleft(reversed(parts))
            continue
        if not piece:  # it cannot be cut
            yield (block,)
            continue
        waiting.appendleft(block)
        while len(piece) > 1 and size(tuple(piece)) > limit:  # together, blocks may take more than each by itself
            waiting.appendleft(piece.pop())
        yield tuple(piece)
        piece, room = [], limit
    while len(piece) > 1 and size(tuple(piece)) > limit:
        waiting.appendleft(piece.pop())
    if piece:
        yield tuple(piece)
    if waiting:
        yield from in_pieces(tuple(waiting), limit, size)


def _cut(block: Block, room: int, size: Size) -> list[Block]:
    """Return a block in parts, of which the first has room; one that cannot be cut is left as it is."""
    parts: list[Block] = [block]
    match block:
        case Paragraph(spans) | Heading(spans):
            parts = [Paragraph(each, is_close=True) for each in _cut_spans(spans, room, size)]
        case FormulaBlock(_, written):
            parts = [Paragraph((Span(written),), is_close=True)]
        case CodeBlock(text):
            end = _furthest(len(text), room, lambda end: size((replace(block, text=text[:end]),)))
            end = _border(text, end, (_LINES,))
            parts = [replace(block, text=text[:end].removesuffix("\n")), replace(block, text=text[end:])]
        case Quote(inner):
            parts = [Quote(each) for each in in_pieces(inner, room, lambda each: size((Quote(each),)))]
        case Table(rows):
            parts = list(_cut_table(block, rows, room, size))
        case List([item]):
            pieces = in_pieces(item.blocks, room, lambda each: size((List((replace(item, blocks=each),)),)))
            first = next(pieces, ())
            below = [each for piece in pieces for each in piece]
            parts = [List((replace(item, blocks=first),), is_close=True), *below] if below else [block]
        case List(items):
            parts = [List((each,), is_close=True) for each in items]
    return parts


def _cut_table(table: Table, rows: Sequence[tuple[Spans, ...]], room: int, size: Size) -> Iterator[Block]:
    """Yield a table in parts that repeat its head; a row that is too long by itself becomes a list."""
    head, body = rows[0], rows[1:]

    def part(count: int) -> Table:
        return replace(table, rows=(head, *body[:count]))

    if not body:
        yield Paragraph(sum(head, ()))
    while body:
        count = _furthest(len(body), room, lambda count: size((part(count),)))
        if count > 1 or size((part(1),)) <= room:
            yield part(count)
        else:
            yield from as_lists(part(1))
        body = body[count:]


def _cut_spans(spans: Spans, room: int, size: Size) -> list[Spans]:
    """Return words in two parts with their formatting, of which the first has room; no link or code is torn."""
    words = [each if isinstance(each, Span) else Span(each.written) for each in spans]
    text = "".join(each.text for each in words)
    places = list(accumulate((len(each.text) for each in words), initial=0))
    within = [(*stretch, each) for stretch, each in zip(pairwise(places), words, strict=True)]

    def part(begin: int, end: int) -> Spans:
        opening: list[Inline] = [Span(opened)] if (opened := begun_isolate(text, begin)) else []
        first = max(0, bisect_right(places, begin) - 1)
        found = within[first : bisect_left(places, end)]
        cut = (
            each if begin <= at and last <= end else replace(each, text=each.text[max(0, begin - at) : end - at])
            for at, last, each in found
        )
        return (*opening, *(each for each in cut if each.text))

    end = _furthest(len(text), room, lambda end: size((Paragraph(part(0, end)),)))
    whole = [(begin, end) for begin, end, each in within if each.code or each.link is not None]
    end = _border(text, end, _WORDS, whole)
    return [part(0, end), part(end, len(text))] if 0 < end < len(text) else [spans]


def _letters(span: Inline) -> int:
    return len(span.text) if isinstance(span, Span) else 0


def _furthest(length: int, room: int, size: Callable[[int], int]) -> int:
    """Return a place up to which a text has room, about the furthest; at least the first."""
    end = max(1, min(length, room))
    while end > 1 and (taken := size(end)) > room:
        end = max(1, min(end - 1, end * room // taken))
    return end


def _border(text: str, furthest: int, borders: Sequence[re.Pattern[str]], whole: Sequence[tuple[int, int]] = ()) -> int:
    """Return the best place to cut a text before the furthest one."""
    if furthest >= len(text):
        return furthest
    for border in borders:
        ends = [min(found.end(), furthest) for found in border.finditer(text, int(furthest * _LEAST_FULL), furthest)]
        for end in reversed(ends):
            if end and not any(first < end < last for first, last in whole):
                return end
    return last_cut(text, 0, furthest)
