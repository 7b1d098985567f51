"""How much SQLite does for what is asked of it, counted in steps of its machine: not in time, which others take too."""

import asyncio
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
        storage.issue = self._issuing(storage.issue)  # type: ignore[method-assign]

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

    def _issuing(self, issue: Callable[..., Any]) -> Callable[..., Any]:
        """Return what issues a write; every write is issued."""

        async def noted(issued: asyncio.Future[Any]) -> Any:
            result, effort = await issued
            self.writes.append(effort)
            return result

        def issuing(operation: Callable[[Connection], Any], **options: Any) -> asyncio.Future[Any]:
            return asyncio.ensure_future(noted(issue(lambda connection: _counted(connection, operation), **options)))

        return issuing


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
