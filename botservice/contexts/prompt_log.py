"""What a turn sent to the model: every distinct message once, and for each call which of them.

A prompt repeats most of the one before it, so a step stores ranges of this log instead of a prompt. What is new in a
prompt is one row. What came from the history is kept by its id: the words stay in one place, and go from here when they
go from there.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, insert, select

from botservice.contexts.prompt_rows import (
    FIRST_PLACE,
    SYSTEM,
    Entry,
    Kept,
    Said,
    Showing,
    as_content,
    encode,
    is_stored,
    read_row,
    said_way,
)
from botservice.history.shown import Source
from botservice.memory.fields.values import FrozenDict, FrozenList, freeze
from botservice.messages import Message, Role
from botservice.storage.blobs import store_blob
from botservice.storage.statements import execute
from botservice.storage.tables.conversations import prompt_log

# Made once: making it anew for every call takes SQLAlchemy longer than running it.
_INSERT = insert(prompt_log)

Range = list[int]  # [first, end): end is not in it

Unsaved = tuple[int, Entry]
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
        self._unsaved: dict[int, Entry] = {}
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
        recorded = FrozenList.trust(
            self._shown[place] for first, end in ranges for place in range(first, end) if place in self._shown
        )
        self._ranges[id(recorded)] = (recorded, [list(each) for each in ranges])
        return recorded

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
        content = as_content(entry for _, entry in unsaved)
        values = {"turn_id": self.turn_id, "seq": unsaved[0][0], "context_id": context_id, "content": content}
        execute(connection, _INSERT, values)

    @classmethod
    def load(cls, connection: Connection, context_id: int, turn_id: int) -> "PromptLog":
        """Return the log of a turn."""
        log = cls(turn_id)
        query = select(prompt_log.c.seq, prompt_log.c.content).where(prompt_log.c.turn_id == turn_id)
        kept: dict[int, Kept] = {}
        for row in connection.execute(query.order_by(prompt_log.c.seq)):
            kept.update(enumerate(read_row(row.content), row.seq))
        showing = Showing(connection, context_id, turn_id, list(kept.values()))
        for place, each in kept.items():
            log._shown[place] = showing.show(each)
            log._by_kept[_key(each)] = place
        log._next = max([FIRST_PLACE, *(place + 1 for place in kept)])
        return log

    def _place(self, message: Mapping[str, Any], source: Source | None) -> int:
        if isinstance(source, Message) and source.id is not None:
            way = said_way(message, source, self._likely_way)
            if way is not None:
                self._likely_way = way
                said = Said(way, source.id)
                return self._put(said, message, Entry(said))
        if message == {"role": Role.SYSTEM.value, "content": self.system_prompt} and is_stored(self.system_prompt):
            return self._put(SYSTEM, message, Entry(SYSTEM))
        entry = encode(message, source)
        return self._put(_key(entry.kept), message, entry)

    def _put(self, key: object, message: Mapping[str, Any], entry: Entry) -> int:
        place = self._by_kept.get(key)
        if place is None:
            place = self._by_kept[key] = self._next
            self._next += 1
            self._shown[place] = _freeze(message)
            self._unsaved[place] = entry
        return place


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
