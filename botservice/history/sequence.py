"""A chat's messages as a sequence that is read from its end, as far as somebody looks."""

from collections.abc import Iterator, Sequence
from typing import overload

from sqlalchemy import Connection, func, select

from botservice.history.rows import NEWEST_FIRST, NEWEST_FIRST_BEFORE, read_messages
from botservice.llm.tokens import TokenCounter
from botservice.messages import Message
from botservice.storage.tables import messages

_FIRST_PAGE = 32
_LARGEST_PAGE = 1024


class StoredMessages(Sequence[Message]):
    """The messages of one context, oldest first, up to a position.

    It lives as long as the connection that it reads from. `reversed()` and negative indices read only what they take;
    `len()` counts in the database; positive indices and plain iteration read everything.
    """

    def __init__(
        self,
        connection: Connection,
        context_id: int,
        *,
        before_position: int | None = None,
        counter: TokenCounter | None = None,
    ) -> None:
        self._connection = connection
        self._context_id = context_id
        self._before = before_position
        self._counter = counter
        self._newest_first: list[Message] = []
        self._oldest_position = before_position
        self._is_complete = False
        self._length: int | None = None

    def __len__(self) -> int:
        if self._is_complete:
            return len(self._newest_first)
        if self._length is None:
            query = select(func.count()).select_from(messages).where(messages.c.context_id == self._context_id)
            if self._before is not None:
                query = query.where(messages.c.position < self._before)
            self._length = self._connection.execute(query).scalar_one()
        return self._length

    def __reversed__(self) -> Iterator[Message]:
        taken = 0
        while self._has(taken + 1):
            yield self._newest_first[taken]
            taken += 1

    def __iter__(self) -> Iterator[Message]:
        return iter(self._all())

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> list[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | list[Message]:
        if isinstance(index, slice):
            start, stop = index.start, index.stop
            if start is not None and start < 0 and (stop is None or stop < 0):
                self._has(-start)
                return self._newest_first[::-1][index]
            return self._all()[index]
        if index < 0:
            if not self._has(-index):
                raise IndexError("message index out of range")
            return self._newest_first[-index - 1]
        return self._all()[index]

    def _all(self) -> list[Message]:
        while not self._is_complete:
            self._read_page()
        return self._newest_first[::-1]

    def _has(self, count: int) -> bool:
        while len(self._newest_first) < count and not self._is_complete:
            self._read_page()
        return len(self._newest_first) >= count

    def _read_page(self) -> None:
        size = min(max(_FIRST_PAGE, len(self._newest_first)), _LARGEST_PAGE)
        sought: dict[str, int] = {"context": self._context_id, "size": size}
        if self._oldest_position is None:
            rows = self._connection.execute(NEWEST_FIRST, sought).all()
        else:
            rows = self._connection.execute(NEWEST_FIRST_BEFORE, {**sought, "before": self._oldest_position}).all()
        self._is_complete = len(rows) < size
        if rows:
            self._oldest_position = rows[-1].position
            self._newest_first += read_messages(self._connection, self._context_id, rows, self._counter)
