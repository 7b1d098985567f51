"""Clearing a long conversation a little at a time, before one transaction deletes the rest.

Other writers wait for that transaction: it must not grow with the conversation. Cleared beforehand are records of
work that is over. Nothing refers to them, and a process that is cut off in between clears the rest when asked again.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Select, bindparam, delete, func, select, update

from botservice.history.queries import delete_rows
from botservice.privacy.affected_turns import HAS_RECORDS, IS_OVER
from botservice.privacy.deletion_counts import Forgotten, count_messages
from botservice.privacy.erasing import delete_turns, forget_words_of
from botservice.privacy.names_left import DELIVERED_AGAIN
from botservice.storage.chunks import chunks
from botservice.storage.database import Storage
from botservice.storage.tables.conditions import MESSAGE_IS_OF_A_PERSON
from botservice.storage.tables.conversations import events, messages, turns

_TURNS_AT_ONCE: Final = 100
_REST: Final = 1  # times as long as a bite took: one person waits for the end, and others for their turns

_OVER = (
    select(turns.c.id)
    .where(turns.c.context_id == bindparam("context"), turns.c.id > bindparam("after"), IS_OVER)
    .order_by(turns.c.id)
    .limit(_TURNS_AT_ONCE)
)
_RECORDED = _OVER.where(HAS_RECORDS)
_ROWS_AT_ONCE: Final = 200
_LAST_SAID: Final = select(func.max(messages.c.position)).where(
    messages.c.context_id == bindparam("context"), MESSAGE_IS_OF_A_PERSON
)
# What was found is deleted: the next ones are the first again.
_MESSAGES: Final = (
    select(messages.c.id)
    .where(messages.c.context_id == bindparam("context"), messages.c.position < bindparam("up_to"))
    .order_by(messages.c.position)
    .limit(_ROWS_AT_ONCE)
)
_NAMES: Final = (
    select(events.c.id)
    .where(
        events.c.context_id == bindparam("context"),
        events.c.id > bindparam("after"),
        events.c.turn_id.is_(None),
        events.c.handled_at.is_not(None),
        events.c.received_at < bindparam("before"),
    )
    .order_by(events.c.id)
    .limit(_ROWS_AT_ONCE)
)

T = TypeVar("T")
Beside = Callable[[Connection, int], tuple[Forgotten, int]]
"""Erases elsewhere what references behind a row hold; returns what was deleted, and the newest row."""

Bite = Callable[[Connection, Sequence[int]], T]


async def clear_work(
    storage: Storage, context_id: int, first: int, bite: Bite[None], *, but_turn: int | None = None
) -> None:
    """Do something to the turns of a conversation that are over and have records of their work, from one turn on."""
    async for _ in bites(storage, _RECORDED, {"context": context_id}, bite, after=first - 1, but=but_turn):
        pass


def last_said(connection: Connection, context_id: int) -> int:
    """Return where the last message of a person stands; 0 where there is none."""
    return connection.execute(_LAST_SAID, {"context": context_id}).scalar_one() or 0


async def empty_chat(
    storage: Storage,
    context_id: int,
    up_to: int,
    *,
    but_turn: int | None = None,
    beside: Beside | None = None,
    seen: int = 0,
) -> Forgotten:
    """Delete what is over of a conversation, and return what was deleted.

    A process that is cut off in between finds it again by its last message, which stays until the rest goes.

    Args:
        up_to: Before which position messages are deleted.
        but_turn: The turn in which that is asked for.
        beside: What goes before messages do, as it is known by these alone.
        seen: Up to which row of what is held of others all of that is gone.
    """
    now, gone = storage.now(), Forgotten()
    here = {"context": context_id}
    async for _ in bites(storage, _OVER, here, partial(delete_turns, now=now), but=but_turn):
        pass

    def delete_some(connection: Connection, ids: Sequence[int]) -> tuple[Forgotten, int]:
        elsewhere, newest = (Forgotten(), 0) if beside is None else beside(connection, seen)
        return elsewhere + _delete_messages(connection, ids, context_id), newest

    async for some, newest in bites(storage, _MESSAGES, {**here, "up_to": up_to}, delete_some):
        gone, seen = gone + some, newest
    async for _ in bites(storage, _NAMES, {**here, "before": now - DELIVERED_AGAIN}, _delete_names):
        pass
    return gone


async def bites(
    storage: Storage,
    query: Select[int],
    values: Mapping[str, Any],
    bite: Bite[T],
    *,
    after: int = 0,
    but: int | None = None,
) -> AsyncIterator[T]:
    """Do something to rows, a few at a time and with a rest after each time; yield what comes of it.

    Args:
        query: The ids of the next few, in order, behind the one that is bound as "after".
        but: Leave this one alone.
    """
    while ids := await storage.read(partial(_read_next, query=query, values={**values, "after": after}), is_long=True):
        since, after = time.monotonic(), ids[-1]
        yield await storage.write(partial(_do, bite=bite, ids=[each for each in ids if each != but]))
        await asyncio.sleep(_REST * (time.monotonic() - since))


def forget_work(connection: Connection, turn_ids: Sequence[int], now: datetime) -> None:
    """Delete the steps and prompts of turns that are over, what was shown of them, and what platforms sent for them."""
    for chunk in chunks(turn_ids):
        forget_words_of(connection, chunk)
        connection.execute(update(events).where(events.c.turn_id.in_(chunk)).values(raw=None))
        connection.execute(update(turns).where(turns.c.id.in_(chunk)).values(compacted_at=now))


def _do(connection: Connection, bite: Bite[T], ids: Sequence[int]) -> T:
    return bite(connection, ids)


def _read_next(connection: Connection, query: Select[int], values: Mapping[str, Any]) -> list[int]:
    return [row[0] for row in connection.execute(query, values)]


def _delete_messages(connection: Connection, ids: Sequence[int], context_id: int) -> Forgotten:
    gone = count_messages(connection, context_id, ids)
    delete_rows(connection, context_id, ids)
    return gone


def _delete_names(connection: Connection, ids: Sequence[int]) -> None:
    connection.execute(delete(events).where(events.c.id.in_(ids)))
