"""Whether what somebody did may take effect, judged at the moment at which it would.

Between the moment at which something was accepted and this one, an owner may have taken its author out.
"""

import logging
from collections.abc import Mapping, Sequence

from botservice.errors import ClaimLost, StorageUnavailable
from botservice.storage import Storage
from botservice.turns.changes import Change
from botservice.turns.options import RunOptions
from botservice.turns.transport import Transport, glimpse
from botservice.turns.turn import StoredEvent

logger = logging.getLogger(__name__)


class Effects:
    """Judges stops, edits and whatever else takes effect without a turn of its own."""

    def __init__(self, storage: Storage, options: RunOptions, transports: Mapping[str, Transport]) -> None:
        self._storage = storage
        self._access = options.access
        self._clock = options.clock
        self._transports = transports

    async def may(self, event: StoredEvent, transport: str, context_keys: Mapping[str, str]) -> bool:
        """Return whether an event may take effect now. One that names nobody may: the platform itself sent it.

        What cannot be read has no effect.
        """
        reader = self._transports.get(transport)
        if reader is None or await self._access.is_idle(self._storage):
            return True
        try:
            message = await glimpse(reader)(event) if event.raw else None
        except (ClaimLost, StorageUnavailable):
            raise
        except Exception:  # it must not keep what comes after it in this conversation
            logger.exception("turn.effect_unreadable", extra={"event": event.id})
            return False
        if message is None:
            return True
        ruling = await self._access.judge(self._storage, message, context_keys, self._clock())
        if not ruling.is_admitted:
            logger.info("turn.without_effect", extra={"event": event.id})
        return ruling.is_admitted

    async def newest(self, changes: Sequence[Change], context_keys: Mapping[str, str]) -> Change | None:
        """Return the newest of some changes that may take effect."""
        for change in reversed(changes):
            if await self.may(change.event, change.transport, context_keys):
                return change
        return None
