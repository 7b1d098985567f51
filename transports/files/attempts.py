"""One try to read what came with an event: where a process ended in the middle of it, it is not read again."""

import asyncio
from types import TracebackType
from typing import Self

from botservice.storage import Storage
from botservice.turns.start.readings import begin_reading, end_reading


class Attempt:
    """The reading of one event's files, as a context manager: only the process's own end leaves it without an end."""

    def __init__(self, storage: Storage | None, event_id: int) -> None:
        self._storage = storage
        self._event_id = event_id
        self._may_read: bool | None = None

    async def begin(self) -> bool:
        """Return whether the event's files may be read; that they are is stored when this returns."""
        if self._storage is None:
            return True
        if self._may_read is None:
            self._may_read = await begin_reading(self._storage, self._event_id)
        return self._may_read

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._may_read and self._storage is not None:
            await asyncio.shield(end_reading(self._storage, self._event_id))
