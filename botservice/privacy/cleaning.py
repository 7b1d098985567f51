"""Removing what is forgotten from the records of chats: queued work of each chat, finished under its claim.

What is forgotten is gone from the history, the facts and the notes at once. Its traces in the records of work go after
that, a little at a time, because there may be many of them. They are queued in the transaction that forgets, so that
they go even if the process ends.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from datetime import datetime
from functools import partial
from typing import Final, TypeVar

from botservice.core.errors import DatabaseInUse
from botservice.people.facts import Known
from botservice.people.queries import identities_of
from botservice.privacy import queries, record_queries
from botservice.storage.claims import Claim
from botservice.storage.database import Connection, Storage
from botservice.storage.statements import chunks

_REST: Final = 1  # times as long as a bite took: one person waits for the end, and others for their turns
_TEXTS_AT_ONCE: Final = 20
_PAUSES: Final = (0.0, 0.05, 0.15, 0.3, 0.5, 0.7)  # seconds: a chat is mostly held for a moment
_DIGESTS_AT_ONCE: Final = 100

T = TypeVar("T")
Find = Callable[[Connection, int], list[int]]
"""Returns the next few rows behind one."""

Bite = Callable[[Connection, list[int]], T]


def queue_facts(connection: Connection, known: Collection[Known], now: datetime) -> None:
    """Ask for deleted facts to be removed from the records of every chat of their persons."""
    for person_id in sorted({each.person_id for each in known}):
        authors = [each.author for each in identities_of(connection, person_id)]
        texts = {each.text for each in known if each.person_id == person_id}
        record_queries.queue_texts(connection, queries.contexts_of(connection, authors), texts, now)


async def clean_and_scrub(storage: Storage, held: Claim | None = None) -> None:
    """Do all that is queued, and overwrite the bytes."""
    await clean_all(storage, held)
    await storage.scrub()


async def clean_all(storage: Storage, held: Claim | None = None) -> None:
    """Do all that is queued, in every chat.

    Where a turn goes on for longer, what it has stored so far is cleaned, and the chat stays queued for the holder.

    Args:
        held: The claim of the caller on the chat in which this was asked for.
    """
    for pause_seconds in _PAUSES:
        await asyncio.sleep(pause_seconds)
        chats = await storage.read(record_queries.find_chats_to_clean)
        for context_id in chats:
            await _clean_if_free(storage, context_id, held)
        if not chats:
            return
    for context_id in await storage.read(record_queries.find_chats_to_clean):
        await clean_chat(storage, context_id, None)


async def _clean_if_free(storage: Storage, context_id: int, held: Claim | None) -> None:
    if held is not None and held.context_id == context_id:
        await clean_chat(storage, context_id, held)
        return
    try:
        claim = await storage.claims.try_claim(context_id)
    except DatabaseInUse:  # a service works on this file
        return
    if claim is None:
        return
    try:
        await clean_chat(storage, context_id, claim)
    finally:
        await asyncio.shield(storage.claims.release(claim))


async def clean_chat(storage: Storage, context_id: int, claim: Claim | None) -> None:
    """Do what is queued for a chat.

    Without its claim it stays queued: a turn that is under way may hold a deleted fact in memory, and stores that with
    its next step. The holder of the claim cleans once more, after that turn.
    """
    for each in await storage.read(partial(record_queries.read_cleanings, context_id=context_id)):
        for some in chunks(each.texts, _TEXTS_AT_ONCE):
            await _remove_texts(storage, context_id, some)
        if each.turns is not None:
            first, last = each.turns
            find = partial(record_queries.find_recorded, context_id=context_id, last=last)
            clear = partial(record_queries.clear_turns, now=storage.now())
            await do_in_bites(storage, find, clear, after=first - 1)
        if claim is not None:
            await storage.write(partial(record_queries.end_cleaning, row_id=each.id), fence=claim)


async def _remove_texts(storage: Storage, context_id: int, texts: Sequence[str]) -> None:
    spellings = [spelling for text in texts for spelling in record_queries.spellings_of(text)]
    for place in record_queries.PLACES:
        find = partial(record_queries.find_holding_rows, context_id=context_id, place=place, spellings=spellings)
        await do_in_bites(storage, find, partial(record_queries.erase_texts, place=place, spellings=spellings))
    gone = await storage.read(partial(record_queries.find_long_texts, context_id=context_id, texts=texts), is_long=True)
    for chunk in chunks(gone, _DIGESTS_AT_ONCE):
        await storage.write(partial(record_queries.delete_long_texts, context_id=context_id, digests=chunk))


async def bites(storage: Storage, find: Find, bite: Bite[T], *, after: int = 0) -> AsyncIterator[T]:
    """Do something to rows, a few at a time and with a rest after each time; yield what comes of it."""
    while ids := await storage.read(partial(_find_next, find=find, after=after), is_long=True):
        since, after = time.monotonic(), ids[-1]
        yield await storage.write(partial(_do, bite=bite, ids=ids))
        await asyncio.sleep(_REST * (time.monotonic() - since))


async def do_in_bites(storage: Storage, find: Find, bite: Bite[T], *, after: int = 0) -> None:
    """Do something to rows, a few at a time."""
    async for _ in bites(storage, find, bite, after=after):
        pass


def _find_next(connection: Connection, find: Find, after: int) -> list[int]:
    return find(connection, after)


def _do(connection: Connection, bite: Bite[T], ids: list[int]) -> T:
    return bite(connection, ids)
