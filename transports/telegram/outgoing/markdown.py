"""A model's markdown, made safe for the converter: what it would swallow as markup is kept as text."""

import re
from collections.abc import Callable, Iterator
from typing import Final

import pyromark

from botservice.messages import storable
from transports.telegram.outgoing.tables import unroll_tables

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
_MARKS = re.compile(
    r"(?P<money>(?<!\\)\$(?=\d))"
    r"|(?P<times>(?<=\d)\*(?=[\w(])|(?<=[\w)])\*(?=\d)|(?<=[\w)])\*\*(?=\d))"
    r"|(?P<anything>(?<!\*)\*(?=\.\w)|(?<=[/_])\*+|(?<!\*)\*{1,2}(?=/))"
    r"|(?P<name>\b__(?=[a-z][a-z0-9_]*__\b)|(?<=[a-z0-9])__\b)"
    r"|(?P<either>(?<=[^\S\n])\|\|(?=\s))",
)
_DEFINITION = re.compile(r"^ {0,3}\[([^\]\n^][^\]\n]*)\]:(?=[ \t]*\S)", re.MULTILINE)

_LEAST_SOURCES: Final = 3  # fewer are no burden
_SOURCE: Final = re.compile(r"\d{1,2}\. \[[^\]\n]+\]\(\S+\)[^\n]*")

Range = tuple[int, int]


def prepare(markdown: str) -> str:
    """Return markdown that means the same and of which the converter loses nothing."""
    escaped = escape(markdown)
    return unroll_tables(escaped, OPTIONS) if "|" in escaped and "-" in escaped else escaped


def escape(markdown: str) -> str:
    """Return markdown in which tags, arithmetic, money and names are words and not markup."""
    text = storable(markdown).replace("\r\n", "\n").replace("\r", "\n")
    for _ in range(3):  # what an escaped tag uncovers may hold the next one
        escaped = _escape_tags(text)
        if escaped == text:
            break
        text = escaped
    return _escape_definitions(_outside(text, _is_verbatim, _escape_marks))


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
    return _MARKS.sub(lambda found: "".join(f"\\{character}" for character in found[0]), text)


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


def _ranges(text: str, is_wanted: Callable[[dict[str, object]], bool]) -> Iterator[Range]:
    """Yield the byte ranges of the parser's events that are wanted, in the order of the text."""
    for event, place in pyromark.events_with_range(text, options=OPTIONS):
        if isinstance(event, dict) and is_wanted(dict(event)):
            yield place["start"], place["end"]
