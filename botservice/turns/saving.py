"""Storing what changed in a context's memory and metadata, under the claim of whoever works on it."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlalchemy import Connection

from botservice.contexts import AgentContext, write_metadata
from botservice.memory import MemoryItem
from botservice.storage import Claim

T = TypeVar("T")
Also = Callable[[Connection, Sequence[int]], T]
"""Writes something in the same transaction; takes the ids of the rows that steps were added as."""


def _nothing(_connection: Connection, _row_ids: Sequence[int]) -> None:
    return None


class Saver:
    """Stores what is new in one context."""

    def __init__(self, context: AgentContext, claim: Claim) -> None:
        self._context = context
        self._claim = claim

    async def save(self, opened: MemoryItem | None = None) -> None:
        """Store what changed; nothing happens where nothing did.

        Args:
            opened: A step that is in no list yet, because its calls have not all ended.

        Raises:
            ClaimLost: somebody else works on the context.
            InvalidField: something that is no item was put among the steps.
        """
        await self._write(_nothing, _ignore, opened, is_due=False)

    async def save_with(self, also: Also[T], then: Callable[[T], object], opened: MemoryItem | None = None) -> None:
        """Store what changed in one transaction with what `also` writes.

        Args:
            then: Called with what `also` returned as soon as it is committed, also where the caller was cancelled.
        """
        await self._write(also, then, opened, is_due=True)

    async def _write(
        self, also: Also[T], then: Callable[[T], object], opened: MemoryItem | None, *, is_due: bool
    ) -> None:
        context = self._context
        changes = context.records.changes(context.memory.steps, opened)
        metadata = context.changed_metadata()
        if not changes and metadata is None and not is_due:
            return

        def operation(connection: Connection) -> tuple[list[int], T]:
            row_ids = context.records.apply(connection, changes)
            if metadata is not None:
                write_metadata(connection, context.id, metadata)
            return row_ids, also(connection, row_ids)

        def confirm(written: tuple[list[int], T]) -> None:
            row_ids, result = written
            context.records.confirm(changes, row_ids)
            if metadata is not None:
                context.confirm_metadata(metadata)
            then(result)

        writing = asyncio.ensure_future(context.storage.write(operation, fence=self._claim, sort_key=(context.id,)))
        try:
            written = await asyncio.shield(writing)
        except asyncio.CancelledError:
            confirm(await writing)  # a write that was issued happens: know of it before going away
            raise
        confirm(written)


def _ignore(_: object) -> None:
    return None
