"""Compaction: deleting old steps, prompts and events, a little at a time."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Literal, TypeVar

from botservice.background import queries
from botservice.config.settings import Settings
from botservice.conversation.reminder_queries import mend_schedules
from botservice.core.background_task import background_task
from botservice.core.errors import BotServiceError
from botservice.core.progress import Progress as Report
from botservice.core.progress import unwatched
from botservice.people.usage_queries import drop_expired, find_strangers, forget_usage
from botservice.privacy.account_queries import release_forgotten
from botservice.privacy.cleaning import clean_all
from botservice.privacy.right_queries import drop_notes, drop_old_exports, forget_rights
from botservice.storage.blobs import sweep_files
from botservice.storage.claims import Claim
from botservice.storage.database import Storage

logger = logging.getLogger(__name__)

FIRST_PASS_SECONDS = 60.0
EVERY_SECONDS = 3600.0
_PAUSE_SECONDS = 0.1  # between two small batches
_REST = 4  # times as long as a batch took: turns have four fifths of the writer to themselves, at least
_NOBODY_S_CONTEXT = 0  # no context has this id: the process that claims it compacts, one at a time

T = TypeVar("T")
Clock = Callable[[], datetime]
Rest = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Retention:
    """How long things are kept; None for ever. Messages always stay.

    Attributes:
        steps: The steps of turns that are done, what models were sent for them, and what was delivered.
        events: What platforms sent, once it is dealt with.
        ledger: What was decided about calls that needed approval.
    """

    steps: timedelta | None = timedelta(days=30)
    events: timedelta | None = timedelta(days=7)
    ledger: timedelta | None = timedelta(days=365)

    @classmethod
    def of(cls, settings: Settings) -> "Retention":
        """Return how long the settings have things kept."""
        kept = settings.keep_steps_days, settings.keep_events_days, settings.ledger_days
        return cls(*(None if days is None else timedelta(days=days) for days in kept))


@dataclass(frozen=True, slots=True)
class Compacted:
    """The numbers of a pass of compaction.

    Attributes:
        turns: How many turns have lost their steps.
        events: How many events were deleted.
        is_whole: Whether there was nothing left to do; otherwise another process was at it.
    """

    turns: int = 0
    events: int = 0
    is_whole: bool = True


class Maintenance:
    """Compacts a storage, in one process at a time."""

    def __init__(
        self,
        storage: Storage,
        retention: Retention = Retention(),
        *,
        clock: Clock | None = None,
        rest: Rest = asyncio.sleep,
        report: Report = unwatched,
    ) -> None:
        """Set up the maintenance.

        Args:
            clock: What time it is; by default what the storage says.
            rest: Called between two batches with the seconds to wait.
            report: Is told how far a pass is.
        """
        self._storage = storage
        self._retention = retention
        self._clock = clock or storage.now
        self._rest = rest
        self._report = report

    @contextlib.asynccontextmanager
    async def running(
        self, *, first_seconds: float = FIRST_PASS_SECONDS, every_seconds: float = EVERY_SECONDS
    ) -> AsyncIterator[None]:
        """Run a pass some time after the block is entered, then again at intervals until it is left."""
        async with background_task(self._repeat(first_seconds, every_seconds), name="botservice-upkeep"):
            yield

    async def run_once(self) -> Compacted:
        """Do a pass, and return what it did.

        Raises:
            DatabaseInUse: another process works on this SQLite file.
            ClaimLost: the connection was lost in between; the next pass goes on.
        """
        claim = await self._storage.claims.try_claim(_NOBODY_S_CONTEXT)
        if claim is None:
            return Compacted(is_whole=False)
        try:
            now = self._clock()
            await self._storage.write(lambda connection: mend_schedules(connection, now), fence=claim)
            is_clean = await self._forget_strangers(claim, now)
            turns = await self._compact_turns(claim, now)
            await clean_all(self._storage)
            await sweep_files(self._storage)
            done = Compacted(turns, await self._delete_events(claim, now))
            ledger = self._retention.ledger
            if ledger is not None:
                is_clean = await self._drop_approvals(claim, now - ledger) and is_clean
            for let_go in (drop_old_exports, forget_rights, drop_notes, release_forgotten, drop_expired):
                count = await self._storage.write(partial(let_go, now=now), fence=claim)
                is_clean = is_clean and not count
            if not (is_clean and self._storage.is_scrubbed):  # an earlier process may have been cut off before that
                await self._storage.scrub()
            return done
        finally:
            await asyncio.shield(self._storage.claims.release(claim))

    async def _repeat(self, first_seconds: float, every_seconds: float) -> None:
        await asyncio.sleep(first_seconds)
        while True:
            try:
                done = await self.run_once()
                if done.turns or done.events:
                    logger.info("upkeep.compacted", extra={"turns": done.turns, "events": done.events})
            except BotServiceError as error:
                logger.warning("upkeep.postponed", extra={"reason": str(error)})
            except Exception:
                logger.exception("upkeep.failed")  # whatever it was: without upkeep, the database only grows
            await asyncio.sleep(every_seconds)

    async def _forget_strangers(self, claim: Claim, now: datetime) -> bool:
        """Remove the names of strangers from usage; return whether there were none left."""
        after, is_last, is_clean = "", False, True
        while not is_last:
            since = time.monotonic()
            found = await self._storage.read(partial(find_strangers, after=after, now=now))
            if found.names:
                is_clean = False
                await self._storage.write(partial(forget_usage, names=found.names, now=now), fence=claim)
            after, is_last = found.last, found.is_last
            await self._rest(_REST * (time.monotonic() - since))
        return is_clean

    async def _drop_approvals(self, claim: Claim, before: datetime) -> bool:
        """Delete what was decided before a moment; return whether there was nothing."""
        drop, is_clean = partial(queries.delete_approvals, before=before), True
        while await self._storage.write(drop, fence=claim):
            is_clean = False
            await self._rest(_PAUSE_SECONDS)
        return is_clean

    async def _compact_turns(self, claim: Claim, now: datetime) -> int:
        if self._retention.steps is None:
            return 0
        before = now - self._retention.steps
        await self._storage.write(lambda connection: queries.delete_old_reminders(connection, before), fence=claim)
        count = 0
        async for by_context in self._old_rows("turns", partial(queries.read_old_turns, before=before)):
            for context_id, turn_ids in by_context.items():
                count += await self._compact(context_id, turn_ids, claim, now)
        return count

    async def _compact(self, context_id: int, turn_ids: list[int], claim: Claim, now: datetime) -> int:
        """Delete the steps of turns of one context, and return of how many turns."""
        doomed = await self._storage.read(lambda connection: queries.read_doomed(connection, context_id, turn_ids))
        if not doomed.turn_ids:
            return 0
        await self._storage.write(lambda connection: queries.delete_doomed(connection, doomed, now), fence=claim)
        return len(doomed.turn_ids)

    async def _delete_events(self, claim: Claim, now: datetime) -> int:
        if self._retention.events is None:
            return 0
        before = now - self._retention.events
        while await self._storage.write(partial(queries.delete_buttons, before=before), fence=claim):
            await self._rest(_PAUSE_SECONDS)
        count = 0
        async for ids in self._old_rows("events", partial(queries.read_old_events, before=before)):
            if ids:
                await self._storage.write(partial(queries.delete_events, ids=ids), fence=claim)
            count += len(ids)
        return count

    async def _old_rows(
        self, table: Literal["turns", "events"], read: Callable[..., queries.Batch[T]]
    ) -> AsyncIterator[T]:
        """Yield what is old enough of a table, a little at a time, with a rest after each time."""
        after, is_last = 0, False
        newest = await self._storage.read(partial(queries.read_newest, table=table))
        while not is_last:
            since = time.monotonic()
            batch = await self._storage.read(partial(read, after=after))
            yield batch.old
            after, is_last = batch.last_id, batch.is_last
            self._report(after, newest, table)
            await self._rest(_REST * (time.monotonic() - since))
