"""The manifest that creates the app at Slack in one paste, and what follows from it."""

import json
from functools import cache
from importlib.resources import files
from typing import Any, Final


@cache
def read_manifest() -> dict[str, Any]:
    """Return the manifest as it lies next to this file."""
    text = files("transports.slack").joinpath("manifest.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def bot_scopes() -> list[str]:
    """Return what the bot must be allowed to do."""
    return list(read_manifest()["oauth_config"]["scopes"]["bot"])


REACTIONS_SCOPE: Final = "reactions:read"
OPTIONAL_SCOPES: Final = frozenset({"canvases:read", "lists:read", REACTIONS_SCOPE})
"""What the bot does without: canvases and lists are named then, and not read; reactions say nothing."""


def bot_events() -> list[str]:
    """Return what the bot must be told of."""
    return list(read_manifest()["settings"]["event_subscriptions"]["bot_events"])


def slash_command() -> str:
    """Return the command, with its slash."""
    return str(read_manifest()["features"]["slash_commands"][0]["command"])
