"""What a session is once the bot has done its work: waiting for somebody, or at rest."""

import asyncio
import logging
import weakref
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from botservice.errors import BotServiceError
from transports.background_tasks import Errands
from transports.slack.outgoing.status import Statuses
from transports.slack.workspaces.workspaces import Workspaces

logger = logging.getLogger(__name__)

_PATIENCE_SECONDS: Final = 5.0

IsWaiting = Callable[[Mapping[str, str]], Awaitable[bool]]
"""Returns whether a conversation waits for somebody's word."""


class Idle:
    """Says so; nobody waits for that. What ends with its stream costs no call of its own."""

    def __init__(self, workspaces: Workspaces, statuses: Statuses, is_waiting: IsWaiting) -> None:
        self._workspaces = workspaces
        self._statuses = statuses
        self._is_waiting = is_waiting
        self._locks: weakref.WeakValueDictionary[tuple[str, str], asyncio.Lock] = weakref.WeakValueDictionary()
        self._ending: dict[tuple[str, str], asyncio.Event] = {}
        self._errands = Errands()

    async def status_of(self, team_id: str, context_keys: Mapping[str, str]) -> str | None:
        """Return what a session is from now on; None where a workspace knows no sessions."""
        if not self._statuses.has_sessions(team_id):
            return None
        return "suspended" if await self._is_waiting(context_keys) else "active"

    def rest(self, context_keys: Mapping[str, str], channel: str, thread_ts: str) -> None:
        """Say what a session is, now that the work is done."""
        self._errands.send(self._rest(context_keys, channel, thread_ts), name="slack-status-rest")

    def rest_with(self, context_keys: Mapping[str, str], channel: str, thread_ts: str, stream_ts: str) -> None:
        """Say what a session is, unless the end of its stream says so soon."""
        ended = self._ending[channel, stream_ts] = asyncio.Event()
        work = self._rest_unless(ended, context_keys, channel, thread_ts, stream_ts)
        self._errands.send(work, name="slack-status-end")

    def note_ended(self, channel: str, stream_ts: str) -> None:
        """Take note that the end of a stream has said what its session is."""
        ended = self._ending.get((channel, stream_ts))
        if ended is not None:
            ended.set()

    async def close(self) -> None:
        """End what is still on its way."""
        await self._errands.close()

    async def _rest_unless(
        self, ended: asyncio.Event, context_keys: Mapping[str, str], channel: str, thread_ts: str, stream_ts: str
    ) -> None:
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                await ended.wait()
        except TimeoutError:
            await self._rest(context_keys, channel, thread_ts)
        finally:
            self._ending.pop((channel, stream_ts), None)

    async def _rest(self, context_keys: Mapping[str, str], channel: str, thread_ts: str) -> None:
        lock = self._locks.setdefault((channel, thread_ts), asyncio.Lock())
        try:
            async with lock:  # what is read last is said last
                workspace = await self._workspaces.find(context_keys["team_id"])
                is_waiting = await self._is_waiting(context_keys)
                await self._statuses.rest(workspace, channel, thread_ts, is_waiting=is_waiting)
        except BotServiceError as error:
            logger.debug("slack.status_left", extra={"reason": str(error)})
