"""What a turn sent to the model: every distinct message once, and for each call which of them.

A prompt repeats most of the one before it, so a step stores ranges of this log instead of a prompt. What is new in a
prompt is one row. What came from the history is kept by its id: the words stay in one place, and go from here when they
go from there. `prompt_log_reading` reads the rows.

A row keeps what a prompt has that those before it had not, in the order of the prompt:

    0                           the system prompt of the turn
    [way, id, …]                messages of the history (ids as `shorten` gives them), shown in one of WAYS
    [role, part, …]             a message whose text has parts: texts, and [way, id, …] with each message in its line
    {"role": …, "content": …}   any other message as it is

A long text, and the bytes of an image, are kept once per context; {"$text": digest}, {"$image": digest, …} name them.
What is shown of the history stands in the history alone, and goes with it.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, insert

from botservice.conversation.data_urls import read_data_url
from botservice.conversation.field_codec import shorten
from botservice.conversation.field_values import FrozenDict, FrozenList, freeze
from botservice.core.messages import Message, Role
from botservice.history.excerpts import Excerpt
from botservice.history.shown import WAYS, Records, Source
from botservice.storage.blobs import store_blob
from botservice.storage.tables.conversations import prompt_log

SYSTEM: Final = 0
FIRST_PLACE: Final = 100_000
"""Where the places of these rows begin. Earlier releases count theirs from 0 and find nothing from here on."""

_PLAIN: Final = ("role", "content")
_LONG_TEXT: Final = 512  # characters; longer ones, such as what is known of a person, are kept once per context
_RECURRING: Final = 128  # likewise of what stands in front of records: it is the same all day
_HALVES: Final = re.compile("[\ud800-\udfff]")
_NOTHING: Final[Mapping[str, bytes]] = MappingProxyType({})
# Made once: making it anew for every call takes SQLAlchemy longer than running it.
_INSERT: Final = insert(prompt_log)

Range = list[int]  # [first, end): end is not in it


class HistoryEntry(NamedTuple):
    """A message that is all of one of the history."""

    way: int
    message_id: int


class OlderHistoryEntry(NamedTuple):
    """Likewise, as earlier releases kept it."""

    message_id: int
    role: str
    prefix: str
    way: int


Kept = HistoryEntry | OlderHistoryEntry | int | list[Any] | Mapping[str, Any]


class PromptEntry(NamedTuple):
    """A message of a prompt in its stored form, with the bytes that it names, by digest."""

    kept: Kept
    blobs: Mapping[str, bytes] = _NOTHING


Unsaved = tuple[int, PromptEntry]
"""A message that is not stored yet, with its place in the log."""


class PromptLog:
    """The log of one turn.

    Attributes:
        system_prompt: What is stored as that of the turn.
    """

    def __init__(self, turn_id: int) -> None:
        self.turn_id = turn_id
        self.system_prompt = ""
        self._shown: dict[int, FrozenDict] = {}
        self._next = FIRST_PLACE
        self._unsaved: dict[int, PromptEntry] = {}
        self._by_kept: dict[object, int] = {}
        self._by_origin: dict[int, tuple[object, int]] = {}
        self._ranges: dict[int, tuple[FrozenList, list[Range]]] = {}
        self._likely_way = 0

    def record(
        self,
        prompt: Sequence[Mapping[str, Any]],
        *,
        sources: Mapping[int, Source] | None = None,
        origins: Mapping[int, Mapping[str, Any]] | None = None,
    ) -> FrozenList:
        """Return prompt as the value of a step's model_input_messages, known to this log.

        Args:
            sources: What of the history stands where in the prompt.
            origins: What messages are copies of; these objects are the same from one prompt to the next.
        """
        sources, origins = sources or {}, origins or {}
        sequence = [
            self._place(message, sources.get(index))
            if (origin := origins.get(index)) is None
            else self._place_copy(message, origin)
            for index, message in enumerate(prompt)
        ]
        recorded = FrozenList.trust(map(self._shown.__getitem__, sequence))
        self._ranges[id(recorded)] = (recorded, _as_ranges(sequence))
        return recorded

    def ranges(self, recorded: object) -> list[Range] | None:
        """Return the ranges of a value that `record` or `load` gave; None for any other."""
        known = self._ranges.get(id(recorded))
        return known[1] if known is not None and known[0] is recorded else None

    def restore(self, ranges: Sequence[Range]) -> FrozenList:
        """Return the prompt that ranges stand for."""
        recorded = FrozenList.trust(
            self._shown[place] for first, end in ranges for place in range(first, end) if place in self._shown
        )
        self._ranges[id(recorded)] = (recorded, [list(each) for each in ranges])
        return recorded

    def unsaved(self) -> list[Unsaved]:
        """Return what is not stored yet, with its places."""
        return list(self._unsaved.items())

    def mark_saved(self, places: Iterable[int]) -> None:
        """Remember that these places are stored."""
        for place in places:
            self._unsaved.pop(place, None)

    def save(self, connection: Connection, context_id: int, unsaved: Sequence[Unsaved]) -> None:
        """Store what `unsaved` gave."""
        if not unsaved:
            return
        for _, entry in unsaved:
            for data in entry.blobs.values():
                store_blob(connection, context_id, data)
        content = as_content(entry for _, entry in unsaved)
        values = {"turn_id": self.turn_id, "seq": unsaved[0][0], "context_id": context_id, "content": content}
        connection.execute(_INSERT, values)

    def note_stored(self, place: int, kept: Kept, shown: FrozenDict) -> None:
        """Add a message that was read from a row, as it was stored and as it reads."""
        self._shown[place] = shown
        self._by_kept[_key(kept)] = place
        self._next = max(self._next, place + 1)

    def _place_copy(self, message: Mapping[str, Any], origin: Mapping[str, Any]) -> int:
        known = self._by_origin.get(id(origin))
        if message != origin:
            return self._place(message, None)
        if known is None or known[0] is not origin:
            known = self._by_origin[id(origin)] = (origin, self._place(message, None))
        return known[1]

    def _place(self, message: Mapping[str, Any], source: Source | None) -> int:
        if isinstance(source, Message) and source.id is not None:
            way = said_way(message, source, self._likely_way)
            if way is not None:
                self._likely_way = way
                said = HistoryEntry(way, source.id)
                return self._put(said, message, said)
        if message == {"role": Role.SYSTEM.value, "content": self.system_prompt} and is_stored(self.system_prompt):
            return self._put(SYSTEM, message, SYSTEM)
        entry = encode(message, source)
        return self._put(_key(entry.kept), message, *entry)

    def _put(self, key: object, message: Mapping[str, Any], kept: Kept, blobs: Mapping[str, bytes] = _NOTHING) -> int:
        place = self._by_kept.get(key)
        if place is None:
            place = self._by_kept[key] = self._next
            self._next += 1
            self._shown[place] = _freeze(message)
            self._unsaved[place] = PromptEntry(kept, blobs)
        return place


def said_way(message: Mapping[str, Any], source: Message, likely: int) -> int | None:
    """Return the way in which a message of a prompt is one of the history; None if there is more or less to it.

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
    """Return whether a system prompt is stored unchanged with its turn: not empty, and without lone surrogates."""
    return bool(system_prompt) and (system_prompt.isascii() or not _HALVES.search(system_prompt))


def encode(message: Mapping[str, Any], source: Source | None) -> PromptEntry:
    """Return the stored form of a message that is not exactly one of the history."""
    content = message.get("content")
    blobs: dict[str, bytes] = {}
    if source is not None and isinstance(content, str) and len(message) == len(_PLAIN):
        parts = _parts(content, source, blobs)
        if parts is not None:
            return PromptEntry([message["role"], *parts], blobs)
    return PromptEntry(_detach(message, blobs), blobs)


def as_content(entries: Iterable[PromptEntry]) -> dict[str, Any]:
    """Return the content of a row for entries."""
    sent: list[Any] = []
    ids: list[int] = []  # of the messages that stand one after the other in one way
    shown: int | None = None
    for kept, _ in entries:
        way = kept.way if isinstance(kept, HistoryEntry) else None
        if ids and way != shown:
            sent.append([shown, *shorten(ids)])
            ids = []
        shown = way
        if isinstance(kept, HistoryEntry):
            ids.append(kept.message_id)
        else:
            sent.append(kept)
    if ids:
        sent.append([shown, *shorten(ids)])
    return {"messages": [], "literal": {}, "sent": sent}  # earlier releases read the first two, and show nothing


def _key(kept: Kept) -> object:
    """Return what tells the entries of a log apart."""
    return json.dumps(kept, sort_keys=True) if isinstance(kept, list | Mapping) else kept


def _freeze(message: Mapping[str, Any]) -> FrozenDict:
    if len(message) == 2 and type(message.get("role")) is str and type(message.get("content")) is str:
        return FrozenDict.trust(message)
    frozen: FrozenDict = freeze(dict(message), "model_input_messages")
    return frozen


def _as_ranges(sequence: Sequence[int]) -> list[Range]:
    ranges: list[Range] = []
    for place in sequence:
        if ranges and ranges[-1][1] == place:
            ranges[-1][1] = place + 1
        else:
            ranges.append([place, place + 1])
    return ranges


def _parts(content: str, source: Source, blobs: dict[str, bytes]) -> list[Any] | None:
    """Return content in parts, some of which show what is in the history; None if it shows nothing of that."""
    if isinstance(source, Records):
        text = source.text
        found = [(text, _record_parts(source))] if text and text in content else []
    else:
        ways = ((way, show(source)) for way, show in enumerate(WAYS))
        found = [(text, [[way, source.id]]) for way, text in ways if source.id is not None and text and text in content]
    if not found:
        return None
    text, shown = found[0]
    before, _, after = content.partition(text)
    return [part for part in (_detach(before, blobs, _RECURRING), *shown, _detach(after, blobs)) if part]


def _record_parts(records: Records) -> list[Any]:
    """Return the parts of records: a message that is shown in part is not what the history has."""
    parts: list[Any] = []
    stored = [None if isinstance(message, Excerpt) else message.id for message in records.messages]
    ways = [None if number is None else way for number, way in zip(stored, records.ways, strict=True)]
    for way, same in groupby(zip(ways, stored, records.texts, strict=True), lambda each: each[0]):
        group = list(same)
        parts += ["\n"] if parts else []
        ids = [number for _, number, _ in group if number is not None]
        parts.append("\n".join(text for _, _, text in group) if way is None else [way, *shorten(ids)])
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
