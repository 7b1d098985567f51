"""New forms of messages: tried where a chat may take them, and never again where it did not."""

import logging
from collections.abc import Callable, Container, Hashable, Mapping
from typing import ClassVar, Final

from botservice.storage.database import Storage
from botservice.turns.delivery_queries import note_refused, refused_in
from transports.common.refusals import Refusals

logger = logging.getLogger(__name__)


RICH: Final = "rich"
THINKING: Final = "thinking"  # a block of a draft, Bot API 10.1


class Forms(Refusals[Mapping[str, str], str, str]):
    """Which forms each conversation takes: what one refuses, it refuses for good, and others' notes count at once."""

    is_for_good: ClassVar[bool] = True
    fresh_seconds: ClassVar[float] = 0.0

    def __init__(
        self,
        storage: Callable[[], Storage | None],
        *,
        rich_messages: bool = True,
        plain_chats: Container[str] = frozenset(),
    ) -> None:
        """Begin.

        Args:
            rich_messages: Whether any chat may get them.
            plain_chats: The chats that get none, although their clients do not refuse them.
        """
        super().__init__(storage)
        self._rich_messages, self._plain_chats = rich_messages, plain_chats

    async def takes(self, where: Mapping[str, str], what: str) -> bool:
        """Return whether something may be tried in a chat."""
        if what in (RICH, THINKING) and (not self._rich_messages or str(where.get("chat_id")) in self._plain_chats):
            return False
        return await super().takes(where, what)

    async def _read(self, storage: Storage, where: Mapping[str, str]) -> set[str]:
        return await storage.read(lambda connection: refused_in(connection, where), is_short=True)

    async def _write(self, storage: Storage, where: Mapping[str, str], what: str) -> None:
        now = storage.now()
        await storage.write(lambda connection: note_refused(connection, where, what, now))

    def _say(self, where: Mapping[str, str], what: str, why: str) -> None:  # noqa: ARG002 - ids stay out of the log
        logger.warning("transport.form_refused", extra={"form": what, "reason": why})

    def _name(self, where: Mapping[str, str]) -> Hashable:
        return tuple(sorted(where.items()))
