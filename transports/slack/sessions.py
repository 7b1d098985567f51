"""Sessions: their states (the bot is at work, waits for a decision, or rests) and their titles.

A title is the first words of what was asked, given once, after the first answer.
"""

import asyncio
import logging
import re
import weakref
from collections.abc import Mapping
from typing import Any, Final

from botservice.conversation.context_keys import ContextKeys
from botservice.core.errors import BotServiceError
from botservice.core.states import PendingKind
from botservice.texts import in_language
from botservice.turns.call_queries import find_kinds_awaited
from botservice.turns.turn import Delivery
from transports.slack.client import SlackFailure
from transports.slack.context import SlackContext
from transports.slack.inbound_messages import readable
from transports.slack.queries import has_title, list_questions, mark_titled
from transports.slack.refusals import Feature
from transports.slack.workspaces import Workspace

logger = logging.getLogger(__name__)

_NO_BUTTON = "missing_agent_session_stopped_event_subscription"

_MAX_CHARACTERS: Final = 60  # of the 200 that Slack takes: lists of sessions show about as many
_MENTION: Final = re.compile(r"<@[^<>]*>")
_LABELLED: Final = re.compile(r"<[^<>|@#!][^<>|]*\|([^<>]+)>")


class Statuses:
    """Sets states. The session's state comes with a stop button; where an app is no agent, a line has to do.

    Source: docs.slack.dev, ai/agent-sessions.
    """

    def __init__(self, slack: SlackContext) -> None:
        self._slack = slack
        self._advised: set[str] = set()
        self._locks: weakref.WeakValueDictionary[tuple[str, str | None], asyncio.Lock] = weakref.WeakValueDictionary()

    async def begin(self, workspace: Workspace, channel: str, thread_ts: str | None, user_id: str) -> None:
        """Show that the bot is at work."""
        refused = await self._slack.refusals.of(workspace.team_id)
        place = {"channel_id": channel, "thread_ts": thread_ts}
        if Feature.SESSIONS not in refused:
            processing = {"status": "processing", "initiator_user_id": user_id}
            answer = await self._set(workspace, Feature.SESSIONS, **place, **processing)
            if answer is not None:
                self._look_for_advice(workspace, answer)
                return
        if Feature.STATUS_LINES not in refused:
            person = await self._slack.workspaces.find_person(workspace, user_id)
            working = in_language("status.thinking", person.language)
            await self._set(workspace, Feature.STATUS_LINES, **place, status=working)

    def rest(self, context_keys: Mapping[str, str], channel: str, thread_ts: str | None) -> None:
        """Show in the background that the bot is done, or waits for a decision.

        A line goes away by itself when something is said.
        """
        self._slack.background.start(self._rest(context_keys, channel, thread_ts), name="slack-status-rest")

    async def _rest(self, context_keys: Mapping[str, str], channel: str, thread_ts: str | None) -> None:
        workspaces, team = self._slack.workspaces, context_keys["team_id"]
        lock = self._locks.setdefault((channel, thread_ts), asyncio.Lock())
        try:
            async with lock:  # what is read last is said last
                if thread_ts is None and not await workspaces.has_code_channel(team, channel):
                    return
                if await self._slack.refusals.takes(team, Feature.SESSIONS):
                    workspace = await workspaces.find(team)
                    status = "suspended" if await self._is_waiting(context_keys) else "active"
                    await workspace.call(Feature.SESSIONS, channel_id=channel, thread_ts=thread_ts, status=status)
        except BotServiceError as error:
            logger.debug("slack.status_left", extra={"reason": str(error)})

    async def _is_waiting(self, context_keys: Mapping[str, str]) -> bool:
        """Return whether a call of a conversation waits for a decision."""
        storage, keys = self._slack.storage, ContextKeys.of(context_keys)
        if storage is None:
            return False
        return bool(await storage.read(lambda connection: find_kinds_awaited(connection, keys) - {PendingKind.LATER}))

    async def _set(self, workspace: Workspace, feature: Feature, **state: Any) -> dict[str, Any] | None:
        """Set a state and return what Slack answers, or None where a workspace has no such state."""
        try:
            return await workspace.call(feature, **state)
        except SlackFailure as failure:
            if failure.is_later or failure.is_about_place:
                raise
            if failure.is_not_here:
                await self._slack.refusals.note(workspace.team_id, feature, failure)
            return None

    def _look_for_advice(self, workspace: Workspace, answer: Mapping[str, Any]) -> None:
        """Say once which line the app's manifest lacks for its stop button."""
        if _NO_BUTTON not in str(answer.get("warning", "")) or workspace.team_id in self._advised:
            return
        self._advised.add(workspace.team_id)
        advice = 'add "agent_session_stopped" at settings.event_subscriptions.bot_events of the app\'s manifest'
        logger.warning("slack.no_stop_button", extra={"advice": advice})


def give_title(slack: SlackContext, context_keys: Mapping[str, str], delivery: Delivery) -> None:
    """Give the session of a sent answer a title in the background, where it has none.

    One that a person has given is never changed.
    """
    thread_ts = delivery.payload.get("thread_ts")
    if delivery.payload.get("asks_feedback") and isinstance(thread_ts, str):
        slack.background.start(_give_title(slack, context_keys, thread_ts, delivery.turn_id), name="slack-title")


async def _give_title(slack: SlackContext, context_keys: Mapping[str, str], thread_ts: str, turn_id: int) -> None:
    storage, keys, team = slack.storage, ContextKeys.of(context_keys), context_keys["team_id"]
    try:
        if storage is None or not {Feature.SESSIONS, Feature.TITLES}.isdisjoint(await slack.refusals.of(team)):
            return
        if await storage.read(lambda connection: has_title(connection, keys, thread_ts)):
            return
        asked = await storage.read(lambda connection: list_questions(connection, turn_id))
        title = next((title_from(each.text) for each, is_deleted in asked if each is not None and not is_deleted), "")
        if title:
            place = {"channel_id": context_keys["channel_id"], "thread_ts": thread_ts}
            await (await slack.workspaces.find(team)).call(Feature.TITLES, **place, title=title)
            now = storage.now()
            await storage.write(lambda connection: mark_titled(connection, keys, thread_ts, now))
    except SlackFailure as failure:
        if failure.is_not_here:
            await slack.refusals.note(team, Feature.TITLES, failure)
        logger.info("slack.title_not_given", extra={"reason": failure.code})
    except BotServiceError as error:
        logger.debug("slack.title_not_given", extra={"reason": str(error)})


def title_from(text: str) -> str:
    """Return the first words of a message, as a title; "" where there are none."""
    labels = _LABELLED.sub(r"\1", _MENTION.sub(" ", text))
    words = " ".join(readable(labels, {}, "").split())
    if len(words) <= _MAX_CHARACTERS:
        return words
    cut = words[: _MAX_CHARACTERS - 1]
    return f"{cut.rpartition(' ')[0] or cut}…"
