"""New forms of messages: tried where a platform may take them, and never again where it did not."""

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from sqlalchemy.exc import IntegrityError

from botservice.errors import BotServiceError
from botservice.storage import Storage
from botservice.turns.forms import is_refused, note_refused

logger = logging.getLogger(__name__)

_MAX_KNOWN = 10_000
_Known = tuple[tuple[tuple[str, str], ...], str]


class Forms:
    """Which forms the conversations of a transport take. What one has refused is stored, for every process."""

    def __init__(
        self, storage: Callable[[], Storage | None], clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._refused: dict[_Known, None] = {}

    async def takes(self, context_keys: Mapping[str, str], form: str) -> bool:
        """Return whether a form may be tried in a conversation."""
        storage, known = self._storage(), _known(context_keys, form)
        if storage is None or known in self._refused:
            return False
        if await storage.read(lambda connection: is_refused(connection, context_keys, form), is_short=True):
            self._remember(known)
            return False
        return True

    async def refuse(self, context_keys: Mapping[str, str], form: str, reason: str) -> None:
        """Take note that a form was refused: it is said once, and not tried in that conversation again."""
        storage, now = self._storage(), self._clock()
        self._remember(_known(context_keys, form))
        logger.warning("transport.form_refused", extra={"form": form, "reason": reason})
        if storage is None:
            return
        try:
            await storage.write(lambda connection: note_refused(connection, context_keys, form, now))
        except (BotServiceError, IntegrityError) as error:  # another process has noted it, or will
            logger.info("transport.form_not_noted", extra={"form": form, "reason": type(error).__name__})

    def _remember(self, known: _Known) -> None:
        if len(self._refused) >= _MAX_KNOWN:
            del self._refused[next(iter(self._refused))]
        self._refused[known] = None


def _known(context_keys: Mapping[str, str], form: str) -> _Known:
    return tuple(sorted(context_keys.items())), form
