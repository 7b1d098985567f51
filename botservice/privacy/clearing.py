"""Clearing a long conversation a little at a time, before what is left of it goes in one transaction.

Whoever writes waits for that transaction: it must not grow with the conversation. Cleared beforehand are records of
work that is over. Nothing refers to them, and whoever is cut off in between clears the rest when asked again.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Final

from sqlalchemy import ColumnElement, Connection, and_, bindparam, delete, exists, or_, select, update

from botservice.storage import Storage
from botservice.storage.chunks import chunks
from botservice.storage.tables.conversations import deliveries, events, prompt_log, steps, turns
from botservice.storage.tables.waiting import pending_calls

_TURNS_AT_ONCE: Final = 100
_REST: Final = 1  # times as long as a bite took: somebody waits for the end, and others for their turns

_IS_OWED = exists().where(deliveries.c.turn_id == turns.c.id, deliveries.c.finished_at.is_(None))
_IS_KEPT = exists().where(events.c.turn_id == turns.c.id, events.c.raw.is_not(None))
_IS_OVER = and_(turns.c.status == "done", ~_IS_OWED)
_HAS_RECORDS = or_(turns.c.compacted_at.is_(None), turns.c.error.is_not(None), _IS_KEPT)
_NEXT = (
    select(turns.c.id)
    .where(turns.c.context_id == bindparam("context"), turns.c.id > bindparam("after"), _IS_OVER, _HAS_RECORDS)
    .order_by(turns.c.id)
    .limit(_TURNS_AT_ONCE)
)

Bite = Callable[[Connection, Sequence[int]], None]


def is_cleared() -> ColumnElement[bool]:
    """Return the condition for turns that are over and have no record of their work any more."""
    return and_(_IS_OVER, ~_HAS_RECORDS)


async def clear_work(storage: Storage, context_id: int, first: int, bite: Bite, *, but_turn: int | None = None) -> None:
    """Do something to the turns of a conversation that are over and have records of their work, from one turn on.

    Args:
        bite: What to do to a few of them.
    """
    after = first - 1
    while ids := await storage.read(partial(_read_next, context_id=context_id, after=after), is_long=True):
        since, after = time.monotonic(), ids[-1]
        chosen = [each for each in ids if each != but_turn]
        await storage.write(partial(_do, bite=bite, turn_ids=chosen))
        await asyncio.sleep(_REST * (time.monotonic() - since))


def forget_work(connection: Connection, turn_ids: Sequence[int], now: datetime) -> None:
    """Delete the steps and prompts of turns that are over, what was shown of them, and what platforms sent for them."""
    for chunk in chunks(turn_ids):
        for table in (steps, prompt_log, pending_calls):
            connection.execute(delete(table).where(table.c.turn_id.in_(chunk)))
        shown = update(deliveries).where(deliveries.c.turn_id.in_(chunk), deliveries.c.finished_at.is_not(None))
        connection.execute(shown.values(payload={}, buttons=None, error=None))
        connection.execute(update(events).where(events.c.turn_id.in_(chunk)).values(raw=None))
        connection.execute(update(turns).where(turns.c.id.in_(chunk)).values(error=None, compacted_at=now))


def _do(connection: Connection, bite: Bite, turn_ids: Sequence[int]) -> None:
    bite(connection, turn_ids)


def _read_next(connection: Connection, context_id: int, after: int) -> Sequence[int]:
    return connection.execute(_NEXT, {"context": context_id, "after": after}).scalars().all()
