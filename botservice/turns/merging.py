"""Two conversations that turn out to be one: what the newer one has goes on the end of the older one."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from typing import Any, Final

from sqlalchemy import Connection, delete, func, select, update

from botservice.contexts import ContextKeys, find_context, rename_context
from botservice.errors import TurnInProgress
from botservice.storage import Claim, Storage
from botservice.storage.tables import blobs, contexts, messages, metadata, steps, word_blocks

logger = logging.getLogger(__name__)

_PATIENCE_SECONDS: Final = 600.0  # a turn that runs in either of them is let through to its end
_LONGEST_PAUSE_SECONDS: Final = 1.0
# What is not simply moved: positions go on, files are there once, and blocks of words are made anew.
_SPECIAL: Final = (contexts, messages, steps, blobs, word_blocks)
_OTHERS: Final = [
    table
    for table in metadata.sorted_tables
    if table not in _SPECIAL and any(each.column is contexts.c.id for each in table.foreign_keys)
]


async def move_context(
    storage: Storage, old: ContextKeys, new: ContextKeys, *, patience_seconds: float = _PATIENCE_SECONDS
) -> bool:
    """Have the conversation with old keys go on under new ones; return whether there was one.

    Where somebody has spoken under the new keys already, that becomes its end.

    Raises:
        TurnInProgress: turns ran there for all the time that there is.
    """
    if await storage.write(lambda connection: rename_context(connection, old, new)):
        return True
    there = await storage.read(lambda connection: (find_context(connection, old), find_context(connection, new)))
    older, newer = there
    if older is None or newer is None:
        return False
    async with contextlib.AsyncExitStack() as stack:
        try:
            async with asyncio.timeout(patience_seconds):
                await stack.enter_async_context(_claimed(storage, older))
                claim = await stack.enter_async_context(_claimed(storage, newer))
        except TimeoutError:
            raise TurnInProgress(f"contexts {older} and {newer} are being worked on") from None

        def merge(connection: Connection) -> None:
            _merge(connection, older, newer)
            rename_context(connection, old, new)

        await storage.write(merge, fence=claim)
    return True


@contextlib.asynccontextmanager
async def _claimed(storage: Storage, context_id: int) -> AsyncIterator[Claim]:
    pause_seconds = 0.01
    while (claim := await storage.claims.try_claim(context_id)) is None:
        await asyncio.sleep(pause_seconds)
        pause_seconds = min(pause_seconds * 2, _LONGEST_PAUSE_SECONDS)
    try:
        yield claim
    finally:
        await asyncio.shield(storage.claims.release(claim))


def _merge(connection: Connection, older: int, newer: int) -> None:
    """Move everything of a context to the end of another, and delete it."""
    query = select(contexts.c.id, contexts.c.last_position, contexts.c.fresh_from, contexts.c.metadata)
    rows = {row.id: row for row in connection.execute(query.where(contexts.c.id.in_([older, newer])).with_for_update())}
    first, second = rows[older], rows[newer]
    offset = first.last_position
    moved: dict[Any, Any] = {"context_id": older}
    position = {"position": messages.c.position + offset}
    connection.execute(update(messages).where(messages.c.context_id == newer).values({**moved, **position}))
    last_step = select(func.coalesce(func.max(steps.c.position), 0.0)).where(steps.c.context_id == older)
    after = {"position": steps.c.position + connection.execute(last_step).scalar_one()}
    connection.execute(update(steps).where(steps.c.context_id == newer).values({**moved, **after}))
    known = select(blobs.c.sha256).where(blobs.c.context_id == older)
    connection.execute(
        update(blobs).where(blobs.c.context_id == newer, blobs.c.sha256.not_in(known.scalar_subquery())).values(moved)
    )
    connection.execute(delete(blobs).where(blobs.c.context_id == newer))
    for table in _OTHERS:
        connection.execute(update(table).where(table.c.context_id == newer).values(moved))
    connection.execute(delete(contexts).where(contexts.c.id == newer))
    values = {
        "last_position": offset + second.last_position,
        "deletion_version": contexts.c.deletion_version + 1,
        "fresh_from": offset + second.fresh_from if second.fresh_from else first.fresh_from,
        "metadata": {**second.metadata, **first.metadata},
    }
    connection.execute(update(contexts).where(contexts.c.id == older).values(values))
