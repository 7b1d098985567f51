"""Sessions: their states (the bot is at work, waits for a decision, or rests) and their titles.

A title is the first words of what was asked, given once, after the first answer.
"""

import asyncio
import logging
import re
import weakref
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

from botservice.conversation.context_keys import ContextKeys
from botservice.core.errors import BotServiceError
from botservice.storage.database import Storage
from botservice.texts import in_language
from botservice.turns.turn import Delivery
from transports.common.background_tasks import BackgroundTasks
from transports.slack.client import SlackClient, SlackFailure
from transports.slack.queries import find_question, has_title, mark_titled, unmark_titled
from transports.slack.reading import readable
from transports.slack.refusals import Feature, SlackRefusals
from transports.slack.workspaces import SlackPeople, Workspace, Workspaces

logger = logging.getLogger(__name__)

_SESSION = "agents.sessions.setStatus"
_NO_BUTTON = "missing_agent_session_stopped_event_subscription"
_LINE = "assistant.threads.setStatus"
_PATIENCE_SECONDS: Final = 5.0

IsWaiting = Callable[[Mapping[str, str]], Awaitable[bool]]
"""Returns whether a call of a conversation waits for a decision."""

_MAX_CHARACTERS: Final = 60  # of the 200 that Slack takes: lists of sessions show about as many
_MENTION: Final = re.compile(r"<@[^<>]*>")
_LABELLED: Final = re.compile(r"<[^<>|@#!][^<>|]*\|([^<>]+)>")


class Statuses:
    """Sets states. The session's state comes with a stop button; where an app is no agent, a line has to do.

    Source: docs.slack.dev, ai/agent-sessions.
    """

    def __init__(self, client: SlackClient, people: SlackPeople) -> None:
        self._client = client
        self._people = people
        self._methods: dict[str, str | None] = {}
        self._advised: set[str] = set()

    async def begin(self, workspace: Workspace, channel: str, thread_ts: str | None, user_id: str) -> None:
        """Show that the bot is at work."""
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

    async def rest(self, workspace: Workspace, channel: str, thread_ts: str | None, *, is_waiting: bool) -> None:
        """Show that the bot is done, or waits for a decision; a line goes away by itself when something is said."""
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

    async def _set_line(self, workspace: Workspace, channel: str, thread_ts: str | None, user_id: str) -> None:
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
        self._locks: weakref.WeakValueDictionary[tuple[str, str | None], asyncio.Lock] = weakref.WeakValueDictionary()
        self._ending: dict[tuple[str, str], asyncio.Future[bool]] = {}
        self._background = BackgroundTasks()

    async def status_of(self, team_id: str, context_keys: Mapping[str, str]) -> str | None:
        """Return what a session is from now on, or None if a workspace knows no sessions."""
        if not self._statuses.has_sessions(team_id):
            return None
        return "suspended" if await self._is_waiting(context_keys) else "active"

    def rest(self, context_keys: Mapping[str, str], channel: str, thread_ts: str | None) -> None:
        """Say what a session is, now that the work is done."""
        self._background.start(self._rest(context_keys, channel, thread_ts), name="slack-status-rest")

    def rest_with(self, context_keys: Mapping[str, str], channel: str, thread_ts: str | None, stream_ts: str) -> None:
        """Say what a session is, unless the end of its stream says so soon."""
        ended = self._ending[channel, stream_ts] = asyncio.get_running_loop().create_future()
        work = self._rest_unless(ended, context_keys, channel, thread_ts, stream_ts)
        self._background.start(work, name="slack-status-end")

    def note_ended(self, channel: str, stream_ts: str, *, is_told: bool) -> None:
        """Take note that a stream has ended, and whether it is told with that what its session is."""
        ended = self._ending.get((channel, stream_ts))
        if ended is not None and not ended.done():
            ended.set_result(is_told)

    async def close(self) -> None:
        """End what is still on its way."""
        await self._background.close()

    async def _rest_unless(
        self,
        ended: asyncio.Future[bool],
        context_keys: Mapping[str, str],
        channel: str,
        thread_ts: str | None,
        stream_ts: str,
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

    async def _rest(self, context_keys: Mapping[str, str], channel: str, thread_ts: str | None) -> None:
        lock = self._locks.setdefault((channel, thread_ts), asyncio.Lock())
        try:
            async with lock:  # what is read last is said last
                team = context_keys["team_id"]
                if thread_ts is None and not await self._workspaces.has_code_channel(team, channel):
                    return
                workspace = await self._workspaces.find(team)
                is_waiting = await self._is_waiting(context_keys)
                await self._statuses.rest(workspace, channel, thread_ts, is_waiting=is_waiting)
        except BotServiceError as error:
            logger.debug("slack.status_left", extra={"reason": str(error)})


class Titles:
    """Gives titles. One that a person has given is never changed."""

    def __init__(
        self,
        client: SlackClient,
        workspaces: Workspaces,
        statuses: Statuses,
        refusals: SlackRefusals,
        storage: Callable[[], Storage | None],
    ) -> None:
        self._client = client
        self._workspaces = workspaces
        self._statuses = statuses
        self._refusals = refusals
        self._storage = storage
        self._background = BackgroundTasks()

    def give(self, context_keys: Mapping[str, str], delivery: Delivery) -> None:
        """Give the session of a sent answer a title in the background, where it has none."""
        thread_ts = delivery.payload.get("thread_ts")
        if delivery.payload.get("asks_feedback") and isinstance(thread_ts, str):
            self._background.start(self._give(context_keys, thread_ts, delivery.turn_id), name="slack-title")

    async def settle(self) -> None:
        """Return when every title that was to be given is given, or could not be."""
        await self._background.settle()

    async def close(self) -> None:
        """End what is still on its way."""
        await self._background.close()

    async def _give(self, context_keys: Mapping[str, str], thread_ts: str, turn_id: int) -> None:
        try:
            team = context_keys["team_id"]
            if self._statuses.has_sessions(team) and await self._refusals.takes(team, Feature.TITLES):
                await self._give_once(context_keys, thread_ts, turn_id)
        except BotServiceError as error:
            logger.debug("slack.title_not_given", extra={"reason": str(error)})

    async def _give_once(self, context_keys: Mapping[str, str], thread_ts: str, turn_id: int) -> None:
        storage, keys = self._storage(), ContextKeys.of(context_keys)
        if storage is None:
            return
        if await storage.read(lambda connection: has_title(connection, keys, thread_ts), is_short=True):
            return
        question = await storage.read(lambda connection: find_question(connection, turn_id))
        now = storage.now()
        context_id = await storage.write(lambda connection: mark_titled(connection, keys, thread_ts, now))
        if context_id is None:
            return
        title = "" if question is None else title_from(question.text)
        if title and await self._rename(context_keys, thread_ts, title):
            return
        await storage.write(lambda connection: unmark_titled(connection, context_id, thread_ts, now))

    async def _rename(self, context_keys: Mapping[str, str], thread_ts: str, title: str) -> bool:
        """Return whether there is nothing more to be tried for a session."""
        workspace = await self._workspaces.find(context_keys["team_id"])
        place = {"channel_id": context_keys["channel_id"], "thread_ts": thread_ts}
        try:
            await self._client.call(workspace.token, "agents.sessions.rename", **place, title=title)
        except SlackFailure as failure:
            if failure.is_not_here:
                await self._refusals.note(workspace.team_id, Feature.TITLES, failure)
            logger.info("slack.title_not_given", extra={"reason": failure.code})
            return False
        return True


def title_from(text: str) -> str:
    """Return the first words of a message, as a title; "" where there are none."""
    labels = _LABELLED.sub(r"\1", _MENTION.sub(" ", text))
    words = " ".join(readable(labels, {}, "").split())
    if len(words) <= _MAX_CHARACTERS:
        return words
    cut = words[: _MAX_CHARACTERS - 1]
    return f"{cut.rpartition(' ')[0] or cut}…"
