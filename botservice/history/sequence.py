"""A chat's messages as a sequence that is read from its end, as far as somebody looks."""

from collections.abc import Iterator, Sequence
from typing import Any, overload

from sqlalchemy import Connection, Row, func, select

from botservice.history.rows import NEWEST_FIRST, NEWEST_FIRST_BEFORE, read_messages
from botservice.llm.tokens import TokenCounter
from botservice.messages import Message
from botservice.storage.readers import leave_to_thread
from botservice.storage.statements import execute
from botservice.storage.tables.conversations import messages

_FIRST_PAGE = 32
_LARGEST_PAGE = 1024


class StoredMessages(Sequence[Message]):
    """The messages of one context, oldest first, after a position and up to another.

    It lives as long as the connection that it reads from. `reversed()` and indices read no further back than
    they reach, and files only of what they give; `len()` and positive indices count in the database; plain iteration
    reads everything.
    """

    def __init__(
        self,
        connection: Connection,
        context_id: int,
        *,
        after_position: int = 0,
        before_position: int | None = None,
        counter: TokenCounter | None = None,
    ) -> None:
        self._connection = connection
        self._context_id = context_id
        self._after = after_position
        self._before = before_position
        self._counter = counter
        self._rows: list[Row[*tuple[Any, ...]]] = []  # newest first
        self._read: dict[int, Message] = {}
        self._oldest_position = before_position
        self._is_complete = False
        self._length: int | None = None

    def __len__(self) -> int:
        if self._is_complete:
            return len(self._rows)
        if self._length is None:
            query = select(func.count()).select_from(messages).where(messages.c.context_id == self._context_id)
            if self._after:
                query = query.where(messages.c.position > self._after)
            if self._before is not None:
                query = query.where(messages.c.position < self._before)
            self._length = self._connection.execute(query).scalar_one()
        return self._length

    def __reversed__(self) -> Iterator[Message]:
        place = 0
        while self._has(place + 1):
            yield self._message(place)
            place += 1

    def __iter__(self) -> Iterator[Message]:
        while not self._is_complete:
            self._read_page()
        for place in range(len(self._rows) - 1, -1, -1):
            yield self._message(place)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            return self._slice(index)
        place = -index - 1 if index < 0 else len(self) - index - 1
        if place < 0 or not self._has(place + 1):
            raise IndexError("message index out of range")
        return self._message(place)

    def _slice(self, index: slice) -> list[Message]:
        start, stop, step = index.start, index.stop, index.step
        if start is not None and start < 0 and (stop is None or stop < 0) and (step is None or step > 0):
            self._has(-start)  # both ends count from the newest: how many there are does not matter
            length = len(self._rows)
        else:
            length = len(self)
        wanted = range(*index.indices(length))
        if wanted:
            self._has(length - min(wanted[0], wanted[-1]))
        return [self._message(length - each - 1) for each in wanted]

    def _has(self, count: int) -> bool:
        while len(self._rows) < count and not self._is_complete:
            self._read_page()
        return len(self._rows) >= count

    def _message(self, place: int) -> Message:
        """Return the message at a place, counted from the newest; its files are read only now."""
        if place not in self._read:
            if self._counter is not None and self._rows[place].token_encoding != self._counter.name:
                leave_to_thread(self._connection)  # it is counted anew
            [self._read[place]] = read_messages(self._connection, self._context_id, [self._rows[place]], self._counter)
        return self._read[place]

    def _read_page(self) -> None:
        size = min(max(_FIRST_PAGE, len(self._rows)), _LARGEST_PAGE)
        sought: dict[str, int] = {"context": self._context_id, "size": size}
        if self._oldest_position is None:
            rows = execute(self._connection, NEWEST_FIRST, sought).all()
        else:
            rows = execute(self._connection, NEWEST_FIRST_BEFORE, {**sought, "before": self._oldest_position}).all()
        self._is_complete = len(rows) < size
        if rows and rows[-1].position <= self._after:
            self._is_complete = True
            rows = [row for row in rows if row.position > self._after]
        if rows:
            self._oldest_position = rows[-1].position
            self._rows += rows
