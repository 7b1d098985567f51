"""How much SQLite does for what is asked of it, counted in steps of its machine: not in time, which others take too."""

from collections.abc import Callable
from typing import Any

from sqlalchemy import Connection

from botservice import Storage

_STEPS_AT_ONCE = 100


class Efforts:
    """Notes what every read and every write of a storage takes, from when it is made."""

    def __init__(self, storage: Storage) -> None:
        self.reads: list[int] = []
        self.writes: list[int] = []
        storage.read = self._noting(storage.read, self.reads)  # type: ignore[method-assign]
        storage.write = self._noting(storage.write, self.writes)  # type: ignore[method-assign]

    def most(self) -> tuple[int, int]:
        """Return what the greatest read and the greatest write took since the last time."""
        found = max(self.reads, default=0), max(self.writes, default=0)
        self.reads.clear()
        self.writes.clear()
        return found

    def _noting(self, run: Callable[..., Any], notes: list[int]) -> Callable[..., Any]:
        async def noting(operation: Callable[[Connection], Any], **options: Any) -> Any:
            result, effort = await run(lambda connection: _counted(connection, operation), **options)
            notes.append(effort)
            return result

        return noting


def _counted(connection: Connection, operation: Callable[[Connection], Any]) -> tuple[Any, int]:
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += _STEPS_AT_ONCE

    driver: Any = connection.connection.dbapi_connection
    driver.set_progress_handler(count, _STEPS_AT_ONCE)
    try:
        return operation(connection), steps
    finally:
        driver.set_progress_handler(None, 0)
