"""Whether a person typed a message to this bot. Source of all fields: core.telegram.org/bots/api#message."""

from collections.abc import Mapping
from typing import Any, Final

# A message with one of these was written by somebody else, by a program, or for another reader.
NOT_TYPED: Final = frozenset(
    {
        "forward_origin",
        # The same in Bot API servers before 7.0.
        *("forward_from", "forward_from_chat", "forward_sender_name", "forward_date"),
        "is_automatic_forward",  # a channel's post in its discussion group
        "is_paid_post",  # a channel's post, too
        "suggested_post_info",  # what a person wants a channel to publish
        "via_bot",  # an inline bot wrote it, a person chose it unseen
        "sender_business_bot",  # a bot wrote it in a person's name
        "business_connection_id",  # it belongs to the chat of two people
        "is_from_offline",  # a greeting, an away message, a scheduled one
        *("guest_bot_caller_user", "guest_bot_caller_chat"),  # a guest bot's answer
        "reply_markup",  # only bots put buttons under a message
        "web_app_data",  # a web app sent it
        "managed_bot_created",
    }
)
# Entities that mark words of a message as quoted.
QUOTES: Final = ("blockquote", "expandable_blockquote")


def is_typed(message: object) -> bool:
    """Return whether a person wrote the text of a message themselves, to be read here."""
    if not isinstance(message, Mapping) or any(message[name] is not None for name in NOT_TYPED & message.keys()):
        return False
    # Telegram puts a bot of its own there where somebody writes in the name of a chat.
    return not _is_bot(message.get("from")) or message.get("sender_chat") is not None


def _is_bot(sender: Any) -> bool:
    return isinstance(sender, Mapping) and sender.get("is_bot") is True
