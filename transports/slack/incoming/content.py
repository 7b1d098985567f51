"""What a Slack message says, as text: names instead of ids, and in brackets what is sent besides words."""

import html
import re
from collections.abc import Mapping, Sequence
from typing import Any

from transports.slack.inbound import field

_TOKEN = re.compile(r"<([@#!]?)([^<>|]+)(?:\|([^<>]*))?>")
_AFTER_MENTION = " \t\r\n,:\u00a0"


def users_in(text: str) -> list[str]:
    """Return the users whom a text names, in order."""
    return [found[2] for found in _TOKEN.finditer(text) if found[1] == "@"]


def readable(text: str, names: Mapping[str, str], bot_user_id: str) -> str:
    """Return a message's text as people see it, without the bot's own name at its beginning or end."""
    bare = _without_mention(text.strip(), f"<@{bot_user_id}>") if bot_user_id else text
    return html.unescape(_TOKEN.sub(lambda found: _read(found, names), bare)).strip()


def _without_mention(text: str, mention: str) -> str:
    if text.startswith(mention):
        text = text.removeprefix(mention).lstrip(_AFTER_MENTION)
    return text.removesuffix(mention).rstrip()


def files_of(event: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """Return the files that came with a message."""
    files = field(event, "files")
    return [each for each in files if isinstance(each, Mapping)] if isinstance(files, list) else []


def _read(found: re.Match[str], names: Mapping[str, str]) -> str:
    kind, what, label = found[1], found[2], found[3]
    if kind == "@":
        return f"@{label or names.get(what, what)}"
    if kind == "#":
        return f"#{label or what}"
    if kind == "!":
        return label or f"@{what.partition('^')[0]}"
    address = what.removeprefix("mailto:")
    return address if not label or label in (what, address) else f"{label} ({address})"
