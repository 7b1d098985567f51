"""What counts as addressed to the bot in a channel: what names it, and who goes on in a thread with it."""

from typing import Final

from sqlalchemy import Connection, bindparam, or_, select

from botservice.conversation.context import ContextKeys, find_context
from botservice.storage.database import Storage
from botservice.storage.tables.conversations import events, messages, turns
from botservice.turns.turn import Outcome
from transports.slack.inbound_events import SlackMessage, account_of
from transports.slack.workspaces import Workspace

_PLATFORM: Final = "slack"
# A person has addressed the bot in a conversation if it answered one of their turns there, or will.
_HAS_ADDRESSED = (
    select(messages.c.id)
    .join(events, events.c.id == messages.c.event_id)
    .join(turns, turns.c.id == events.c.turn_id)
    .where(
        messages.c.context_id == bindparam("context"),
        messages.c.author_platform == _PLATFORM,
        messages.c.author_id == bindparam("person"),
        or_(turns.c.outcome.is_(None), turns.c.outcome != Outcome.LISTENED.value),
    )
    .limit(1)
)


async def is_addressed_to_bot(message: SlackMessage, workspace: Workspace, storage: Storage | None) -> bool:
    """Return whether a message in a channel is for the bot; one that names another person in a thread is not.

    In a code channel every message is, unless it names somebody else.
    """
    if workspace.bot_user_id in message.mentioned:
        return True
    if message.is_in_code_channel:
        return not message.mentioned
    if storage is None or not message.is_reply or message.mentioned:
        return False
    keys = ContextKeys.of(message.keys(is_thread=True))

    def query(connection: Connection) -> bool:
        context_id = find_context(connection, keys)
        sought = {"context": context_id, "person": account_of(workspace.team_id, message.user_id)}
        return context_id is not None and connection.execute(_HAS_ADDRESSED, sought).first() is not None

    return await storage.read(query)
