"""The steps of a memory and their rows: what was added, changed or taken out since they were stored."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, repeat
from typing import Any, Final

from botservice.conversation.field_codec import dumps, loads, write_bytes
from botservice.conversation.items import MemoryItem, checked_item, record_of, revision_of
from botservice.conversation.prompt_log import PromptLog, Unsaved, read_prompt_log, save_prompt_logs
from botservice.conversation.queries import delete_steps, insert_steps, list_steps, update_steps
from botservice.history.recent import Recent
from botservice.storage.blobs import digest_of, read_blobs, store_blobs
from botservice.storage.database import Connection

_LONG_BYTES: Final = 768  # what is shorter stays in its step; longer ones are kept once per context
_BLOB: Final = re.compile(r'\{"\$blob":"([0-9a-f]{64})"\}')
_LARGEST_NUMBER = 2**31


@dataclass(frozen=True, slots=True)
class StoredStep:
    """A step as its row has it.

    Attributes:
        revision: That of the item when it was read or written.
    """

    item: MemoryItem
    row_id: int
    turn_id: int
    position: float
    is_open: bool
    revision: int


@dataclass(frozen=True, slots=True)
class _Write:
    """A step as it is to be stored.

    Attributes:
        step: Its `row_id` is 0 if it has no row yet.
        files: The longer bytes of its fields, which are stored next to it.
    """

    step: StoredStep
    columns: Mapping[str, Any]
    files: Sequence[bytes]


@dataclass(frozen=True, slots=True)
class StepChanges:
    """What has to be written. It is made once and may be applied twice."""

    added: list[_Write] = field(default_factory=list)
    changed: list[_Write] = field(default_factory=list)
    removed: list[StoredStep] = field(default_factory=list)
    log_entries: Unsaved = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed or self.log_entries)


class StepRecords:
    """The rows of the items of a context's memory, as they were last read or written.

    Attributes:
        logs: The prompt logs of the turns in view, by the turn's id; `log` is the one of the current turn.
    """

    def __init__(
        self, context_id: int, turn_id: int, logs: Mapping[int, PromptLog], last_position: float, stride: float
    ) -> None:
        """Make the records of a turn, 0 for one that has no id yet.

        Args:
            last_position: Of all steps of the context.
            stride: How far from each other new steps stand.
        """
        self.context_id = context_id
        self.turn_id = turn_id
        self.logs = dict(logs)
        self.log = self.logs[turn_id] if turn_id else PromptLog(0)
        self._last_position = last_position
        self._stride = stride
        self._stored: dict[int, StoredStep] = {}  # by the id() of its item

    def begin_turn(self, system_prompt: str, *, keeps_steps: bool) -> None:
        """Make room for the steps of a turn that is about to begin and has no id yet."""
        if not keeps_steps:
            self._last_position = max([self._last_position, *(each.position for each in self._stored.values())])
            self._stored, self._stride, self.logs = {}, 1.0, {}
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
        present = {id(item): checked_item(item) for item in (*items, opened) if item is not None}
        added, changed = [], []
        for (key, item), position in zip(present.items(), self._positions(list(present)), strict=True):
            stored = self._stored.get(key)
            row_id, turn_id = (0, self.turn_id) if stored is None else (stored.row_id, stored.turn_id)
            now = StoredStep(item, row_id, turn_id, position, item is opened, revision_of(item))
            if stored is None:
                added.append(self._write(now))
            elif now != stored:
                changed.append(self._write(now))
        removed = [stored for key, stored in self._stored.items() if key not in present]
        return StepChanges(added, changed, removed, self.log.unsaved())

    def confirm(self, changes: StepChanges, row_ids: Sequence[int]) -> None:
        """Remember changes as committed."""
        for stored in changes.removed:
            del self._stored[id(stored.item)]
        for each, row_id in zip(changes.added, row_ids, strict=True):
            self.note(replace(each.step, row_id=row_id, turn_id=self.turn_id))
        for each in changes.changed:
            self.note(each.step)
        self.log.mark_saved(changes.log_entries)

    def row_id(self, item: MemoryItem) -> int | None:
        """Return the row of an item; None if it is not stored."""
        known = self._stored.get(id(item))
        return None if known is None else known.row_id

    def is_own(self, item: MemoryItem) -> bool:
        """Return whether the current turn made an item by asking its model; others were put in."""
        return self.log.places(item.get_value("model_input_messages")) is not None

    def note(self, stored: StoredStep) -> None:
        """Remember what the row of an item has."""
        self._stored[id(stored.item)] = stored

    def _positions(self, keys: Sequence[int]) -> list[float]:
        """Return the position of each item: its own, unless more has happened than that new ones were appended."""
        known = [self._stored[key].position for key in keys if key in self._stored]
        if known != sorted({*known}) or not self._stored.keys() >= {*keys[: len(known)]}:
            first = min(each.position for each in self._stored.values())
            return [first + number * self._stride for number in range(len(keys))]
        last = known[-1] if known else self._last_position
        return [*known, *(last + number * self._stride for number in range(1, len(keys) - len(known) + 1))]

    def _write(self, step: StoredStep) -> _Write:
        item, files = step.item, list[bytes]()

        def write(data: bytes) -> dict[str, str]:
            if len(data) < _LONG_BYTES:
                return write_bytes(data)
            files.append(data)
            return {"$blob": digest_of(data)}

        log = self.logs.get(step.turn_id, self.log)
        prompt = log.places(item.get_value("model_input_messages"))
        data = dumps(record_of(item, full=prompt is None), write)
        columns: dict[str, Any] = {"position": step.position, "data": data, "prompt": prompt, "is_open": step.is_open}
        if not step.row_id:
            number = item.get_value("step_number")
            is_number = isinstance(number, int) and abs(number) < _LARGEST_NUMBER
            columns |= {"kind": type(item).__name__, "step_number": number if is_number else None}
        return _Write(step, columns, files)


def apply_all(connection: Connection, given: Sequence[tuple[StepRecords, StepChanges, int]]) -> list[list[int]]:
    """Write changes of several memories, and return for each the ids of the rows that were added.

    Args:
        given: With each the turn of what is added, which may have no id before this transaction.
    """
    logs: list[tuple[PromptLog, int, Unsaved]] = []
    files: list[tuple[int, bytes]] = []
    removed: list[int] = []
    changed: list[Mapping[str, Any]] = []
    added: list[Mapping[str, Any]] = []
    for records, changes, turn_id in given:
        if changes.log_entries:
            logs.append((records.log, records.context_id, changes.log_entries))
        removed += [each.row_id for each in changes.removed]
        changed += [{"row": each.step.row_id, **each.columns} for each in changes.changed]
        added += [{"context_id": records.context_id, "turn_id": turn_id, **each.columns} for each in changes.added]
        for each in (*changes.changed, *changes.added):
            files += zip(repeat(records.context_id), each.files)
    if logs:
        save_prompt_logs(connection, logs)
    if files:
        store_blobs(connection, files)
    delete_steps(connection, removed)
    update_steps(connection, changed)
    row_ids = iter(insert_steps(connection, added))
    return [list(islice(row_ids, len(changes.added))) for _, changes, _ in given]


def read_steps(
    connection: Connection,
    context_id: int,
    *,
    turn_ids: Iterable[int] | None = None,
    logs: dict[int, PromptLog] | None = None,
    recent: Recent | None = None,
) -> list[StoredStep]:
    """Return the steps of turns, of all by default, in their order, and fill logs with the turns' prompt logs.

    Args:
        recent: Messages of the context that are known without reading.
    """
    rows = list_steps(connection, context_id, turn_ids)
    digests = {digest for row in rows for digest in _BLOB.findall(row.data)}
    files = read_blobs(connection, context_id, digests) if digests else {}

    def attach(found: re.Match[str]) -> str:
        return dumps(write_bytes(files.get(found[1], b"")))

    logs = {} if logs is None else logs
    steps = []
    for row in rows:
        item = MemoryItem.from_dict(loads(_BLOB.sub(attach, row.data)))
        if row.prompt is not None:
            if row.turn_id not in logs:
                logs[row.turn_id] = read_prompt_log(connection, context_id, row.turn_id, recent)
            item.set_value("model_input_messages", logs[row.turn_id].restore(row.prompt))
        steps.append(StoredStep(item, row.id, row.turn_id, row.position, row.is_open, revision_of(item)))
    return steps
