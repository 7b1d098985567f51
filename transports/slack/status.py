"""Showing that the bot is at work: the state of its session, or the line of an older app."""

import logging

from transports.slack.client import SlackClient
from transports.slack.failures import SlackFailure
from transports.slack.workspaces import Workspace

logger = logging.getLogger(__name__)

_WORKING = "is thinking…"
_SESSION = "agents.sessions.setStatus"
_LINE = "assistant.threads.setStatus"


class Statuses:
    """Sets states. The session's state comes with a stop button; where an app is no agent, a line has to do.

    Source: docs.slack.dev, ai/agent-sessions.
    """

    def __init__(self, client: SlackClient) -> None:
        self._client = client
        self._methods: dict[str, str | None] = {}

    async def begin(self, workspace: Workspace, channel: str, thread_ts: str, user_id: str) -> None:
        """Show that the bot is at work.

        Raises:
            SlackFailure: it cannot be shown at the moment.
        """
        method = self._methods.get(workspace.team_id, _SESSION)
        if method == _SESSION:
            try:
                await self._client.call(
                    workspace.token,
                    _SESSION,
                    channel_id=channel,
                    thread_ts=thread_ts,
                    status="processing",
                    initiator_user_id=user_id,
                )
            except SlackFailure as failure:
                if failure.is_later:
                    raise
                method = self._methods[workspace.team_id] = _LINE
            else:
                return
        if method == _LINE:
            await self._set_line(workspace, channel, thread_ts)

    async def end(self, workspace: Workspace, channel: str, thread_ts: str) -> None:
        """Show that the bot is done; a line goes away by itself when the answer comes.

        Raises:
            SlackFailure: it cannot be shown at the moment.
        """
        if self._methods.get(workspace.team_id, _SESSION) == _SESSION:
            await self._client.call(workspace.token, _SESSION, channel_id=channel, thread_ts=thread_ts, status="active")

    async def _set_line(self, workspace: Workspace, channel: str, thread_ts: str) -> None:
        try:
            await self._client.call(workspace.token, _LINE, channel_id=channel, thread_ts=thread_ts, status=_WORKING)
        except SlackFailure as failure:
            if failure.is_later:
                raise
            logger.info("slack.without_status", extra={"reason": failure.code})
            self._methods[workspace.team_id] = None
