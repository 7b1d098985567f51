"""Pressed buttons that decide about calls of tools: carried out at once, before Slack hears that they arrived."""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from botservice.core.errors import BotServiceError
from botservice.core.messages import Author
from botservice.texts.formatted import with_commands
from botservice.turns.decisions import Decision
from botservice.turns.inbox import Inbox
from botservice.turns.parsing_decisions import order_of
from transports.common.background_tasks import Errands
from transports.slack.client import SlackClient
from transports.slack.inbound_events import COMMAND_PREFIX, account_of, context_keys
from transports.slack.interactions import Interactions, SlackPress, read_press, tell_presser
from transports.slack.workspaces import Person, SlackPeople, Workspaces

logger = logging.getLogger(__name__)

_CALL_SECONDS = 1.0  # of the three that Slack waits


class Decisions:
    """Carries out what people press under questions about calls, and tells those who pressed without success."""

    def __init__(
        self, client: SlackClient, workspaces: Workspaces, people: SlackPeople, interactions: Interactions
    ) -> None:
        self._client = client
        self._workspaces = workspaces
        self._people = people
        self._interactions = interactions
        self._errands = Errands()

    async def take(self, body: Mapping[str, Any], inbox: Inbox) -> bool:
        """Carry out what a press decides; return whether it was about calls of tools."""
        press = read_press(body)
        if press is None or press.value is None or order_of(press.value) is None:
            return False
        keys = press.context_keys
        if press.is_ephemeral:  # only the presser sees the question: it belongs to their conversation with the bot
            keys = context_keys(press.team, await self._interactions.conversation(press.team, press.user))
        person = await self._find(press)
        decision = await inbox.decide(
            keys,
            press.value,
            Author("slack", person.account, person.name or press.user_name or person.id),
            language=person.language,
            is_private=keys["channel_id"].startswith("D"),
        )
        if decision is None:
            return False
        self._errands.send(self._tell(press, decision), name="slack-decision")
        return True

    async def close(self) -> None:
        """End what is still on its way."""
        await self._errands.close()

    async def _find(self, press: SlackPress) -> Person:
        """Return who pressed; by the id alone where Slack takes its time."""
        try:
            async with asyncio.timeout(_CALL_SECONDS):
                return await self._people.find(await self._workspaces.find(press.team), press.user)
        except (BotServiceError, TimeoutError):
            return Person(press.user, account_of(press.team, press.user))

    async def _tell(self, press: SlackPress, decision: Decision) -> None:
        """Tell the presser alone what came of it; where it decided something, the message that asked says so."""
        if press.response_url is None or (decision.is_taken and not press.is_ephemeral):
            return
        if not decision.is_taken:
            await tell_presser(self._client, press, with_commands(decision.text, COMMAND_PREFIX).plain)
            return
        try:
            await self._client.respond(press.response_url, {"delete_original": True})
        except BotServiceError as error:
            logger.info("slack.decision_not_told", extra={"reason": str(error)})
