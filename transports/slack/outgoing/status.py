"""The states of sessions: the bot is at work, waits for a decision, or rests."""

import asyncio
import logging
import weakref
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from botservice.errors import BotServiceError
from botservice.texts import in_language
from transports.background_tasks import Errands
from transports.slack.client import SlackClient
from transports.slack.failures import SlackFailure
from transports.slack.workspaces.people import People
from transports.slack.workspaces.workspaces import Workspace, Workspaces

logger = logging.getLogger(__name__)

_SESSION = "agents.sessions.setStatus"
_NO_BUTTON = "missing_agent_session_stopped_event_subscription"
_LINE = "assistant.threads.setStatus"
_PATIENCE_SECONDS: Final = 5.0

IsWaiting = Callable[[Mapping[str, str]], Awaitable[bool]]
"""Returns whether a call of a conversation waits for a decision."""


class Statuses:
    """Sets states. The session's state comes with a stop button; where an app is no agent, a line has to do.

    Source: docs.slack.dev, ai/agent-sessions.
    """

    def __init__(self, client: SlackClient, people: People) -> None:
        self._client = client
        self._people = people
        self._methods: dict[str, str | None] = {}
        self._advised: set[str] = set()

    async def begin(self, workspace: Workspace, channel: str, thread_ts: str, user_id: str) -> None:
        """Show that the bot is at work.

        Raises:
            SlackFailure: it cannot be shown at the moment.
        """
        method = self._methods.get(workspace.team_id, _SESSION)
        if method == _SESSION:
            try:
                answer = await self._client.call(
                    workspace.token,
                    _SESSION,
                    channel_id=channel,
                    thread_ts=thread_ts,
                    status="processing",
                    initiator_user_id=user_id,
                )
            except SlackFailure as failure:
                if failure.is_later or failure.is_about_place:
                    raise
                method = self._methods[workspace.team_id] = _LINE
            else:
                self._look_for_advice(workspace, answer)
                return
        if method == _LINE:
            await self._set_line(workspace, channel, thread_ts, user_id)

    def has_sessions(self, team_id: str) -> bool:
        """Return whether a workspace has sessions, as far as is known."""
        return self._methods.get(team_id, _SESSION) == _SESSION

    async def rest(self, workspace: Workspace, channel: str, thread_ts: str, *, is_waiting: bool) -> None:
        """Show that the bot is done, or waits for a decision; a line goes away by itself when something is said.

        Raises:
            SlackFailure: it cannot be shown at the moment.
        """
        if self.has_sessions(workspace.team_id):
            status = "suspended" if is_waiting else "active"
            await self._client.call(workspace.token, _SESSION, channel_id=channel, thread_ts=thread_ts, status=status)

    def _look_for_advice(self, workspace: Workspace, answer: Mapping[str, Any]) -> None:
        """Say once which line the app's manifest lacks for its stop button."""
        if _NO_BUTTON not in str(answer.get("warning", "")) or workspace.team_id in self._advised:
            return
        self._advised.add(workspace.team_id)
        advice = 'add "agent_session_stopped" at settings.event_subscriptions.bot_events of the app\'s manifest'
        logger.warning("slack.no_stop_button", extra={"advice": advice})

    async def _set_line(self, workspace: Workspace, channel: str, thread_ts: str, user_id: str) -> None:
        person = await self._people.find(workspace, user_id)
        working = in_language("status.thinking", person.language)
        try:
            await self._client.call(workspace.token, _LINE, channel_id=channel, thread_ts=thread_ts, status=working)
        except SlackFailure as failure:
            if failure.is_later or failure.is_about_place:
                raise
            logger.info("slack.without_status", extra={"reason": failure.code})
            self._methods[workspace.team_id] = None


class Idle:
    """Shows in the background what a session is after the work, unless the end of a stream shows it already."""

    def __init__(self, workspaces: Workspaces, statuses: Statuses, is_waiting: IsWaiting) -> None:
        self._workspaces = workspaces
        self._statuses = statuses
        self._is_waiting = is_waiting
        self._locks: weakref.WeakValueDictionary[tuple[str, str], asyncio.Lock] = weakref.WeakValueDictionary()
        self._ending: dict[tuple[str, str], asyncio.Future[bool]] = {}
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
        ended = self._ending[channel, stream_ts] = asyncio.get_running_loop().create_future()
        work = self._rest_unless(ended, context_keys, channel, thread_ts, stream_ts)
        self._errands.send(work, name="slack-status-end")

    def note_ended(self, channel: str, stream_ts: str, *, is_told: bool) -> None:
        """Take note that a stream has ended, and whether it is told with that what its session is."""
        ended = self._ending.get((channel, stream_ts))
        if ended is not None and not ended.done():
            ended.set_result(is_told)

    async def close(self) -> None:
        """End what is still on its way."""
        await self._errands.close()

    async def _rest_unless(
        self, ended: asyncio.Future[bool], context_keys: Mapping[str, str], channel: str, thread_ts: str, stream_ts: str
    ) -> None:
        try:
            async with asyncio.timeout(_PATIENCE_SECONDS):
                is_told = await ended
        except TimeoutError:
            is_told = False
        finally:
            self._ending.pop((channel, stream_ts), None)
        if not is_told:
            await self._rest(context_keys, channel, thread_ts)

    async def _rest(self, context_keys: Mapping[str, str], channel: str, thread_ts: str) -> None:
        lock = self._locks.setdefault((channel, thread_ts), asyncio.Lock())
        try:
            async with lock:  # what is read last is said last
                workspace = await self._workspaces.find(context_keys["team_id"])
                is_waiting = await self._is_waiting(context_keys)
                await self._statuses.rest(workspace, channel, thread_ts, is_waiting=is_waiting)
        except BotServiceError as error:
            logger.debug("slack.status_left", extra={"reason": str(error)})
