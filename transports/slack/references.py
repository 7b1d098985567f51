"""What a Slack message holds of others: what it shares, links to or stands below, and what a question is about."""

import json
from collections.abc import Mapping
from typing import Any

from botservice.conversation.context_keys import ContextKeys
from botservice.core.messages import Author
from botservice.core.references import LONGEST_REFERENCE, Reference, ReferenceKind
from botservice.storage.database import Storage
from transports.slack.content import is_shared
from transports.slack.inbound_events import SlackMessage, account_of, field, items_of, timestamp, word
from transports.slack.queries import list_said_by_bot
from transports.slack.workspaces import Workspace

_PLATFORM = "slack"


def shared_in(event: object) -> list[Mapping[str, Any]]:
    """Return what Slack shows of the messages that a message shares or links to."""
    found = (each for each in items_of(event, "attachments") if isinstance(each, Mapping))
    return [each for each in found if is_shared(each)]


def read_shared(shared: Mapping[str, Any], said: str, workspace: Workspace) -> Reference:
    """Return a shared message as what its sharer holds of another; said is its text as people see it."""
    user, name = word(shared.get("author_id")), shared.get("author_name")
    author = _author(user, name if isinstance(name, str) else None, workspace)
    is_own = user == workspace.bot_user_id or (
        workspace.bot_id is not None and shared.get("bot_id") == workspace.bot_id
    )
    return Reference(ReferenceKind.SHARE, author, said[:LONGEST_REFERENCE], timestamp(shared.get("ts")), is_own)


async def read_replied(message: SlackMessage, storage: Storage | None) -> tuple[Reference, ...]:
    """Return the bot's message that a message in a direct conversation stands below, which Slack only names."""
    if storage is None or not message.is_direct or not message.is_reply:
        return ()
    keys = ContextKeys.of(message.keys(is_thread=False))
    said = await storage.read(lambda connection: list_said_by_bot(connection, keys, message.root_ts))
    return tuple(
        Reference(ReferenceKind.REPLY, None, (each or "")[:LONGEST_REFERENCE], message.root_ts, is_of_assistant=True)
        for each in said[:1]
    )


def question_about(view: object) -> Mapping[str, Any]:
    """Return what a dialog keeps of the message that it was opened for; nothing where it keeps nothing."""
    kept = field(view, "private_metadata")
    try:
        about = json.loads(kept) if isinstance(kept, str) else None
    except (ValueError, RecursionError):
        return {}
    return about if isinstance(about, Mapping) else {}


def read_about(about: Mapping[str, Any], name: str | None, said: str, workspace: Workspace) -> Reference:
    """Return the message that a question is about as what the question holds of another."""
    user = word(about.get("user"))
    author = _author(user, name, workspace)
    is_own = user is not None and user == workspace.bot_user_id
    return Reference(ReferenceKind.ABOUT, author, said, timestamp(about.get("ts")), is_own)


def _author(user: str | None, name: str | None, workspace: Workspace) -> Author | None:
    if user is None and name is None:
        return None
    return Author(_PLATFORM, None if user is None else account_of(workspace.team_id, user), name or user)
