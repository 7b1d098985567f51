"""Titles that people give to sessions: theirs stay."""

from collections.abc import Mapping
from typing import Any

from botservice.contexts.context import ContextKeys
from transports.slack.inbound import context_keys, field, team_of, timestamp, word


def renamed_session(body: Mapping[str, Any]) -> tuple[ContextKeys, str] | None:
    """Return the conversation and the thread whose title somebody has changed; None where Slack does not say."""
    event = field(body, "event")
    team, channel = team_of(body), word(field(event, "channel"))
    thread_ts = timestamp(field(event, "thread_ts"))
    if team is None or channel is None or thread_ts is None:
        return None
    keys = context_keys(team, channel, None if channel.startswith("D") else thread_ts)
    return ContextKeys.of(keys), thread_ts
