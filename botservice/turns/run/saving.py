"""Storing what changed in a context's memory and metadata, under the claim of whoever works on it."""

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlalchemy import Connection, bindparam, select

from botservice.contexts.context import AgentContext, write_metadata
from botservice.errors import ClaimLost
from botservice.memory import MemoryItem
from botservice.storage import Claim
from botservice.storage.statements import execute
from botservice.storage.tables.conversations import turns

T = TypeVar("T")
Also = Callable[[Connection, Sequence[int]], T]
"""Writes something in the same transaction; takes the ids of the rows that steps were added as."""

# Locked, so that whoever forgets it at this moment waits: the turn goes first, and then what it wrote.
_TURN = select(turns.c.id).where(turns.c.id == bindparam("turn")).with_for_update(read=True, key_share=True)


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
            _check_turn(connection, context.turn_id)
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

        writing = context.storage.issue(operation, fence=self._claim, sort_key=(context.id,), is_confined=True)
        try:
            written = await asyncio.shield(writing)
        except asyncio.CancelledError:
            confirm(await writing)  # a write that was issued happens: know of it before going away
            raise
        confirm(written)


def _check_turn(connection: Connection, turn_id: int | None) -> None:
    """Return if the turn that is worked on still exists: what was forgotten meanwhile must not be written back.

    Raises:
        ClaimLost: it does not.
    """
    if turn_id is not None and execute(connection, _TURN, {"turn": turn_id}).one_or_none() is None:
        raise ClaimLost(f"turn {turn_id} was forgotten while it was worked on")


def _ignore(_: object) -> None:
    return None
