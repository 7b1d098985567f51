"""From a model's markdown to the blocks of a rich message: where a table, a formula or a long text gains by it.

Blocks are made here, and markdown is never given to Telegram to read: what a model writes could hold pictures to be
fetched, or buttons. Source: core.telegram.org/bots/api#rich-messages.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from botservice.core.formatted_text import (
    Block,
    Blocks,
    CodeBlock,
    Formula,
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
    plain_text,
)
from botservice.core.messages import storable
from transports.markdown.links import with_links_written
from transports.markdown.reading import read_whole
from transports.telegram.formatting import checked_link, is_list_of_sources, units

# What Telegram publishes as the limits of rich messages; quotations, items and rows count as blocks.
MAX_UNITS: Final = 32_768
MAX_BLOCKS: Final = 500
MAX_DEPTH: Final = 16
MAX_COLUMNS: Final = 20
_STYLES: Final = {
    "italic": "italic",
    "bold": "bold",
    "strike": "strikethrough",
    "underline": "underline",
    "spoiler": "spoiler",
}
_FORMULA: Final = "mathematical_expression"

RichText = Any  # a string, a list of such texts, or an object with a type. Source: core.telegram.org/bots/api#richtext
RichBlock = dict[str, Any]


def as_rich(markdown: str, *, is_long: bool) -> dict[str, Any] | None:
    """Return a text as a rich message, or None if it gains nothing, or is more than one can hold."""
    if len(markdown) > MAX_UNITS:
        return None
    tree = read_whole(storable(markdown))
    if not is_long and not any(map(_gains, tree)):
        return None
    blocks = [rich for block in _with_sources_folded(tree) for rich in _as_blocks(block)]
    return {"blocks": blocks} if _fits(blocks) else None


def _gains(block: Block) -> bool:
    """Return whether a block reads better in a rich message."""
    match block:
        case Table() | FormulaBlock():
            return True
        case Paragraph(spans) | Heading(spans):
            return any(isinstance(each, Formula) for each in spans)
        case Quote(blocks):
            return any(map(_gains, blocks))
        case List(items):
            return any(_gains(each) for item in items for each in item.blocks)
    return False


def _as_blocks(block: Block | RichBlock) -> Iterator[RichBlock]:
    """Yield what a block becomes; one that would show nothing is refused, and so left out."""
    match block:
        case dict():
            yield block
        case Paragraph(spans) if plain_text(spans).strip():
            yield {"type": "paragraph", "text": _text(spans)}
        case Heading(spans, level) if plain_text(spans).strip():
            yield {"type": "heading", "text": _text(spans), "size": level}
        case CodeBlock(text, language) if text.strip():
            yield {"type": "pre", "text": text} | ({"language": language} if language else {})
        case FormulaBlock(tex):
            yield {"type": _FORMULA, "expression": tex}
        case Rule():
            yield {"type": "divider"}
        case Quote(blocks) if inner := _all_blocks(blocks):
            yield {"type": "blockquote", "blocks": inner}
        case List(items):
            yield {"type": "list", "items": [_item(each) for each in items]}
        case Table(rows, aligned):
            cells = [
                [_cell(cell, aligned[place : place + 1], is_header=not number) for place, cell in enumerate(row)]
                for number, row in enumerate(rows)
            ]
            yield {"type": "table", "cells": cells, "is_bordered": True}


def _all_blocks(blocks: Blocks) -> list[RichBlock]:
    return [rich for block in blocks for rich in _as_blocks(block)]


def _item(item: Item) -> RichBlock:
    """Return a point of a list; its number is the one that was written."""
    blocks = _all_blocks(item.blocks) or [{"type": "paragraph", "text": " "}]
    point: RichBlock = {"blocks": blocks}
    if item.number is not None:
        point |= {"type": "1", "value": int(item.number[:-1])}
    if item.is_checked is not None:
        point["has_checkbox"] = True
    return point | ({"is_checked": True} if item.is_checked else {})


def _cell(spans: Spans, aligned: Sequence[str], *, is_header: bool) -> RichBlock:
    cell = {"text": _text(spans), "align": next(filter(None, aligned), "left"), "valign": "top"}
    return cell | ({"is_header": True} if is_header else {})


def _text(spans: Spans) -> RichText:
    """Return words with their formatting; plain words are a string."""
    parts: list[RichText] = []
    for each in with_links_written(spans, checked_link):
        part = _part(each) if isinstance(each, Span) else {"type": _FORMULA, "expression": each.tex}
        if isinstance(part, str) and parts and isinstance(parts[-1], str):
            parts[-1] += part
        else:
            parts.append(part)
    return parts[0] if len(parts) == 1 else parts or ""


def _part(span: Span) -> RichText:
    part: RichText = span.text
    if not span.text.strip():
        return part
    if span.code:
        part = {"type": "code", "text": part}
    for name, kind in _STYLES.items():
        if getattr(span, name):
            part = {"type": kind, "text": part}
    return part if span.link is None else {"type": "url", "text": part, "url": span.link}


def _with_sources_folded(tree: Blocks) -> list[Block | RichBlock]:
    """Return blocks with the pages that an answer rests on in a quotation that opens when it is pressed."""
    last = tree[-1] if tree else None
    if not isinstance(last, List) or not is_list_of_sources(last):
        return list(tree)
    lines: list[RichText] = []
    for item in last.items:
        first = item.blocks[0]
        said = _text(first.spans) if isinstance(first, Paragraph) else ""
        lines += ["\n" if lines else "", f"{item.number} ", *(said if isinstance(said, list) else [said])]
    return [*tree[:-1], {"type": "expandable_blockquote", "text": [each for each in lines if each != ""]}]


def _fits(blocks: Sequence[RichBlock]) -> bool:
    """Return whether Telegram takes so much in one message."""
    if not blocks:
        return False
    count, letters = 0, 0
    for value, depth in _walk(list(blocks), 1):
        if depth > MAX_DEPTH:
            return False
        if isinstance(value, str):
            letters += units(value)
        elif isinstance(value, Mapping) and ("type" in value or "blocks" in value):
            count += 1 + len(value.get("cells", ()))
            if any(len(row) > MAX_COLUMNS for row in value.get("cells", ())):
                return False
    return count <= MAX_BLOCKS and letters <= MAX_UNITS and len(json.dumps(blocks)) <= 4 * MAX_UNITS


def _walk(value: Any, depth: int) -> Iterator[tuple[Any, int]]:
    """Yield everything that a block holds, with how deep it stands."""
    if isinstance(value, Mapping):
        yield value, depth
        inner = [each for name, each in value.items() if name not in ("type", "align", "valign", "language")]
        for each in inner:
            yield from _walk(each, depth + 1)
    elif isinstance(value, list):
        for each in value:
            yield from _walk(each, depth)
    else:
        yield value, depth
