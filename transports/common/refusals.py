"""What a platform has refused: said once, stored for every process, and not tried again in the same place."""

import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from typing import ClassVar, Final, Generic, TypeVar

from cachetools import FIFOCache

from botservice.core.errors import BotServiceError
from botservice.storage.database import IntegrityError, Storage

logger = logging.getLogger(__name__)

_MAX_PLACES: Final = 10_000

Where = TypeVar("Where")
What = TypeVar("What", bound=str)
Why = TypeVar("Why")


class Refusals(ABC, Generic[Where, What, Why]):
    """Knows what was refused where. Each platform keeps it in a table of its own.

    Attributes:
        is_for_good: Whether what was refused once is never tried again.
        fresh_seconds: How long what was read counts; so late, others' notes are seen.
    """

    is_for_good: ClassVar[bool]
    fresh_seconds: ClassVar[float]

    def __init__(self, storage: Callable[[], Storage | None]) -> None:
        self._storage = storage
        self._known: FIFOCache[Hashable, tuple[frozenset[What], float]] = FIFOCache(_MAX_PLACES)

    async def of(self, where: Where) -> frozenset[What]:
        """Return all that was refused in a place.

        Raises:
            StorageUnavailable: nobody can say.
        """
        known, until = self._remembered(where)
        storage = self._storage()
        if storage is None or until > time.monotonic():
            return known
        found = frozenset(await self._read(storage, where))
        if self.is_for_good:  # what could not be stored is not forgotten
            found |= known
        self._keep(where, found)
        return found

    async def takes(self, where: Where, what: What) -> bool:
        """Return whether something may be tried in a place."""
        if self.is_for_good and what in self._remembered(where)[0]:
            return False
        return what not in await self.of(where)

    async def note(self, where: Where, what: What, why: Why) -> None:
        """Take note of a refusal, and say so once. Where it cannot be stored, this process alone knows of it."""
        storage = self._storage()
        try:
            known = await self.of(where)
        except BotServiceError:
            known = self._remembered(where)[0]
        if what in known:
            return
        self._keep(where, known | {what})
        self._say(where, what, why)
        if storage is None:
            return
        try:
            await self._write(storage, where, what)
        except (BotServiceError, IntegrityError) as error:  # another process has noted it, or will
            logger.info("transport.refusal_not_noted", extra={"what": what, "reason": type(error).__name__})

    @abstractmethod
    async def _read(self, storage: Storage, where: Where) -> set[What]:
        """Return what is stored of a place."""

    @abstractmethod
    async def _write(self, storage: Storage, where: Where, what: What) -> None:
        """Store a refusal."""

    @abstractmethod
    def _say(self, where: Where, what: What, why: Why) -> None:
        """Tell the log of a refusal."""

    def _name(self, where: Where) -> Hashable:
        """Return what a place is called here."""
        return where

    def _remembered(self, where: Where) -> tuple[frozenset[What], float]:
        return self._known.get(self._name(where), (frozenset(), 0.0))

    def _keep(self, where: Where, refused: frozenset[What]) -> None:
        self._known[self._name(where)] = refused, time.monotonic() + self.fresh_seconds
