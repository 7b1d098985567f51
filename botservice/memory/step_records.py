"""The steps of a memory and their rows: what was added, changed or taken out since they were stored."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, bindparam, delete, insert, select, update

from botservice.memory.codec import dumps
from botservice.memory.items import MemoryItem, revision_of
from botservice.memory.prompt_log import PromptLog, Range
from botservice.storage.tables import steps


_LARGEST_NUMBER = 2**31


@dataclass(slots=True)
class _Stored:
    """An item's row, as it was last written."""

    item: MemoryItem
    row_id: int
    turn_id: int
    position: float
    revision: int


@dataclass(frozen=True, slots=True)
class _Write:
    item: MemoryItem
    position: float
    revision: int
    data: str
    ranges: list[Range] | None
    row_id: int | None = None
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class StepChanges:
    """What has to be written. It is made once and may be applied twice."""

    added: list[_Write] = field(default_factory=list)
    changed: list[_Write] = field(default_factory=list)
    removed: list[_Stored] = field(default_factory=list)
    log_entries: list[tuple[int, object]] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed or self.log_entries)


class StepRecords:
    """Knows which items of a context's memory are stored, and as what."""

    def __init__(self, context_id: int, turn_id: int, floor: float = 0.0) -> None:
        """Make the records of a turn.

        Args:
            floor: The position of the last step of the context that is not in view.
        """
        self.context_id = context_id
        self.turn_id = turn_id
        self.log = PromptLog(turn_id)
        self._floor = floor
        self._stored: dict[int, _Stored] = {}

    @property
    def last_position(self) -> float:
        """The position of the last step that is stored."""
        return max((stored.position for stored in self._stored.values()), default=self._floor)

    def begin_turn(self) -> None:
        """Count what is added from now on to a turn that is about to begin; what is known stays known."""
        self.assign_turn(0)

    def assign_turn(self, turn_id: int) -> None:
        """Take note of the id of the turn that has begun."""
        self.turn_id = turn_id
        self.log = PromptLog(turn_id)

    def changes(self, items: Sequence[MemoryItem], opened: MemoryItem | None = None) -> StepChanges:
        """Return what is different from what is stored.

        Args:
            opened: A step that is stored as open: its calls are about to run.
        """
        present = [item for item in items if item is not None]
        if opened is not None:
            present.append(opened)
        positions = self._positions(present)
        added, changed = [], []
        for item, position in zip(present, positions, strict=True):
            known = self._find(item)
            if known is None:
                added.append(self._write(item, position, is_open=item is opened))
            elif known.revision != revision_of(item) or known.position != position:
                changed.append(self._write(item, position, known.row_id, is_open=item is opened))
        here = {id(item) for item in present}
        removed = [stored for key, stored in self._stored.items() if key not in here]
        return StepChanges(added, changed, removed, list(self.log.unsaved()))

    def apply(self, connection: Connection, changes: StepChanges, turn_id: int | None = None) -> list[int]:
        """Write changes and return the ids of the rows that were added.

        Args:
            turn_id: The turn of added steps, where it has no id before this transaction.
        """
        self.log.save(connection, self.context_id, changes.log_entries)  # type: ignore[arg-type]  # its own entries
        if changes.removed:
            connection.execute(delete(steps).where(steps.c.id.in_([stored.row_id for stored in changes.removed])))
        if changes.changed:
            connection.execute(
                update(steps)
                .where(steps.c.id == bindparam("row"))
                .values(
                    position=bindparam("position"),
                    data=bindparam("data"),
                    prompt_ranges=bindparam("prompt_ranges"),
                    is_open=bindparam("is_open"),
                ),
                [{"row": each.row_id, **_values(each)} for each in changes.changed],
            )
        return [self._insert(connection, each, turn_id or self.turn_id) for each in changes.added]

    def confirm(self, changes: StepChanges, row_ids: Sequence[int]) -> None:
        """Take note that changes are committed."""
        for stored in changes.removed:
            del self._stored[id(stored.item)]
        for each, row_id in zip(changes.added, row_ids, strict=True):
            self._stored[id(each.item)] = _Stored(each.item, row_id, self.turn_id, each.position, each.revision)
        for each in changes.changed:
            known = self._stored[id(each.item)]
            known.position, known.revision = each.position, each.revision
        self.log.mark_saved([place for place, _ in changes.log_entries])

    def row_id(self, item: MemoryItem) -> int | None:
        """Return the row of an item."""
        known = self._find(item)
        return None if known is None else known.row_id

    def note(self, item: MemoryItem, *, row_id: int, turn_id: int, position: float) -> None:
        """Take note of an item that was read from its row."""
        self._stored[id(item)] = _Stored(item, row_id, turn_id, position, revision_of(item))

    def _find(self, item: MemoryItem) -> _Stored | None:
        known = self._stored.get(id(item))
        return known if known is not None and known.item is item else None

    def _positions(self, items: Sequence[MemoryItem]) -> list[float]:
        """Return where each item stands: rows keep their places, new ones go between them where they can."""
        known = [stored.position if (stored := self._find(item)) is not None else None for item in items]
        positions: list[float] = []
        previous = self._floor
        following = _following(known)
        for place, upper in zip(known, following, strict=True):
            if place is None or place <= previous:
                place = previous + 1.0 if upper is None else (previous + upper) / 2
            if upper is not None and not previous < place < upper:
                return [self._floor + number for number in range(1, len(items) + 1)]
            positions.append(place)
            previous = place
        return positions

    def _write(self, item: MemoryItem, position: float, row_id: int | None = None, *, is_open: bool) -> _Write:
        ranges = self.log.ranges(item.get_value("model_input_messages"))
        data = dumps(item.to_dict(full=ranges is None))
        return _Write(item, position, revision_of(item), data, ranges, row_id, is_open)

    def _insert(self, connection: Connection, new: _Write, turn_id: int) -> int:
        values = {
            "context_id": self.context_id,
            "turn_id": turn_id,
            "kind": type(new.item).__name__,
            "step_number": _number(new.item),
            **_values(new),
        }
        return int(connection.execute(insert(steps).values(values).returning(steps.c.id)).scalar_one())


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
    query = select(
        steps.c.id, steps.c.turn_id, steps.c.position, steps.c.is_open, steps.c.data, steps.c.prompt_ranges
    ).where(steps.c.context_id == context_id)
    if turn_ids is not None:
        query = query.where(steps.c.turn_id.in_(list(turn_ids)))
    logs = {} if logs is None else logs
    found = []
    for row in connection.execute(query.order_by(steps.c.position, steps.c.id)).all():
        item = MemoryItem.from_json(row.data)
        if row.prompt_ranges is not None:
            log = logs.get(row.turn_id)
            if log is None:
                log = logs[row.turn_id] = PromptLog.load(connection, context_id, row.turn_id)
            item.set_value("model_input_messages", log.restore(row.prompt_ranges))
        found.append(StoredStep(item, row.id, row.turn_id, row.position, row.is_open))
    return found


def find_last_position(connection: Connection, context_id: int, *, without_turns: Sequence[int] = ()) -> float:
    """Return the position of the last step of a context, of those turns aside; 0 where there is none."""
    query = (
        select(steps.c.position)
        .where(steps.c.context_id == context_id, steps.c.turn_id.not_in(without_turns))
        .order_by(steps.c.position.desc())
        .limit(1)
    )
    return connection.execute(query).scalar_one_or_none() or 0.0


def find_last_step_number(connection: Connection, context_id: int) -> int:
    """Return the number of the last action step of a context; 0 where there is none."""
    query = (
        select(steps.c.step_number)
        .where(steps.c.context_id == context_id, steps.c.step_number.is_not(None))
        .order_by(steps.c.position.desc())
        .limit(1)
    )
    return connection.execute(query).scalar_one_or_none() or 0


def _number(item: MemoryItem) -> int | None:
    number = item.get_value("step_number")
    return number if isinstance(number, int) and abs(number) < _LARGEST_NUMBER else None


def _values(write: _Write) -> dict[str, object]:
    return {
        "position": write.position,
        "data": write.data,
        "prompt_ranges": write.ranges,
        "is_open": write.is_open,
    }


def _following(known: Sequence[float | None]) -> list[float | None]:
    """Return, for each place, the position of the next row that is known after it."""
    following: list[float | None] = []
    upper: float | None = None
    for place in reversed(known):
        following.append(upper)
        upper = place if place is not None else upper
    return following[::-1]
