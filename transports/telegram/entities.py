"""Texts with entities as the Bot API takes them: their form on the wire, addresses that Telegram links, and times."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from botservice.core.messages import Moment

_HOST = re.compile(r"(?:[^\s<>\"'\\^`{|}.]+\.)+[^\W\d][^\s<>\"'\\^`{|}.]+")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_OTHER_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?!//|\d)")
_APP_SCHEMES = ("tg", "ton", "tonsite")
DATE_TIME = "date_time"  # a time as each reader's own. Source: core.telegram.org/bots/api#date-time-entity-formatting
_DATE_FORMAT: Final = "dt"  # the date and the time of day, both short
BLANKS: Final = " \n\t\u00a0\u00ad\u180e\u200b\u200c\u200d\u200e\u200f\u2060\u2800\u3164\ufeff"


@dataclass(frozen=True, slots=True)
class Entity:
    """A stretch of text that is formatted. Places count in code points until the text is sent.

    Attributes:
        argument: A link's address, or the language of a block of code.
    """

    kind: str
    begin: int
    end: int
    argument: str | None = None


@dataclass(frozen=True, slots=True)
class Rich:
    """A text and its formatting."""

    text: str
    entities: tuple[Entity, ...] = ()


def units(text: str) -> int:
    """Return the length in UTF-16 code units, as Telegram counts."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


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


def checked_link(url: str) -> str | None:
    """Return an address that Telegram links, made whole, or None if it would refuse it.

    Source: td/telegram/LinkManager.cpp, check_link.
    """
    url = url.strip()
    if _OTHER_SCHEME.match(url):
        return None
    try:
        parts = urlsplit(url if "://" in url else f"https://{url}")
        host = parts.hostname or ""
        _ = parts.port
    except ValueError:
        return None
    if parts.scheme in _APP_SCHEMES:
        return url
    if parts.scheme not in ("http", "https") or any(each.isspace() for each in url):
        return None
    return parts.geturl() if _HOST.fullmatch(host) or _ADDRESS.fullmatch(host) else None


def with_moments(rich: Rich, moments: Sequence[Moment]) -> Rich:
    """Return rich with the times in it marked, as far as nothing else is marked there already."""
    found = []
    for moment in moments:
        begin = rich.text.find(moment.words) if moment.words else -1
        while begin >= 0:
            end = begin + len(moment.words)
            if all(_allows(each, begin, end) for each in rich.entities):
                found.append(Entity(DATE_TIME, begin, end, str(int(moment.at.timestamp()))))
            begin = rich.text.find(moment.words, end)
    return Rich(rich.text, (*rich.entities, *found)) if found else rich


def _allows(entity: Entity, begin: int, end: int) -> bool:
    """Return whether a time may stand next to, or inside of, an entity."""
    if entity.end <= begin or end <= entity.begin:
        return True
    return entity.kind not in ("code", "pre", "text_link", DATE_TIME) and entity.begin <= begin and end <= entity.end
