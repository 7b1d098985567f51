"""Cutting a long text where a reader would: between blocks and paragraphs, then lines, sentences, words."""
# ruff: noqa: RUF001 - sentences end in many scripts

import re
from collections.abc import Callable, Iterator
from dataclasses import replace

from botservice.core.visible_text import begun_isolate
from transports.markdown.graphemes import last_cut
from transports.telegram.entities import Entity, Rich

# Cuts at the first kind of border that leaves a piece at least this full, so that pieces do not become crumbs.
_LEAST_FULL = 0.4
_PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")
_LINE = re.compile(r"\n")
_SENTENCE = re.compile(r"[.!?…؟۔।][\"'”’)\]»]*\s+|[。！？]")
_BLANK = re.compile(r"\s+")
_WHOLE = frozenset({"text_link", "code", "custom_emoji"})
BLANKS = " \n\t\u00a0\u00ad\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2800\u3164\ufeff"


def units(text: str) -> int:
    """Return the length in UTF-16 code units, as Telegram counts."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def split(rich: Rich, *, max_units: int, max_entities: int) -> Iterator[Rich]:
    """Yield rich in pieces that Telegram takes; only blanks between them are left out.

    Args:
        max_units: Longest piece, in UTF-16 code units.
        max_entities: Most entities in a piece.
    """
    begin = _skip_blanks(rich, 0)
    while begin < len(rich.text):
        end = _furthest(rich, begin, max_units, max_entities)
        if end < len(rich.text):
            end = _border(rich, begin, end, lambda block: units(rich.text[block.begin : block.end]) <= max_units)
        piece = cut(rich, begin, end)
        if piece.text.strip(BLANKS):  # what shows nothing is refused
            yield piece
        begin = _skip_blanks(rich, end)


def cut(rich: Rich, begin: int, end: int) -> Rich:
    """Return a stretch of rich, without blanks at its end, with the entities that touch it."""
    opening = begun_isolate(rich.text, begin)
    text = opening + rich.text[begin:end].rstrip()
    entities = []
    for each in rich.entities:
        first = max(each.begin - begin, 0) and each.begin - begin + len(opening)
        last = min(each.end - begin + len(opening), len(text))
        if first < last and text[first:last].strip():
            entities.append(replace(each, begin=first, end=last))
    return Rich(text, tuple(entities))


def _skip_blanks(rich: Rich, place: int) -> int:
    """Return where the next piece begins; the indentation of code stays."""
    text = rich.text
    begin = place
    while begin < len(text) and text[begin].isspace():
        begin += 1
    block = next((each for each in rich.entities if each.kind == "pre" and each.begin <= begin < each.end), None)
    if block is None or begin == len(text):
        return begin
    return max(place, block.begin, text.rfind("\n", place, begin) + 1)


def _furthest(rich: Rich, begin: int, max_units: int, max_entities: int) -> int:
    """Return the furthest place where a piece may end at all."""
    max_units -= len(begun_isolate(rich.text, begin))
    end = min(len(rich.text), begin + max_units)
    while units(rich.text[begin:end]) > max_units:
        end -= max(1, (units(rich.text[begin:end]) - max_units) // 2)
    touching = sorted(each.begin for each in rich.entities if each.end > begin and each.begin < end)
    if len(touching) > max_entities:
        end = max(begin + 1, touching[max_entities])
    return end


def _border(rich: Rich, begin: int, end: int, fits: Callable[[Entity], bool]) -> int:
    """Return the best place to cut between begin and end."""
    block = next((each for each in rich.entities if each.kind == "pre" and each.begin < end < each.end), None)
    if block is not None and fits(block) and rich.text[begin : block.begin].strip():
        return block.begin
    borders = (_LINE, _BLANK) if block is not None else (_PARAGRAPH, _LINE, _SENTENCE, _BLANK)
    least = begin + max(1, int((end - begin) * _LEAST_FULL))
    for border in borders:
        for first in (least, begin + 1):
            place = _last(border, rich, first, end)
            if place is not None and (first == least or border is borders[-1]):
                return place
    return last_cut(rich.text, begin, end)


def _last(border: re.Pattern[str], rich: Rich, first: int, end: int) -> int | None:
    """Return the last end of a border between first and end that does not tear a link or a word of code."""
    places = [min(found.end(), end) for found in border.finditer(rich.text, max(0, first - 1), end)]
    for place in reversed(places):
        if place >= first and not any(each.begin < place < each.end and each.kind in _WHOLE for each in rich.entities):
            return place
    return None
