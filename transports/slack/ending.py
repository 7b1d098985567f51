"""Ending a stream with what is missing of the answer, in as few calls as the workspace allows."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from transports.slack.client import SlackClient, SlackFailure
from transports.slack.figures import SlackPage, suspect
from transports.slack.growing_answer import OpenStream
from transports.slack.refusals import Feature, SlackRefusals
from transports.slack.sessions import Idle
from transports.slack.workspaces import Workspace

logger = logging.getLogger(__name__)

_ALL: Final = frozenset(Feature)


class Ending:
    """Ends streams; what the session is from then on goes with the last words."""

    def __init__(self, client: SlackClient, refusals: SlackRefusals, idle: Idle) -> None:
        self._client = client
        self._refusals = refusals
        self._idle = idle

    async def complete(
        self, workspace: Workspace, stream: OpenStream, answer: SlackPage, context_keys: Mapping[str, str], **below: Any
    ) -> bool:
        """Return whether a stream has become the whole answer.

        Raises:
            SlackFailure: it is not known, or may go later.
        """
        for refused in (await self._refusals.of(workspace.team_id), _ALL):  # one more call, whatever is not drawn there
            page = answer.refusing(refused)
            chunks, needs = stream.last_chunks(page) or None, page.needs
            try:
                await self._stop(workspace, stream.channel, stream.ts, context_keys, chunks=chunks, **below)
            except SlackFailure as failure:
                if failure.is_later:
                    raise
                if not needs or not (failure.is_about_figures or failure.is_about_arguments):
                    logger.info("slack.stream_replaced", extra={"reason": failure.code})
                    return False
                await self._refusals.note(workspace.team_id, suspect(needs), failure)
            else:
                return True
        return False

    async def stop(
        self, workspace: Workspace, place: Mapping[str, Any], ts: str, context_keys: Mapping[str, str]
    ) -> None:
        """End a stream as it is, or take note that it has ended.

        Raises:
            SlackFailure: it may go later.
        """
        try:
            await self._stop(workspace, place["channel"], ts, context_keys)
        except SlackFailure as failure:
            if failure.is_later:
                raise
            self._idle.rest(context_keys, place["channel"], place["thread_ts"])
            self._idle.note_ended(place["channel"], ts, is_told=True)

    async def _stop(
        self, workspace: Workspace, channel: str, ts: str, context_keys: Mapping[str, str], **more: Any
    ) -> None:
        """Call for the end of a stream; once more without the session's status, where that is not known there."""
        status = None
        if await self._refusals.takes(workspace.team_id, Feature.STATUS_AT_END):
            status = await self._idle.status_of(workspace.team_id, context_keys)
        given = {"channel": channel, "ts": ts, **more}
        try:
            await self._client.call(workspace.token, "chat.stopStream", **given, session_status=status)
        except SlackFailure as failure:
            if status is None or not failure.is_about_arguments:
                raise
            await self._client.call(workspace.token, "chat.stopStream", **given)
            await self._refusals.note(workspace.team_id, Feature.STATUS_AT_END, failure)
            status = None
        self._idle.note_ended(channel, ts, is_told=status is not None)
