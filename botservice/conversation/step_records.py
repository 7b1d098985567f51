"""The steps of a memory and their rows: what was added, changed or taken out since they were stored."""

import base64
import bisect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, repeat
from operator import attrgetter
from typing import Any, Final

from botservice.conversation.field_codec import dumps, loads
from botservice.conversation.items import MemoryItem, checked_item, revision_of
from botservice.conversation.prompt_log import PromptLog, Unsaved, read_prompt_log, save_prompt_logs
from botservice.conversation.queries import delete_steps, insert_steps, list_steps, update_steps
from botservice.storage.blobs import digest_of, read_blobs, store_blobs
from botservice.storage.database import Connection
from botservice.storage.readers import leave_to_thread

_BYTES: Final = "$bytes"
_BLOB: Final = "$blob"
_FEWEST_CHARACTERS: Final = 1_024  # of base64; what is shorter stays in its place


@dataclass(frozen=True, slots=True)
class StepData:
    """A record as JSON text, and the bytes that it names."""

    text: str
    files: Sequence[bytes] = ()


def detach_files(record: dict[str, Any]) -> StepData:
    """Return a record, as `MemoryItem.to_dict` gives it, with its longer bytes next to it."""
    text = dumps(record)
    if f'"{_BYTES}":' not in text:
        return StepData(text)
    files: list[bytes] = []
    return StepData(dumps(_detached(record, files)), files)


def attach_files(connection: Connection, context_id: int, texts: Sequence[str]) -> list[Any]:
    """Return the records that `detach_files` was given."""
    digests: set[str] = set()
    records = [_parsed(text, digests) for text in texts]
    if not digests:
        return records
    files = read_blobs(connection, context_id, digests)
    return [_attached(record, files) for record in records]


def _parsed(text: str, digests: set[str]) -> Any:
    record = loads(text)
    if f'"{_BLOB}":' in text:
        _collect(record, digests)
    return record


def _detached(value: Any, files: list[bytes]) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_BYTES} and len(value[_BYTES]) >= _FEWEST_CHARACTERS:
            data = base64.b64decode(value[_BYTES])
            files.append(data)
            return {_BLOB: digest_of(data)}
        return {key: _detached(each, files) for key, each in value.items()}
    return [_detached(each, files) for each in value] if isinstance(value, list) else value


def _collect(value: Any, digests: set[str]) -> None:
    if isinstance(value, dict):
        if value.keys() == {_BLOB}:
            digests.add(value[_BLOB])
        for each in value.values():
            _collect(each, digests)
    elif isinstance(value, list):
        for each in value:
            _collect(each, digests)


def _attached(value: Any, files: Mapping[str, bytes]) -> Any:
    if isinstance(value, dict):
        if value.keys() == {_BLOB}:
            return {_BYTES: base64.b64encode(files.get(value[_BLOB], b"")).decode("ascii")}
        return {key: _attached(each, files) for key, each in value.items()}
    return [_attached(each, files) for each in value] if isinstance(value, list) else value


_LARGEST_NUMBER = 2**31
_READ_INLINE = 64_000  # characters of steps: a thread reads more
_position = attrgetter("position")
_row_id = attrgetter("row_id")


@dataclass(slots=True)
class _StoredItem:
    """An item's row, as it was last written."""

    item: MemoryItem
    row_id: int
    turn_id: int
    position: float
    revision: int
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class _Write:
    """The row of an item, as it is to be written.

    Attributes:
        files: The longer bytes of its fields, which are stored next to it.
        row_id: Which row changes; None for a new one.
    """

    item: MemoryItem
    position: float
    revision: int
    is_open: bool
    columns: Mapping[str, Any]
    files: Sequence[bytes]
    row_id: int | None = None


@dataclass(frozen=True, slots=True)
class StepChanges:
    """What has to be written. It is made once and may be applied twice."""

    added: list[_Write] = field(default_factory=list)
    changed: list[_Write] = field(default_factory=list)
    removed: list[_StoredItem] = field(default_factory=list)
    log_entries: list[Unsaved] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed or self.log_entries)


class StepRecords:
    """The rows of the items of a context's memory, as they were last read or written.

    Attributes:
        logs: The prompt logs of the turns in view, by the turn's id; `log` is the one of the current turn.
    """

    def __init__(
        self,
        context_id: int,
        turn_id: int,
        floor: float = 0.0,
        logs: dict[int, PromptLog] | None = None,
        stride: float = 1.0,
        system_prompt: str = "",
    ) -> None:
        """Make the records of a turn.

        Args:
            floor: The position of the last step of the context that is not in view.
            stride: How far from each other new steps stand.
            system_prompt: What is stored as that of the turn.
        """
        self._stride = stride
        self.context_id = context_id
        self.turn_id = turn_id
        self.logs = dict(logs or {})
        self.log = self.logs.setdefault(turn_id, PromptLog(turn_id)) if turn_id else PromptLog(0)
        self.log.system_prompt = system_prompt
        self._floor = floor
        self._stored: dict[int, _StoredItem] = {}
        self._order: list[_StoredItem] = []  # the same, as they stand

    @property
    def last_position(self) -> float:
        """The position of the last step that is stored."""
        return self._order[-1].position if self._order else self._floor

    def begin_turn(self, system_prompt: str, *, keeps_steps: bool) -> None:
        """Make room for the steps of a turn that is about to begin and has no id yet."""
        if not keeps_steps:
            self._floor, self._stride = self.last_position, 1.0
            self._stored, self._order, self.logs = {}, [], {}
        self.turn_id = 0
        self.log = PromptLog(0, system_prompt)

    def assign_turn(self, turn_id: int) -> None:
        """Store the steps of the turn that has begun with its id."""
        self.turn_id = self.log.turn_id = turn_id
        self.logs[turn_id] = self.log

    def changes(self, items: Sequence[MemoryItem | None], opened: MemoryItem | None = None) -> StepChanges:
        """Return the differences between items and what is stored.

        Args:
            opened: A step that is stored as open: its calls are about to run.

        Raises:
            InvalidField: something else than an item is among items.
        """
        present = [item for item in items if item is not None]
        if opened is not None:
            present.append(opened)
        unsaved = self.log.unsaved()
        same = self._count_same(present, opened)
        if same == len(present) == len(self._stored):
            return StepChanges(log_entries=unsaved)
        floor = self._order[same - 1].position if same else self._floor
        rest = self._once_each(present[same:], floor if same else None)
        present[same:] = rest
        known = [self._find(item) for item in rest]
        places = [None if stored is None else stored.position for stored in known]
        positions = _place_between(places, floor, self._stride)
        if positions is None:  # there is no room between two neighbours: everything gets a new place
            rest, known = present, [self._find(item) for item in present]
            positions = [self._floor + number for number in range(1, len(present) + 1)]
        added, changed = [], []
        for item, stored, position in zip(rest, known, positions, strict=True):
            if stored is None:
                added.append(self._write(item, position, is_open=item is opened))
            elif (stored.revision, stored.position, stored.is_open) != (revision_of(item), position, item is opened):
                changed.append(self._write(item, position, stored, is_open=item is opened))
        known_count = len(present) - len(added)
        return StepChanges(added, changed, self._missing(present, known_count), unsaved)

    def apply(self, connection: Connection, changes: StepChanges, turn_id: int | None = None) -> list[int]:
        """Write changes and return the ids of the rows that were added (see `apply_all`)."""
        return apply_all(connection, [(self, changes, turn_id or self.turn_id)])[0]

    def confirm(self, changes: StepChanges, row_ids: Sequence[int]) -> None:
        """Remember changes as committed."""
        for stored in changes.removed:
            del self._stored[id(stored.item)]
        if changes.removed:
            self._order = list(self._stored.values())
        for each, row_id in zip(changes.added, row_ids, strict=True):
            new = _StoredItem(each.item, row_id, self.turn_id, each.position, each.revision, each.is_open)
            self._stored[id(each.item)] = new
            self._order.append(new)
        for each in changes.changed:
            known = self._stored[id(each.item)]
            known.position, known.revision, known.is_open = each.position, each.revision, each.is_open
        self._order.sort(key=_position)
        self.log.mark_saved(changes.log_entries)

    def row_id(self, item: MemoryItem) -> int | None:
        """Return the row of an item; None if it is not stored."""
        known = self._find(item)
        return None if known is None else known.row_id

    def is_own(self, item: MemoryItem) -> bool:
        """Return whether the current turn made an item by asking its model; others were put in."""
        return self.log.places(item.get_value("model_input_messages")) is not None

    def note(self, stored: "StoredStep") -> None:
        """Add an item that was read from its row."""
        item = stored.item
        new = _StoredItem(item, stored.row_id, stored.turn_id, stored.position, revision_of(item), stored.is_open)
        self._stored[id(item)] = new
        bisect.insort(self._order, new, key=_position)

    def _find(self, item: MemoryItem) -> _StoredItem | None:
        known = self._stored.get(id(item))
        return known if known is not None and known.item is item else None

    def _count_same(self, items: Sequence[MemoryItem], opened: MemoryItem | None) -> int:
        """Return how many items at the beginning stand as they are stored: nearly all of them, most of the time."""
        count = 0
        for item, stored in zip(items, self._order, strict=False):
            if stored.item is not item or stored.revision != revision_of(item):
                break
            if stored.is_open is not (item is opened):
                break
            count += 1
        return count

    def _once_each(self, items: Sequence[MemoryItem], floor: float | None) -> list[MemoryItem]:
        """Return items without those that stand a second time in the list: each has one row."""
        once = {id(item): checked_item(item) for item in items}
        if floor is None:
            return list(once.values())
        return [item for item in once.values() if (stored := self._find(item)) is None or stored.position > floor]

    def _missing(self, present: Sequence[MemoryItem], known_count: int) -> list[_StoredItem]:
        if known_count == len(self._stored):
            return []
        here = {id(item) for item in present}
        return [stored for key, stored in self._stored.items() if key not in here]

    def _write(self, item: MemoryItem, position: float, stored: _StoredItem | None = None, *, is_open: bool) -> _Write:
        log = self.log if stored is None else self.logs.get(stored.turn_id, self.log)
        prompt = log.places(item.get_value("model_input_messages"))
        data = detach_files(item.to_dict(full=prompt is None))
        columns: dict[str, Any] = {"position": position, "data": data.text, "prompt": prompt, "is_open": is_open}
        if stored is not None:
            return _Write(item, position, revision_of(item), is_open, columns, data.files, stored.row_id)
        number = item.get_value("step_number")
        is_number = isinstance(number, int) and abs(number) < _LARGEST_NUMBER
        columns |= {"kind": type(item).__name__, "step_number": number if is_number else None}
        return _Write(item, position, revision_of(item), is_open, columns, data.files)


def apply_all(connection: Connection, given: Sequence[tuple[StepRecords, StepChanges, int]]) -> list[list[int]]:
    """Write changes of several memories, and return for each the ids of the rows that were added.

    Args:
        given: With each the turn of what is added, which may have no id before this transaction.
    """
    logs: list[tuple[PromptLog, int, Sequence[Unsaved]]] = []
    files: list[tuple[int, bytes]] = []
    removed: list[int] = []
    changed: list[Mapping[str, Any]] = []
    added: list[Mapping[str, Any]] = []
    for records, changes, turn_id in given:
        if changes.log_entries:
            logs.append((records.log, records.context_id, changes.log_entries))
        removed += map(_row_id, changes.removed)
        for each in changes.changed:
            changed.append({"row": each.row_id, **each.columns})
            files += zip(repeat(records.context_id), each.files)
        for each in changes.added:
            added.append({"context_id": records.context_id, "turn_id": turn_id, **each.columns})
            files += zip(repeat(records.context_id), each.files)
    if logs:
        save_prompt_logs(connection, logs)
    if files:
        store_blobs(connection, files)
    if removed:
        delete_steps(connection, removed)
    if changed:
        update_steps(connection, changed)
    row_ids = iter(insert_steps(connection, added) if added else ())
    return [list(islice(row_ids, len(changes.added))) for _, changes, _ in given]


@dataclass(frozen=True, slots=True)
class StoredStep:
    """A step as it was read."""

    item: MemoryItem
    row_id: int
    turn_id: int
    position: float
    is_open: bool


def read_steps(
    connection: Connection,
    context_id: int,
    *,
    turn_ids: Iterable[int] | None = None,
    logs: dict[int, PromptLog] | None = None,
) -> list[StoredStep]:
    """Return the steps of turns, of all by default, in their order, and fill logs with the turns' prompt logs."""
    rows = list_steps(connection, context_id, turn_ids)
    if sum(len(row.data) for row in rows) > _READ_INLINE:
        leave_to_thread(connection)
    records = attach_files(connection, context_id, [row.data for row in rows])
    logs = {} if logs is None else logs
    return [_read(connection, context_id, row, record, logs) for row, record in zip(rows, records, strict=True)]


def _read(connection: Connection, context_id: int, row: Any, record: Any, logs: dict[int, PromptLog]) -> StoredStep:
    item = MemoryItem.from_dict(record)
    if row.prompt is not None:
        log = logs.get(row.turn_id)
        if log is None:
            log = logs[row.turn_id] = read_prompt_log(connection, context_id, row.turn_id)
        item.set_value("model_input_messages", log.restore(row.prompt))
    return StoredStep(item, row.id, row.turn_id, row.position, row.is_open)


def _place_between(known: Sequence[float | None], floor: float, stride: float = 1.0) -> list[float] | None:
    """Return a place for each item, rising from above floor; None if there is no room between two of them.

    A new one gets the middle of its neighbours' places.

    Args:
        known: The places that items have already; they keep them where that is in order.
        stride: How far behind the one before it an item stands that is the last.
    """
    places: list[float] = []
    previous = floor
    for place, upper in zip(known, _following(known, floor), strict=True):
        if place is None or place <= previous:
            place = previous + stride if upper is None else (previous + upper) / 2  # noqa: PLW2901 - the item's place
        if upper is not None and not previous < place < upper:
            return None
        places.append(place)
        previous = place
    return places


def _following(known: Sequence[float | None], floor: float) -> list[float | None]:
    """Return, for each item, the place that is known next after it."""
    following: list[float | None] = []
    upper: float | None = None
    for place in reversed(known):
        following.append(upper)
        upper = place if place is not None and place > floor else upper
    return following[::-1]
