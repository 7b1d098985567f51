"""What a workspace has refused of what Slack offers: noted once, by any process, and not tried again for a while."""

import logging
import time
from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum
from typing import Final

from sqlalchemy import Connection, bindparam, delete, select

from botservice.storage import Storage
from botservice.storage.tables.slack import slack_refusals
from transports.slack.failures import SlackFailure
from transports.slack.workspaces.rows import insert_once

logger = logging.getLogger(__name__)

# Slack rolls things out workspace by workspace, and a missing scope may be given any day.
HOLDS_FOR: Final = timedelta(days=7)
_FRESH_SECONDS: Final = 60.0
_MAX_WORKSPACES: Final = 10_000

_IS_ONE = (slack_refusals.c.team_id == bindparam("team")) & (slack_refusals.c.feature == bindparam("what"))
_OF_TEAM = select(slack_refusals.c.feature).where(
    slack_refusals.c.team_id == bindparam("team"), slack_refusals.c.refused_at > bindparam("since")
)
_DELETE = delete(slack_refusals).where(_IS_ONE)
_DELETE_TEAM = delete(slack_refusals).where(slack_refusals.c.team_id == bindparam("team"))


class Feature(StrEnum):
    """What not every workspace has yet."""

    TABLES = "data_table"
    CHARTS = "data_visualization"
    PLANS = "task_display_mode"
    TITLES = "agents.sessions.rename"
    STATUS_AT_END = "session_status"
    PROMPTS = "assistant.threads.setSuggestedPrompts"
    CANVASES = "canvases.getContent"
    LISTS = "slackLists.items.list"
    EPHEMERAL = "chat.postEphemeral"


class Refusals:
    """Knows what workspaces have refused. Others' notes are seen within a minute."""

    def __init__(
        self, storage: Callable[[], Storage | None] = lambda: None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._storage = storage
        self._clock = clock
        self._known: dict[str, tuple[frozenset[Feature], float]] = {}

    async def of(self, team_id: str) -> frozenset[Feature]:
        """Return what a workspace has refused.

        Raises:
            StorageUnavailable: nobody can say.
        """
        known = self._known.get(team_id)
        if known is not None and known[1] > self._clock():
            return known[0]
        storage = self._storage()
        if storage is None:
            return frozenset()
        sought = {"team": team_id, "since": storage.now() - HOLDS_FOR}
        found = await storage.read(lambda connection: set(connection.execute(_OF_TEAM, sought).scalars()))
        return self._keep(team_id, frozenset(each for each in Feature if each in found))

    async def has(self, team_id: str, feature: Feature) -> bool:
        """Return whether a feature may be tried in a workspace."""
        return feature not in await self.of(team_id)

    async def note(self, team_id: str, feature: Feature, failure: SlackFailure) -> None:
        """Take note of what a workspace has refused, and say so once."""
        refused = await self.of(team_id)
        if feature in refused:
            return
        self._keep(team_id, refused | {feature})
        details = {"team": team_id, "feature": feature.value, "reason": failure.code, "scope": failure.needed}
        logger.warning("slack.without_feature", extra=details)
        storage = self._storage()
        if storage is None:
            return
        row = {"team_id": team_id, "feature": feature.value, "refused_at": storage.now()}

        def write(connection: Connection) -> None:
            connection.execute(_DELETE, {"team": team_id, "what": feature.value})
            insert_once(connection, slack_refusals, row)

        await storage.write(write)

    def _keep(self, team_id: str, refused: frozenset[Feature]) -> frozenset[Feature]:
        if len(self._known) >= _MAX_WORKSPACES:
            del self._known[next(iter(self._known))]
        self._known[team_id] = refused, self._clock() + _FRESH_SECONDS
        return refused


def forget_refusals(connection: Connection, team_id: str) -> None:
    """Delete what a workspace has refused: it has installed the bot anew, perhaps with more scopes."""
    connection.execute(_DELETE_TEAM, {"team": team_id})
