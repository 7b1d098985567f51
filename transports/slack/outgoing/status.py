"""Showing that the bot is at work: the state of its session, or the line of an older app."""

import logging
from collections.abc import Mapping
from typing import Any

from botservice.texts import in_language
from transports.slack.client import SlackClient
from transports.slack.failures import SlackFailure
from transports.slack.workspaces.people import People
from transports.slack.workspaces.workspaces import Workspace

logger = logging.getLogger(__name__)

_SESSION = "agents.sessions.setStatus"
_NO_BUTTON = "missing_agent_session_stopped_event_subscription"
_LINE = "assistant.threads.setStatus"


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
        """Show that the bot is done, or waits for somebody; a line goes away by itself when something is said.

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
