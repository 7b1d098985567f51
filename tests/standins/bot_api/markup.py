"""What the parse modes have in common: entities, links, and a text under construction.

Source of the rules and the wording: core.telegram.org/bots/api#formatting-options, and what the server answers.
"""

import re
from dataclasses import dataclass
from typing import Any

Entity = dict[str, Any]


class MarkupError(Exception):
    """What comes after "can't parse entities: "."""


class LinkError(Exception):
    """Why an address is none."""


def utf16_length(text: str) -> int:
    """Return the length as Telegram counts: in UTF-16 code units."""
    return len(text) + sum(1 for character in text if character > "\uffff")


def check_link(url: str) -> str:
    """Return the address, made whole.

    Raises:
        LinkError: Telegram would not link it.
    """
    url = url.strip()
    found = re.match(r"([a-zA-Z][a-zA-Z0-9+.\-]*)://", url)
    scheme = found[1].lower() if found else "http"
    rest = url[found.end() :] if found else url
    if scheme in {"tg", "ton", "tonsite"}:
        return url
    if scheme not in {"http", "https"}:
        raise LinkError("Unsupported URL protocol")
    host = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
    host = re.sub(r":\d+$", "", host)
    if not host:
        raise LinkError("URL host is empty")
    last = host.rpartition(".")[2]
    is_name = "." in host and len(last) >= 2 and not re.search(r"[\s<>\"'\\^`{|}]", host) and ".." not in host
    is_address = re.fullmatch(r"\d+\.\d+\.\d+\.\d+", host) or host.startswith("[")
    if not is_address and (not is_name or last.isdigit()):
        raise LinkError("Wrong HTTP URL")
    return f"{scheme}://{rest}" if "/" in rest or "?" in rest or "#" in rest else f"{scheme}://{rest}/"


def link_entity(url: str, offset: int, length: int) -> Entity | None:
    """Return the entity that a link in a parse mode becomes; one that is no link is silently no entity."""
    person = re.fullmatch(r"tg://user\?id=(\d+)", url.strip())
    if person:
        return {"type": "text_mention", "offset": offset, "length": length, "user": {"id": int(person[1])}}
    try:
        return {"type": "text_link", "offset": offset, "length": length, "url": check_link(url)}
    except LinkError:
        return None


@dataclass(slots=True)
class Opened:
    kind: str
    offset: int
    at_byte: int
    first_part: int
    argument: str = ""


class Reader:
    def __init__(self, source: str):
        self.source = source
        self.i = 0
        self.out: list[str] = []
        self.units = 0
        self.entities: list[Entity] = []
        self.stack: list[Opened] = []

    def read(self) -> None:
        raise NotImplementedError

    def peek(self, ahead: int = 0) -> str:
        position = self.i + ahead
        return self.source[position] if position < len(self.source) else ""

    def put(self, character: str) -> None:
        self.out.append(character)
        self.units += 2 if character > "\uffff" else 1

    def at_byte(self, position: int | None = None) -> int:
        return len(self.source[: self.i if position is None else position].encode())

    def push(self, kind: str, argument: str = "", position: int | None = None) -> None:
        self.stack.append(Opened(kind, self.units, self.at_byte(position), len(self.out), argument))

    def emit(self, opened: Opened, kind: str, **extra: Any) -> None:
        if self.units > opened.offset:
            self.entities.append({"type": kind, "offset": opened.offset, "length": self.units - opened.offset, **extra})

    def emit_link(self, opened: Opened, url: str) -> None:
        url = url or "".join(self.out[opened.first_part :])
        entity = link_entity(url, opened.offset, self.units - opened.offset)
        if entity and entity["length"]:
            self.entities.append(entity)
