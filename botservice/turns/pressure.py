"""How much is waiting, and when nothing more is taken in: platforms deliver again, memory does not grow."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from datetime import datetime
from typing import NoReturn

from sqlalchemy import Connection, func, select

from botservice.errors import InboxFull, StorageUnavailable
from botservice.storage import Storage
from botservice.storage.tables.conditions import DELIVERY_IS_OWED, TURN_IS_OPEN
from botservice.storage.tables.conversations import deliveries, turns
from botservice.turns.records import count_waiting
from botservice.turns.turn import TurnStatus

logger = logging.getLogger(__name__)

MAX_WAITING = 10_000
MAX_STORING = 1_000
MAX_STORING_BYTES = 64 * 1024 * 1024
_LOOK_SECONDS = 1.0
_OPEN_TURNS = (
    select(turns.c.status, func.count().label("number"), func.min(turns.c.created_at).label("oldest"))
    .where(TURN_IS_OPEN)
    .group_by(turns.c.status)
)
_OPEN_DELIVERIES = select(func.count()).select_from(deliveries).where(DELIVERY_IS_OWED)


class Pressure:
    """Counts what waits.

    One query a second looks; on the accepting path nothing is asked, only counted. So the limit is kept as closely as
    what other replicas take in during that second.

    Attributes:
        waiting: How many turns of all contexts were not done when it last looked, and how many messages came since.
        storing: How many messages wait for their commit.
        storing_bytes: How long these are in all.
    """

    def __init__(
        self,
        *,
        max_waiting: int = MAX_WAITING,
        max_storing: int = MAX_STORING,
        max_storing_bytes: int = MAX_STORING_BYTES,
    ) -> None:
        self._max_waiting = max_waiting
        self._max_storing = max_storing
        self._max_storing_bytes = max_storing_bytes
        self.waiting = 0
        self.storing = 0
        self.storing_bytes = 0

    @contextlib.contextmanager
    def taking(self, count: int, size: int = 0) -> Iterator[None]:
        """Count messages that are stored within the block, and their bytes.

        Raises:
            InboxFull: there is no room for them (when it is entered).
        """
        self._check(count, size)
        self.storing += count
        self.storing_bytes += size
        try:
            yield
        finally:
            self.storing -= count
            self.storing_bytes -= size
        self.waiting += count

    def _check(self, count: int, size: int) -> None:
        if count and self.waiting + self.storing + count > self._max_waiting:
            raise InboxFull(f"{self.waiting} turns are waiting, and MAX_WAITING is {self._max_waiting}")
        is_much = self.storing + count > self._max_storing or self.storing_bytes + size > self._max_storing_bytes
        if count and self.storing and is_much:
            raise InboxFull(f"{self.storing} messages wait to be stored: the database cannot keep up")

    @contextlib.asynccontextmanager
    async def watching(self, storage: Storage) -> AsyncIterator[None]:
        """Keep count within the block."""
        watching = asyncio.create_task(self.watch(storage), name="botservice-pressure")
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.wait([watching])

    async def watch(self, storage: Storage) -> NoReturn:
        """Look how many turns are not done, again and again, until cancelled."""
        while True:
            try:
                self.waiting = await storage.read(count_waiting)
            except StorageUnavailable:
                logger.debug("pressure.not_known")  # whoever accepts meanwhile fails by itself
            await asyncio.sleep(_LOOK_SECONDS)


def read_waiting(connection: Connection, now: datetime) -> dict[str, float]:
    """Return how many turns and messages of all contexts are not done, and how old the oldest question is."""
    rows = {row.status: row for row in connection.execute(_OPEN_TURNS).all()}
    kinds = (TurnStatus.QUEUED, TurnStatus.RUNNING)
    numbers = {f"turns_{kind.value}": rows[kind.value].number if kind.value in rows else 0 for kind in kinds}
    queued = rows.get(TurnStatus.QUEUED.value)
    oldest = 0.0 if queued is None else max(0.0, (now - queued.oldest).total_seconds())
    owed = connection.execute(_OPEN_DELIVERIES).scalar_one()
    return {**numbers, "oldest_queued_seconds": oldest, "deliveries": owed}
