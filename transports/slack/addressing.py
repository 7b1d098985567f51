"""What counts as addressed to the bot in a channel: what names it, and who goes on in a thread with it."""

from botservice.conversation.context_keys import ContextKeys
from botservice.storage.database import Storage
from transports.slack.inbound_events import SlackMessage, account_of
from transports.slack.queries import has_addressed_bot
from transports.slack.workspaces import Workspace


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
    keys, account = ContextKeys.of(message.keys(is_thread=True)), account_of(workspace.team_id, message.user_id)
    return await storage.read(lambda connection: has_addressed_bot(connection, keys, account))
