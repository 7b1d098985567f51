"""The rows of a prompt log: what a message of a prompt is kept as, and what it is read as.

A row keeps what a prompt has that those before it had not, in the order of the prompt:

    0                           the system prompt of the turn
    [way, id, …]                messages of the history (ids as `shorten` gives them), shown in one of WAYS
    [role, part, …]             a message whose text has parts: texts, and [way, id, …] with each message in its line
    {"role": …, "content": …}   any other message as it is

A long text, and the bytes of an image, are kept once per context; {"$text": digest}, {"$image": digest, …} name them.
What is shown of the history stands in the history alone, and goes with it.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, bindparam, select

from botservice.contexts.numbers import lengthen, shorten
from botservice.history.rows import read_shown
from botservice.history.shown import CUT, RECORD, WAYS, Records, Source
from botservice.memory.fields.data_urls import read_data_url, write_data_url
from botservice.memory.fields.values import FrozenDict, freeze
from botservice.messages import Message, Role
from botservice.quoting import quote_said, quote_said_in_group
from botservice.storage.blobs import read_blobs
from botservice.storage.statements import execute
from botservice.storage.tables.conversations import turns

SYSTEM: Final = 0
FIRST_PLACE: Final = 100_000
"""Where the places of these rows begin. Earlier releases count theirs from 0 and find nothing from here on."""

_PLAIN: Final = ("role", "content")
_GONE: Final = "[deleted]"
_LONG_TEXT: Final = 512  # characters; longer ones, such as what is known of a person, are kept once per context
_RECURRING: Final = 128  # likewise of what stands in front of records: it is the same all day
_OLDER_WAYS: Final = (str, quote_said, quote_said_in_group)
_HALVES: Final = re.compile("[\ud800-\udfff]")
_NOTHING: Final[Mapping[str, bytes]] = MappingProxyType({})
_SYSTEM_PROMPT: Final = select(turns.c.system_prompt).where(turns.c.id == bindparam("turn"))


class Said(NamedTuple):
    """A message that is all of one of the history."""

    way: int
    message_id: int


class OlderSaid(NamedTuple):
    """Likewise, as earlier releases kept it."""

    message_id: int
    role: str
    prefix: str
    way: int


Kept = Said | OlderSaid | int | list[Any] | Mapping[str, Any]


class Entry(NamedTuple):
    """A message of a prompt as it is kept, with the bytes that it names, by digest."""

    kept: Kept
    blobs: Mapping[str, bytes] = _NOTHING


@dataclass(slots=True)
class _Named:
    """What rows name that lies elsewhere."""

    message_ids: set[int] = field(default_factory=set)
    digests: set[str] = field(default_factory=set)

    def note(self, kept: Kept) -> None:
        """Take note of what a message names."""
        if isinstance(kept, Said | OlderSaid):
            self.message_ids.add(kept.message_id)
        elif isinstance(kept, list):
            for part in kept[1:]:
                self.message_ids.update(lengthen(part[1:]) if _is_shown(part) else ())
                self._note_digests(part)
        else:
            self._note_digests(kept)

    def _note_digests(self, value: Any) -> None:
        if isinstance(value, dict):
            digest = value.get("$text") or value.get("$image")
            self.digests.update([digest] if isinstance(digest, str) else ())
        for each in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
            self._note_digests(each)


def said_way(message: Mapping[str, Any], source: Message, likely: int) -> int | None:
    """Return the way in which a message of a prompt is one of the history; None where there is more or less to it.

    Args:
        likely: The way that is tried first.
    """
    if len(message) != len(_PLAIN) or message["role"] != source.role:
        return None
    content = message["content"]
    if WAYS[likely](source) == content:
        return likely
    return next((way for way, show in enumerate(WAYS) if show(source) == content), None)


def is_stored(system_prompt: str) -> bool:
    """Return whether a system prompt is stored with its turn as it is: not an empty one, nor halves of characters."""
    return bool(system_prompt) and (system_prompt.isascii() or not _HALVES.search(system_prompt))


def encode(message: Mapping[str, Any], source: Source | None) -> Entry:
    """Return what is kept of a message that is not the whole of one of the history."""
    content = message.get("content")
    blobs: dict[str, bytes] = {}
    if source is not None and isinstance(content, str) and len(message) == len(_PLAIN):
        parts = _parts(content, source, blobs)
        if parts is not None:
            return Entry([message["role"], *parts], blobs)
    return Entry(_detach(message, blobs), blobs)


def as_content(entries: Iterable[Entry]) -> dict[str, Any]:
    """Return the content of a row for entries."""
    sent: list[Any] = []
    for way, same in groupby((each.kept for each in entries), _way_of):
        kept = list(same)
        ids = [each.message_id for each in kept if isinstance(each, Said)]
        sent += kept if way is None else [[way, *shorten(ids)]]
    return {"messages": [], "literal": {}, "sent": sent}  # earlier releases read the first two, and show nothing


def read_row(content: Mapping[str, Any]) -> Iterator[Kept]:
    """Yield what a row keeps of each message; rows of earlier releases are read as well."""
    if "sent" in content:
        for each in content["sent"]:
            if _is_shown(each):
                yield from (Said(each[0], number) for number in lengthen(each[1:]))
            else:
                yield each
    elif "messages" in content:
        ways = content.get("ways", {})
        for place, (number, role, prefix) in enumerate(content["messages"]):
            yield OlderSaid(number, role, prefix, ways.get(str(place), 0))
    elif "message" in content:
        yield OlderSaid(content["message"], content["role"], content["prefix"], content.get("way", 0))
    else:
        yield content["literal"]


class Showing:
    """Shows what is kept as messages."""

    def __init__(self, connection: Connection, context_id: int, turn_id: int, kept: Sequence[Kept]) -> None:
        """Read what kept names."""
        named = _Named()
        for each in kept:
            named.note(each)
        system = None
        if SYSTEM in kept:
            system = execute(connection, _SYSTEM_PROMPT, {"turn": turn_id}).scalar_one_or_none()
        self._messages = read_shown(connection, context_id, named.message_ids)
        self._blobs = read_blobs(connection, context_id, named.digests | ({system} if system else set()))
        self._system = self._text(system)

    def show(self, kept: Kept) -> FrozenDict:
        """Return a message."""
        if isinstance(kept, Said):
            message = self._messages.get(kept.message_id)
            role = Role.USER if message is None else message.role
            return FrozenDict.trust({"role": role.value, "content": self._shown(kept.way, kept.message_id)})
        if isinstance(kept, OlderSaid):
            message = self._messages.get(kept.message_id)
            text = _OLDER_WAYS[kept.way](_GONE if message is None else message.full_text)
            return FrozenDict.trust({"role": kept.role, "content": kept.prefix + text})
        if isinstance(kept, int):
            return FrozenDict.trust({"role": Role.SYSTEM.value, "content": self._system})
        if isinstance(kept, list):
            return FrozenDict.trust({"role": kept[0], "content": "".join(map(self._part, kept[1:]))})
        shown: FrozenDict = freeze(self._attach(kept), "model_input_messages")
        return shown

    def _attach(self, value: Any) -> Any:
        if isinstance(value, dict):
            if "$image" in value:
                return write_data_url(value["mime_type"], self._blobs.get(value["$image"], b""))
            if "$text" in value:
                return self._text(value["$text"])
            return {key: self._attach(each) for key, each in value.items()}
        return [self._attach(each) for each in value] if isinstance(value, list) else value

    def _part(self, part: Any) -> str:
        if isinstance(part, str):
            return part
        if _is_shown(part):
            return "\n".join(self._shown(part[0], number) for number in lengthen(part[1:]))
        return self._text(part["$text"])

    def _shown(self, way: int, number: int) -> str:
        message = self._messages.get(number)
        if message is None:
            return _GONE
        return WAYS[way](message) if way < len(WAYS) else message.full_text  # a later release knows how

    def _text(self, digest: str | None) -> str:
        data = None if digest is None else self._blobs.get(digest)
        return _GONE if data is None else data.decode("utf-8", "surrogatepass")


def _is_shown(value: Any) -> bool:
    """Return whether a value is a way with ids behind it."""
    return isinstance(value, list) and bool(value) and isinstance(value[0], int)


def _way_of(kept: Kept) -> int | None:
    return kept.way if isinstance(kept, Said) else None


def _parts(content: str, source: Source, blobs: dict[str, bytes]) -> list[Any] | None:
    """Return content in parts, some of which show what is in the history; None where it shows nothing of that."""
    if isinstance(source, Records):
        found = [(source.text, _record_parts(source))] if source.text and source.text in content else []
    else:
        ways = ((way, show(source)) for way, show in enumerate(WAYS))
        found = [(text, [[way, source.id]]) for way, text in ways if source.id is not None and text and text in content]
    if not found:
        return None
    text, shown = found[0]
    before, _, after = content.partition(text)
    return [part for part in (_detach(before, blobs, _RECURRING), *shown, _detach(after, blobs)) if part]


def _record_parts(records: Records) -> list[Any]:
    """Return the parts of records: a message that was cut to fit is not what the history has."""
    parts: list[Any] = []
    pairs = zip(records.messages, records.texts, strict=True)
    for is_stored, same in groupby(pairs, lambda each: each[0].id is not None and not each[0].text.endswith(CUT)):
        group = list(same)
        parts += ["\n"] if parts else []
        ids = [message.id for message, _ in group if message.id is not None]
        parts.append([RECORD, *shorten(ids)] if is_stored else "\n".join(text for _, text in group))
    return parts


def _detach(value: Any, blobs: dict[str, bytes], long_text: int = _LONG_TEXT) -> Any:
    """Return value with the address of a blob in the place of each image and each long text."""
    if isinstance(value, Mapping):
        return {key: _detach(each, blobs) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_detach(each, blobs) for each in value]
    if not isinstance(value, str) or len(value) < long_text:
        return value
    parsed = read_data_url(value) if value.startswith("data:") else None
    if parsed is not None:
        digest, mime_type, data = parsed
        blobs[digest] = data
        return {"$image": digest, "mime_type": mime_type}
    data = value.encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(data).hexdigest()
    blobs[digest] = data
    return {"$text": digest}
