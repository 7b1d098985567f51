"""How much is waiting, and when nothing more is taken in: platforms deliver again, memory does not grow."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Iterator
from typing import NoReturn

from botservice.errors import InboxFull, StorageUnavailable
from botservice.storage import Storage
from botservice.turns.records import count_waiting

logger = logging.getLogger(__name__)

MAX_WAITING = 10_000
MAX_STORING = 1_000
MAX_STORING_BYTES = 64 * 1024 * 1024
_LOOK_SECONDS = 1.0


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
