"""What a turn sent to the model: every distinct message once, and for each call which of them.

A prompt repeats most of the one before it, so a step stores ranges of this log instead of a prompt. What came from the
history is kept by its id: the words stay in one place, and go from here when they go from there. What stands side by
side and comes from the history, such as a whole window, is one row.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, insert, select

from botservice.memory.fields.data_urls import read_data_url, write_data_url
from botservice.memory.fields.frozen import FrozenDict, FrozenList, freeze
from botservice.messages import Message
from botservice.quoting import quote_said, quote_said_in_group
from botservice.storage.blobs import read_blobs, store_blob
from botservice.storage.references import full_text_of
from botservice.storage.statements import execute_many
from botservice.storage.tables.conversations import messages, prompt_log

# Made once: making it anew for every call takes SQLAlchemy longer than running it.
_INSERT = insert(prompt_log)

Range = list[int]  # [first, end): end is not in it
_GONE = "[deleted]"
# How a prompt may show a message of the history; the place in this list is stored.
_WAYS: Sequence[Callable[[str], str]] = (str, quote_said, quote_said_in_group)
_LONG_TEXT = 512  # characters; longer ones, such as a system prompt, are kept once per context


@dataclass(frozen=True, slots=True)
class _Entry:
    content: Mapping[str, Any]
    blobs: Mapping[str, bytes]


Unsaved = tuple[int, _Entry]
"""A message that is not stored yet, with its place in the log."""


class PromptLog:
    """The log of one turn."""

    def __init__(self, turn_id: int) -> None:
        self.turn_id = turn_id
        self._shown: list[FrozenDict] = []
        self._unsaved: dict[int, _Entry] = {}
        self._by_content: dict[object, int] = {}
        self._by_origin: dict[int, tuple[object, int]] = {}
        self._ranges: dict[int, tuple[FrozenList, list[Range]]] = {}

    def record(
        self,
        prompt: Sequence[Mapping[str, Any]],
        *,
        sources: Mapping[int, Message] | None = None,
        origins: Mapping[int, Mapping[str, Any]] | None = None,
    ) -> FrozenList:
        """Return prompt as the value of a step's model_input_messages, known to this log.

        Args:
            sources: Which messages of the history stand where in the prompt.
            origins: What messages are copies of; these objects are the same from one prompt to the next.
        """
        sources, origins = sources or {}, origins or {}
        known = self._by_origin
        sequence = []
        for index, message in enumerate(prompt):
            origin = origins.get(index)
            entry = None if origin is None else known.get(id(origin))
            if entry is None or entry[0] is not origin or message != origin:
                place = self._place(message, sources.get(index))
                if origin is not None and message == origin:
                    known[id(origin)] = (origin, place)
            else:
                place = entry[1]
            sequence.append(place)
        recorded = FrozenList.trust(self._shown[place] for place in sequence)
        self._ranges[id(recorded)] = (recorded, _as_ranges(sequence))
        return recorded

    def ranges(self, recorded: object) -> list[Range] | None:
        """Return the ranges of a value that `record` or `load` gave; None for any other."""
        known = self._ranges.get(id(recorded))
        return known[1] if known is not None and known[0] is recorded else None

    def restore(self, ranges: Sequence[Range]) -> FrozenList:
        """Return the prompt that ranges stand for."""
        recorded = FrozenList.trust(each for first, end in ranges for each in self._shown[first:end])
        self._ranges[id(recorded)] = (recorded, [list(each) for each in ranges])
        return recorded

    @property
    def size(self) -> int:
        """How many messages are in the log."""
        return len(self._shown)

    def unsaved(self) -> list[Unsaved]:
        """Return what is not stored yet, with its places."""
        return list(self._unsaved.items())

    def mark_saved(self, places: Iterable[int]) -> None:
        """Take note that these places are stored."""
        for place in places:
            self._unsaved.pop(place, None)

    def save(self, connection: Connection, context_id: int, unsaved: Sequence[Unsaved]) -> None:
        """Store what `unsaved` gave."""
        if not unsaved:
            return
        for _, entry in unsaved:
            for data in entry.blobs.values():
                store_blob(connection, context_id, data)
        execute_many(
            connection,
            _INSERT,
            [
                {"turn_id": self.turn_id, "seq": place, "context_id": context_id, "content": content}
                for place, content in _as_rows(unsaved)
            ],
        )

    @classmethod
    def load(cls, connection: Connection, context_id: int, turn_id: int) -> "PromptLog":
        """Return the log of a turn."""
        log = cls(turn_id)
        query = select(prompt_log.c.content).where(prompt_log.c.turn_id == turn_id).order_by(prompt_log.c.seq)
        contents = [each for kept in connection.execute(query).scalars() for each in _read_row(kept)]
        texts = _read_texts(connection, [each["message"] for each in contents if "message" in each])
        digests = {digest for each in contents for digest in each.get("blobs", ())}
        blobs = read_blobs(connection, context_id, digests)
        for place, content in enumerate(contents):
            log._shown.append(_show(content, texts, blobs))
            log._by_content[_key(content)] = place
        return log

    def _place(self, message: Mapping[str, Any], source: Message | None) -> int:
        entry = _encode(message, source)
        key = _key(entry.content)
        place = self._by_content.get(key)
        if place is None:
            place = self._by_content[key] = len(self._shown)
            self._shown.append(_freeze(message))
            self._unsaved[place] = entry
        return place


def _key(content: Mapping[str, Any]) -> object:
    """Return what tells the contents of a log apart."""
    if "message" in content:
        return content["message"], content["role"], content["prefix"], content.get("way", 0)
    return json.dumps(content, sort_keys=True)


def _as_rows(unsaved: Sequence[Unsaved]) -> list[tuple[int, Mapping[str, Any]]]:
    """Return the rows for entries, each with the place of its first: neighbours from the history share one."""
    rows: list[tuple[int, Mapping[str, Any]]] = []
    row: dict[str, Any] | None = None
    for place, entry in unsaved:
        if "message" not in entry.content:
            rows.append((place, entry.content))
            row = None
            continue
        if row is None:
            row = {"messages": [], "literal": {}}  # what an older release reads in its place
            rows.append((place, row))
        if "way" in entry.content:  # beside the messages, because an older release knows nothing of it
            row.setdefault("ways", {})[str(len(row["messages"]))] = entry.content["way"]
        row["messages"].append([entry.content["message"], entry.content["role"], entry.content["prefix"]])
    return rows


def _read_row(content: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the contents of the entries that a row stands for."""
    if "messages" not in content:
        return [content]
    ways = content.get("ways", {})
    return [
        {"message": number, "role": role, "prefix": prefix} | ({"way": ways[str(place)]} if str(place) in ways else {})
        for place, (number, role, prefix) in enumerate(content["messages"])
    ]


def _freeze(message: Mapping[str, Any]) -> FrozenDict:
    if len(message) == 2 and type(message.get("role")) is str and type(message.get("content")) is str:
        return FrozenDict.trust(message)
    frozen: FrozenDict = freeze(dict(message), "model_input_messages")
    return frozen


def _encode(message: Mapping[str, Any], source: Message | None) -> _Entry:
    content = message.get("content")
    if source is not None and source.id is not None and isinstance(content, str):
        for way, quote in enumerate(_WAYS):
            if content.endswith(text := quote(source.full_text)):
                prefix = content[: len(content) - len(text)]
                kept = {"message": source.id, "role": message["role"], "prefix": prefix}
                return _Entry(kept | {"way": way} if way else kept, {})
    blobs: dict[str, bytes] = {}
    literal = _detach(message, blobs)
    return _Entry({"literal": literal, "blobs": sorted(blobs)} if blobs else {"literal": literal}, blobs)


def _detach(value: Any, blobs: dict[str, bytes]) -> Any:
    """Return value with the address of a blob in the place of each image and each long text."""
    if isinstance(value, Mapping):
        return {key: _detach(each, blobs) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_detach(each, blobs) for each in value]
    if not isinstance(value, str) or len(value) < _LONG_TEXT:
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


def _show(content: Mapping[str, Any], texts: Mapping[int, str], blobs: Mapping[str, bytes]) -> FrozenDict:
    if "message" in content:
        quote = _WAYS[content.get("way", 0)]
        text = content["prefix"] + quote(texts.get(content["message"], _GONE))
        return FrozenDict.trust({"role": content["role"], "content": text})
    shown: FrozenDict = freeze(_attach(content["literal"], blobs), "model_input_messages")
    return shown


def _attach(value: Any, blobs: Mapping[str, bytes]) -> Any:
    if isinstance(value, dict):
        if "$image" in value:
            return write_data_url(value["mime_type"], blobs.get(value["$image"], b""))
        if "$text" in value:
            return blobs.get(value["$text"], _GONE.encode()).decode("utf-8", "surrogatepass")
        return {key: _attach(each, blobs) for key, each in value.items()}
    return [_attach(each, blobs) for each in value] if isinstance(value, list) else value


def _read_texts(connection: Connection, message_ids: Sequence[int]) -> dict[int, str]:
    if not message_ids:
        return {}
    query = select(messages.c.id, messages.c.text, messages.c.said_by_others).where(messages.c.id.in_(message_ids))
    return {row.id: full_text_of(row) for row in connection.execute(query)}


def _as_ranges(sequence: Sequence[int]) -> list[Range]:
    ranges: list[Range] = []
    for place in sequence:
        if ranges and ranges[-1][1] == place:
            ranges[-1][1] = place + 1
        else:
            ranges.append([place, place + 1])
    return ranges
