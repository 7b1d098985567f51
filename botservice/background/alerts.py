"""Telling a chat of the operator's that questions fail, and that they are answered again.

What was told stands in the database, and is written in the transaction that stores the message: however many processes
there are, and whatever is killed, each alert is sent once.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Self

from botservice.background import queries
from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import find_context
from botservice.core.background_task import background_task
from botservice.core.chat_addresses import ChatAddress
from botservice.core.errors import BotServiceError, StorageUnavailable
from botservice.core.states import EventKind, Outcome
from botservice.storage.database import Connection, Storage
from botservice.telemetry.instrumentation import Sink, TurnEnd, sending_to
from botservice.texts import in_language
from botservice.turns.finding_queries import find_newest_messages
from botservice.turns.proactive_messages import find_or_make, prepare_message, write_message
from botservice.turns.turn import StoredEvent
from botservice.turns.worker import Worker

logger = logging.getLogger(__name__)

MANY: Final = 5  # turns that failed
WITHIN: Final = timedelta(minutes=10)
AT_MOST_EVERY: Final = timedelta(hours=1)
_NEWEST: Final = 100  # of the turns that failed: so many are looked at
_READ: Final = 5  # of the newest messages in the chat: so many are read for their language
_PAUSE_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 60.0  # how often an answered turn makes it look what other processes have told


@dataclass(frozen=True, slots=True)
class Alert:
    """What is to be told.

    Attributes:
        is_over: Whether it is that questions are answered again.
        failed: How many failed lately.
        since: When the first of them failed.
    """

    is_over: bool
    failed: int
    since: datetime

    def text(self, language: str | None) -> str:
        """Return what is told, as Markdown."""
        again = f"`botservice turns retry --all --failed-since {self.since.astimezone(UTC):%Y-%m-%dT%H:%M}`"
        if self.is_over:
            return in_language("alerts.over", language, again=again)
        failed = f"{_NEWEST}+" if self.failed >= _NEWEST else str(self.failed)
        minutes = int(WITHIN.total_seconds() // 60)
        return in_language("alerts.failing", language, failed=failed, minutes=minutes, again=again)


class FailureAlerts(Sink):
    """Tells a chat when many turns have failed within some minutes, and when they succeed again.

    It looks when a turn of this process ends, and costs an idle database nothing.
    """

    def __init__(self, storage: Storage, chat: ChatAddress, clock: Callable[[], datetime], worker: Worker) -> None:
        self._storage = storage
        self._chat = chat
        self._clock = clock
        self._worker = worker
        self._loop = asyncio.get_running_loop()
        self._news = asyncio.Event()
        self._is_on = True  # until it has looked
        self._looked_at = 0.0

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[Self]:
        """Tell what is to be told until the block is left."""
        self._news.set()  # an earlier process may have been killed before it could tell
        async with background_task(self._run(), name="botservice-alerts"):
            with sending_to(self):
                yield self

    def take_end(self, end: TurnEnd) -> None:
        """Note that a turn has ended."""
        is_old = self._loop.time() - self._looked_at > _LOOK_SECONDS
        is_news = end.outcome == Outcome.FAILED or (end.outcome == Outcome.ANSWERED and (self._is_on or is_old))
        if is_news:
            self._loop.call_soon_threadsafe(self._news.set)

    async def _run(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            try:
                await self.look()
            except StorageUnavailable as error:
                logger.warning("alerts.storage_unavailable", extra={"reason": str(error)})
                self._news.set()
            except BotServiceError as error:
                logger.error("alerts.not_sent", extra={"reason": str(error)})  # noqa: TRY400 - its text says it all
            except Exception:
                logger.exception("alerts.not_sent")
            await asyncio.sleep(_PAUSE_SECONDS)

    async def look(self) -> Alert | None:
        """Tell what is to be told now, and return it."""
        now = self._clock()
        self._looked_at = self._loop.time()
        self._is_on, alert = await self._storage.read(lambda connection: _read(connection, now), is_long=True)
        if alert is None:
            return None
        new = await prepare_message(alert.text(await self._find_language()), (), now)

        def tell(connection: Connection) -> int | None:
            still = _find_alert(connection, queries.lock_alert(connection), now)
            if still is None or still.is_over is not alert.is_over:  # another process was faster, or a turn has ended
                return None
            context_id = find_or_make(connection, self._chat, now)
            write_message(connection, context_id, new)
            told = {} if alert.is_over else {"told_at": now, "since": alert.since}
            queries.note_alert(connection, is_on=not alert.is_over, **told)
            return context_id

        context_id = await self._storage.write(tell)
        self._is_on = self._is_on if context_id is None else not alert.is_over
        if context_id is None:
            return None
        logger.warning("alerts.told", extra={"failed": alert.failed, "is_over": alert.is_over})
        self._worker.wake(context_id, EventKind.PROGRAM)
        return alert

    async def _find_language(self) -> str | None:
        """Find the language of the person who wrote in the chat last; None if it is unknown."""

        def newest(connection: Connection) -> list[tuple[str, StoredEvent]]:
            number = self._chat.number or find_context(connection, ContextKeys.of(self._chat.keys))
            return [] if number is None else find_newest_messages(connection, number, _READ)

        try:
            for transport, event in await self._storage.read(newest):
                said = await self._worker.peek(transport, event)
                if said is not None and said.language is not None:
                    return said.language
        except StorageUnavailable:
            raise
        except Exception:
            logger.exception("alerts.language_unknown")  # it is told in English
        return None


def _read(connection: Connection, now: datetime) -> tuple[bool, Alert | None]:
    state = queries.find_alert(connection)
    return state is not None and state.is_on, _find_alert(connection, state, now)


def _find_alert(connection: Connection, state: Any, now: datetime) -> Alert | None:
    """Return what is to be told, by what was told before."""
    is_on = state is not None and state.is_on
    failed = sorted(queries.list_failed(connection, _NEWEST), key=lambda row: row.finished_at, reverse=True)
    lately = [row.finished_at for row in failed if row.finished_at > now - WITHIN]
    if is_on and _is_over(connection, [row for row in failed if row.finished_at >= state.since][:MANY]):
        return Alert(is_over=True, failed=len(lately), since=state.since)
    was_told = state is not None and state.told_at is not None and state.told_at > now - AT_MOST_EVERY
    if len(lately) < MANY or was_told:
        return None
    return Alert(is_over=False, failed=len(lately), since=state.since if is_on else lately[-1])


def _is_over(connection: Connection, failed: Sequence[Any]) -> bool:
    """Return whether more turns in a row were answered since the last failure than between the last few of them.

    After an outage, that is the first one; where one of a hundred fails, a single answer shows nothing.
    """
    if not failed:
        return True
    newest, oldest = failed[0].finished_at, failed[-1].finished_at
    first = min(row.id for row in failed)
    after = queries.count_answered_after(connection, first, newest)
    return after > queries.count_answered_between(connection, first, oldest, newest)
