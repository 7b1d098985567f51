"""Cutting a formatted text into pieces that are short enough for a message."""

from collections.abc import Iterator
from dataclasses import replace

from botservice.core.formatted_text import Block, Blocks, CodeBlock, FormattedText, Item, List, Paragraph, Span
from botservice.core.visible_text import begun_isolate


def in_pieces(blocks: Blocks, limit: int) -> Iterator[Blocks]:
    """Yield blocks in pieces of at most so many characters, cut after lines where that goes; nothing is left out."""
    piece: list[Block] = []
    room = limit
    for block in _small(blocks, limit):
        length = len(FormattedText((block,)).plain) + 2
        if piece and length > room:
            yield tuple(piece)
            piece, room = [], limit
        piece.append(block)
        room -= length
    if piece:
        yield tuple(piece)


def _small(blocks: Blocks, limit: int) -> Iterator[Block]:
    """Yield blocks, those that are too long in parts of their kind."""
    for block in blocks:
        if len(FormattedText((block,)).plain) + 2 <= limit:
            yield block
            continue
        match block:
            case CodeBlock(text):
                yield from (replace(block, text=part) for part in _parts(text, limit - 2))
            case Paragraph(spans):
                words = (each for each in spans if isinstance(each, Span))
                cut = (replace(each, text=part) for each in words for part in _parts(each.text, limit - 2))
                yield from (Paragraph((each,), is_close=True) for each in cut)
            case List(items):
                for item in items:
                    yield from _item(item, limit)
            case _:
                yield block


def _item(item: Item, limit: int) -> Iterator[Block]:
    if len(FormattedText(item.blocks).plain) + 8 <= limit:
        yield List((item,), is_close=True)
    else:
        yield from _small(item.blocks, limit)


def _parts(text: str, limit: int) -> Iterator[str]:
    while len(text) > limit:
        end = text.rfind("\n", limit // 2, limit) + 1 or limit
        yield text[:end].removesuffix("\n")
        text = begun_isolate(text, end) + text[end:]
    if text:
        yield text
