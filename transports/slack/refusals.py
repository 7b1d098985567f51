"""What a workspace has refused of what Slack offers: noted once, by any process, and not tried again for a while."""

import logging
from datetime import timedelta
from enum import StrEnum
from typing import ClassVar, Final

from botservice.storage.database import Storage
from transports.common import refusals
from transports.slack.client import SlackFailure
from transports.slack.queries import list_refused, store_refusal

logger = logging.getLogger(__name__)

# Slack rolls things out workspace by workspace, and a missing scope may be given any day.
HOLDS_FOR: Final = timedelta(days=7)


class Feature(StrEnum):
    """What not every workspace has yet."""

    TABLES = "data_table"
    CHARTS = "data_visualization"
    PLANS = "task_display_mode"
    SESSIONS = "agents.sessions.setStatus"
    STATUS_LINES = "assistant.threads.setStatus"
    TITLES = "agents.sessions.rename"
    PROMPTS = "assistant.threads.setSuggestedPrompts"
    CANVASES = "canvases.getContent"
    LISTS = "slackLists.items.list"
    EPHEMERAL = "chat.postEphemeral"


class SlackRefusals(refusals.Refusals[str, Feature, SlackFailure]):
    """Knows what workspaces have refused. Others' notes are seen within a minute."""

    is_for_good: ClassVar[bool] = False
    fresh_seconds: ClassVar[float] = 60.0

    async def _read(self, storage: Storage, where: str) -> set[Feature]:
        since = storage.now() - HOLDS_FOR
        found = await storage.read(lambda connection: list_refused(connection, where, since))
        return {each for each in Feature if each in found}

    async def _write(self, storage: Storage, where: str, what: Feature) -> None:
        now = storage.now()
        await storage.write(lambda connection: store_refusal(connection, where, what.value, now))

    def _say(self, where: str, what: Feature, why: SlackFailure) -> None:
        details = {"team": where, "feature": what.value, "reason": why.code, "scope": why.needed}
        logger.warning("slack.without_feature", extra=details)
