"""What a workspace has refused of what Slack offers: noted once, by any process, and not tried again for a while."""

import logging
from datetime import datetime, timedelta
from enum import StrEnum
from importlib import import_module
from typing import Any, ClassVar, Final

from sqlalchemy import Connection, Table, bindparam, delete, select

from botservice.storage.tables.slack import slack_refusals
from transports.common import refusals
from transports.slack.client import SlackFailure

logger = logging.getLogger(__name__)

# Slack rolls things out workspace by workspace, and a missing scope may be given any day.
HOLDS_FOR: Final = timedelta(days=7)

_IS_ONE = (slack_refusals.c.team_id == bindparam("team")) & (slack_refusals.c.feature == bindparam("what"))
_OF_TEAM = select(slack_refusals.c.feature).where(
    slack_refusals.c.team_id == bindparam("team"), slack_refusals.c.refused_at > bindparam("since")
)
_DELETE = delete(slack_refusals).where(_IS_ONE)
_DELETE_TEAM = delete(slack_refusals).where(slack_refusals.c.team_id == bindparam("team"))


def insert_once(connection: Connection, table: Table, row: dict[str, Any]) -> bool:
    """Store a row where there is none of its key; return whether there was none."""
    insert = import_module(f"sqlalchemy.dialects.{connection.dialect.name}").insert(table).on_conflict_do_nothing()
    # Not rowcount: of an insert, drivers need not know it.
    return connection.execute(insert.returning(*table.primary_key), row).first() is not None


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


class SlackRefusals(refusals.Refusals[str, Feature, SlackFailure]):
    """Knows what workspaces have refused. Others' notes are seen within a minute."""

    is_for_good: ClassVar[bool] = False
    fresh_seconds: ClassVar[float] = 60.0

    def _read(self, connection: Connection, where: str, now: datetime) -> set[Feature]:
        found = set(connection.execute(_OF_TEAM, {"team": where, "since": now - HOLDS_FOR}).scalars())
        return {each for each in Feature if each in found}

    def _write(self, connection: Connection, where: str, what: Feature, now: datetime) -> None:
        connection.execute(_DELETE, {"team": where, "what": what.value})
        insert_once(connection, slack_refusals, {"team_id": where, "feature": what.value, "refused_at": now})

    def _say(self, where: str, what: Feature, why: SlackFailure) -> None:
        details = {"team": where, "feature": what.value, "reason": why.code, "scope": why.needed}
        logger.warning("slack.without_feature", extra=details)


def forget_refusals(connection: Connection, team_id: str) -> None:
    """Delete what a workspace has refused: it has installed the bot anew, perhaps with more scopes."""
    connection.execute(_DELETE_TEAM, {"team": team_id})
