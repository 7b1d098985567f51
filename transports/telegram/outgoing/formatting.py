"""From a model's markdown to texts with entities that Telegram takes.

Markdown is made safe for the converter first: what it would swallow as markup is kept as text.
"""

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyromark
from telegramify_markdown import MessageEntity, convert
from telegramify_markdown.config import RenderConfig

from botservice.messages import Moment, storable
from transports.cjk_emphasis import MARK, WIDE, mark_emphasis, take_marks_off
from transports.telegram.outgoing.entities import (
    DATE_TIME,
    Entity,
    Rich,
    normalised,
    with_moments,
    without_broken_links,
)
from transports.telegram.outgoing.splitting import BLANKS, split, units
from transports.telegram.outgoing.tables import unroll_tables
from transports.too_long_messages import SHORT_CHARACTERS, is_too_intricate

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
# The converter's own set. Source: telegramify_markdown.converter.STANDARDOPTIONS.
OPTIONS = (
    pyromark.Options.ENABLE_TABLES
    | pyromark.Options.ENABLE_STRIKETHROUGH
    | pyromark.Options.ENABLE_TASKLISTS
    | pyromark.Options.ENABLE_MATH
)
# Tags that only format: to leave them out loses nothing that can be read.
_SILENT_TAG = re.compile(
    rb"</?(?:b|i|u|s|em|strong|del|ins|p|div|span|center|small|sub|sup|kbd|mark|font|details|summary)"
    rb"(?:\s+[a-z-]+=[^<>]*|\s*)>",
    re.IGNORECASE,
)
_BREAK = re.compile(rb"<br\s*/?>", re.IGNORECASE)
_MISREAD = re.compile(
    r"(?P<money>(?<!\\)\$(?=\d))"
    r"|(?P<times>(?<=\d)\*(?=[\w(])|(?<=[\w)])\*(?=\d)"
    rf"|(?<!{WIDE})(?<=[\w)])\*\*(?=\d))"
    r"|(?P<anything>(?<!\*)\*(?=\.\w)|(?<=/)\*+|(?<=[^\W_]_)\*+|(?<!\*)\*{1,2}(?=/))"
    r"|(?P<name>\b__(?=[a-z]|[A-Z0-9_]+__\b|\w*[a-z][A-Z]\w*__\b))"
    r"|(?P<either>(?<=[^\S\n])\|\|(?=\s))"
)
_SIGN = re.compile(r"[^a-z0-9]")
_DEFINITION = re.compile(r"^ {0,3}\[([^\]\n^][^\]\n]*)\]:(?=[ \t]*\S)", re.MULTILINE)
_DASHES = re.compile(r"^[ \t>|:]*-[ \t\r>|:-]*$", re.MULTILINE)

_LEAST_SOURCES = 3  # fewer are no burden
_SOURCE = re.compile(r"\d{1,2}\. \[[^\]\n]+\]\(\S+\)[^\n]*")


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
    """Return the messages that markdown makes, in order; none if there is nothing to read."""
    rich = render(markdown)
    return _pieces(with_moments(rich, moments) if moments else rich, max_units)


def format_plain(text: str, *, max_units: int = MAX_TEXT_UNITS) -> list[Rich]:
    """Return the messages that a text makes as it is."""
    return _pieces(Rich(storable(text)), max_units)


def render(markdown: str) -> Rich:
    """Return markdown as one text with entities, however long.

    What is too intricate stays as it is, and so does what would show nothing: markup without words.
    """
    if not markdown.strip():
        return Rich("")
    if is_plain(markdown) or (len(markdown) > SHORT_CHARACTERS and is_too_intricate(markdown)):
        return Rich(storable(markdown))
    try:
        text, found = convert(prepare(markdown), config=_STYLE)
        text = text.rstrip()
        if not text.strip(BLANKS):
            return Rich(storable(markdown))
        rich = _without_marks(Rich(text, tuple(_places(text, found))))
        if _is_settled(rich):
            return rich
        return normalised(_fold_sources(without_broken_links(rich), count_sources(markdown)))
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
    wire, count = [], len if rich.text.isascii() else units
    for each in rich.entities:
        offset, length = count(rich.text[: each.begin]), count(rich.text[each.begin : each.end])
        entity: dict[str, Any] = {"type": each.kind, "offset": offset, "length": length}
        if each.kind == DATE_TIME and each.argument is not None:
            entity |= {"unix_time": int(each.argument), "date_time_format": _DATE_FORMAT}
        elif each.argument is not None:
            entity["url" if each.kind == "text_link" else "language"] = each.argument
        wire.append(entity)
    return wire


def _fold_sources(rich: Rich, count: int) -> Rich:
    """Return rich with the pages that it rests on, its last lines, in a quotation that opens when it is pressed."""
    lines = rich.text.split("\n")[-count:] if count else []
    if not lines or not lines[0].startswith("1"):
        return rich
    end = len(rich.text)
    begin = end - len("\n".join(lines))
    return Rich(rich.text, (*rich.entities, Entity("expandable_blockquote", begin, end)))


def _is_settled(rich: Rich) -> bool:
    """Return whether entities are as Telegram wants them already: one at most, no link, no blanks at its ends."""
    if len(rich.entities) != 1:
        return not rich.entities
    said = rich.text[rich.entities[0].begin : rich.entities[0].end]
    return rich.entities[0].kind != "text_link" and said != "" and said == said.strip()


def _places(text: str, found: Sequence[MessageEntity]) -> list[Entity]:
    """Return the converter's entities, counted in code points."""
    data = text.encode("utf-16-le")
    entities = []
    for each in found:
        begin, end = (len(data[: 2 * at].decode("utf-16-le")) for at in (each.offset, each.offset + each.length))
        argument = each.url if each.type == "text_link" else each.language
        if each.type != "custom_emoji":
            entities.append(Entity(each.type, begin, end, take_marks_off(argument) if argument else None))
    return entities


def _without_marks(rich: Rich) -> Rich:
    """Return rich without what was put in beside emphasis."""
    if MARK not in rich.text:
        return rich
    entities = []
    for each in rich.entities:
        begin, end = (at - rich.text.count(MARK, 0, at) for at in (each.begin, each.end))
        entities.append(Entity(each.kind, begin, end, each.argument))
    return Rich(take_marks_off(rich.text), tuple(entities))


def prepare(markdown: str) -> str:
    """Return markdown that means the same and of which the converter loses nothing."""
    escaped = escape(markdown)
    unrolled = unroll_tables(escaped, OPTIONS) if may_hold_table(escaped) else escaped
    return unrolled if unrolled.isascii() else mark_emphasis(unrolled)


def may_hold_table(markdown: str) -> bool:
    """Return whether markdown has what a table needs: bars, and a line of dashes below its head."""
    return "|" in markdown and _DASHES.search(markdown) is not None


def escape(markdown: str) -> str:
    """Return markdown in which tags, arithmetic, money and names are words and not markup."""
    text = storable(markdown).replace("\r\n", "\n").replace("\r", "\n")
    for _ in range(3):  # what an escaped tag uncovers may hold the next one
        escaped = _escape_tags(text)
        if escaped == text:
            break
        text = escaped
    if _MISREAD.search(text) is not None:
        text = _outside(text, _is_verbatim, _escape_marks)
    return _escape_definitions(text)


def count_sources(markdown: str) -> int:
    """Return how many lines at the end of a text name a page each; 0 for a few."""
    count = 0
    for line in reversed(markdown.rstrip().split("\n")):
        if _SOURCE.fullmatch(line.strip()) is None:
            break
        count += 1
    return count if count >= _LEAST_SOURCES else 0


def _escape_tags(text: str) -> str:
    if "<" not in text:
        return text
    data = text.encode()
    parts, done = [], 0
    for begin, end in _ranges(text, lambda event: "Html" in event or "InlineHtml" in event):
        parts.append(data[done:begin])
        parts.append(_escape_tag(data[begin:end], is_in_table=_line_of(data, begin).startswith(b"|")))
        done = end
    return b"".join([*parts, data[done:]]).decode()


def _escape_tag(tag: bytes, *, is_in_table: bool) -> bytes:
    broken = _BREAK.sub(b" " if is_in_table else b"\\\n", tag)
    return _SILENT_TAG.sub(b"", broken).replace(b"<", b"\\<")


def _line_of(data: bytes, place: int) -> bytes:
    return data[data.rfind(b"\n", 0, place) + 1 : place].lstrip()


def _escape_marks(text: str) -> str:
    """Escape what is arithmetic, money or logic rather than emphasis, a formula or a spoiler."""
    return _MISREAD.sub(lambda found: _SIGN.sub(r"\\\g<0>", found[0]), text)


def _escape_definitions(text: str) -> str:
    """Keep definitions of references that nothing refers to: they would vanish."""

    def keep(found: re.Match[str]) -> str:
        is_used = text.lower().count(f"[{found[1].lower()}]") > 1
        return found[0] if is_used else found[0].replace("[", "\\[", 1)

    return _DEFINITION.sub(keep, text) if "]:" in text else text


def _is_verbatim(event: dict[str, object]) -> bool:
    start = event.get("Start")
    if isinstance(start, dict):
        link = start.get("Link")
        return "CodeBlock" in start or (isinstance(link, dict) and link.get("link_type") in ("Autolink", "Email"))
    return "Code" in event


def _outside(text: str, is_kept: Callable[[dict[str, object]], bool], change: Callable[[str], str]) -> str:
    """Return text with change applied to everything but what is_kept says."""
    data = text.encode()
    parts, done = [], 0
    for begin, end in _ranges(text, is_kept):
        if begin >= done:
            parts.append(change(data[done:begin].decode()))
            parts.append(data[begin:end].decode())
            done = end
    return "".join([*parts, change(data[done:].decode())])


def _ranges(text: str, is_wanted: Callable[[dict[str, object]], bool]) -> Iterator[tuple[int, int]]:
    """Yield the byte ranges of the parser's events that are wanted, in the order of the text."""
    for event, place in pyromark.events_with_range(text, options=OPTIONS):
        if isinstance(event, dict) and is_wanted(dict(event)):
            yield place["start"], place["end"]


__all__ = ["MAX_CAPTION_UNITS", "as_wire", "format_markdown", "format_plain", "render", "units"]
