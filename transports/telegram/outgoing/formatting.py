"""From a model's markdown to texts with entities that Telegram takes."""

import itertools
import logging
import re
from collections.abc import Sequence
from typing import Any

from telegramify_markdown import MessageEntity, convert
from telegramify_markdown.config import RenderConfig

from botservice.messages import Moment, storable
from transports.bounds import is_too_intricate
from transports.telegram.outgoing.entities import (
    DATE_TIME,
    Entity,
    Rich,
    normalised,
    with_moments,
    without_broken_links,
)
from transports.telegram.outgoing.markdown import count_sources, prepare
from transports.telegram.outgoing.splitting import BLANKS, split, units

logger = logging.getLogger(__name__)

# Source: core.telegram.org/bots/api, sendMessage; an entity beyond the hundredth is silently dropped.
MAX_TEXT_UNITS = 4096
MAX_CAPTION_UNITS = 1024
MAX_ENTITIES = 100
_DATE_FORMAT = "dt"  # the date and the time of day, both short
# What reads the same whether it is taken for markdown or not: no marks, and no line that may begin anything.
_LONGEST_PLAIN = 2_000
_MARKS = r"*_`~\[\]<>|$#!\\&\x00-\x1f"
_LINE = rf"(?![\s+=:-]|\d+[.)])[^{_MARKS}]*[^{_MARKS}\s]"
_PLAIN = re.compile(rf"{_LINE}(?:\n{{1,2}}{_LINE})*")


def _style() -> RenderConfig:
    """Return how markdown is rendered: plain signs instead of the library's pictures."""
    config = RenderConfig.isolated()
    signs = config.markdown_symbol
    signs.heading_level_1 = signs.heading_level_2 = signs.heading_level_3 = signs.heading_level_4 = ""
    signs.task_completed, signs.task_uncompleted = "☑", "☐"
    signs.unordered_list_item = "•"
    signs.horizontal_rule = "———"
    return config


_STYLE = _style()


def format_markdown(markdown: str, *, max_units: int = MAX_TEXT_UNITS, moments: Sequence[Moment] = ()) -> list[Rich]:
    """Return the messages that markdown makes, in order; none where there is nothing to read."""
    rich = render(markdown)
    return _pieces(with_moments(rich, moments) if moments else rich, max_units)


def format_plain(text: str, *, max_units: int = MAX_TEXT_UNITS) -> list[Rich]:
    """Return the messages that a text makes as it is."""
    return _pieces(Rich(storable(text)), max_units)


def render(markdown: str) -> Rich:
    """Return markdown as one text with entities, however long; what is too intricate stays as it is."""
    if not markdown.strip():
        return Rich("")
    if is_plain(markdown) or is_too_intricate(markdown):
        return Rich(storable(markdown))
    try:
        text, found = convert(prepare(markdown), config=_STYLE)
        rich = without_broken_links(Rich(text, tuple(_places(text, found))))
        return normalised(_fold_sources(rich, count_sources(markdown)))
    except Exception:  # a border: the converter is foreign code, and what it cannot format is sent as it is
        logger.exception("telegram.formatting_failed")
        return Rich(storable(markdown))


def is_plain(text: str) -> bool:
    """Return whether a text, as short as most are, holds nothing that markdown would make something of."""
    return len(text) <= _LONGEST_PLAIN and _PLAIN.fullmatch(text) is not None


def _pieces(rich: Rich, max_units: int) -> list[Rich]:
    """Return what is sent of rich; most of what is said needs no cutting."""
    text = rich.text
    is_short = 2 * len(text) <= max_units and len(rich.entities) <= MAX_ENTITIES  # a character is two units at most
    if is_short and text and not text[0].isspace() and not text[-1].isspace():
        return [rich] if text.strip(BLANKS) else []
    return list(split(rich, max_units=max_units, max_entities=MAX_ENTITIES))


def as_wire(rich: Rich) -> list[dict[str, Any]]:
    """Return the entities of rich in the Bot API's form, counted in UTF-16 code units."""
    if not rich.entities:
        return []
    offsets = _offsets(rich.text)
    wire = []
    for each in rich.entities:
        begin, end = offsets[each.begin], offsets[each.end]
        entity: dict[str, Any] = {"type": each.kind, "offset": begin, "length": end - begin}
        if each.kind == DATE_TIME and each.argument is not None:
            entity |= {"unix_time": int(each.argument), "date_time_format": _DATE_FORMAT}
        elif each.argument is not None:
            entity["url" if each.kind == "text_link" else "language"] = each.argument
        wire.append(entity)
    return wire


def _fold_sources(rich: Rich, count: int) -> Rich:
    """Return rich with the pages that it rests on, its last lines, in a quotation that opens when it is pressed."""
    lines = rich.text.rstrip().split("\n")[-count:] if count else []
    if not lines or not lines[0].startswith("1"):
        return rich
    end = len(rich.text.rstrip())
    begin = end - len("\n".join(lines))
    return Rich(rich.text, (*rich.entities, Entity("expandable_blockquote", begin, end)))


def _places(text: str, found: Sequence[MessageEntity]) -> list[Entity]:
    """Return the converter's entities, counted in code points."""
    place_of = {offset: place for place, offset in enumerate(_offsets(text))}
    entities = []
    for each in found:
        begin, end = place_of.get(each.offset), place_of.get(each.offset + each.length)
        argument = each.url if each.type == "text_link" else each.language
        if begin is not None and end is not None and each.type != "custom_emoji":
            entities.append(Entity(each.type, begin, end, argument or None))
    return entities


def _offsets(text: str) -> list[int]:
    """Return, for every place in text, its offset in UTF-16 code units."""
    if text.isascii():
        return list(range(len(text) + 1))
    return [0, *itertools.accumulate(1 + (character > "\uffff") for character in text)]


__all__ = ["MAX_CAPTION_UNITS", "as_wire", "format_markdown", "format_plain", "render", "units"]
