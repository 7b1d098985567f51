"""Every field of a message, by what is made of it. What stands in none of these is newer than this service.

Source: core.telegram.org/bots/api#message, up to Bot API 10.3.
"""

from collections.abc import Mapping
from typing import Any, Final

WORDS: Final = frozenset({"text", "caption", "rich_message"})
"""What a person wrote."""

FILES: Final = frozenset(
    {"animation", "audio", "document", "live_photo", "photo", "video", "video_note", "voice"}  # fetched, or named
)
"""What is fetched and read where the bot is meant."""

DESCRIBED: Final = frozenset(
    {
        *("chat_shared", "checklist", "checklist_tasks_added", "checklist_tasks_done", "contact", "dice", "game"),
        *("gift", "giveaway", "giveaway_completed", "giveaway_winners", "invoice", "location", "paid_media"),
        *("passport_data", "poll", "poll_option_added", "sticker", "story", "successful_payment", "unique_gift"),
        *("users_shared", "venue", "web_app_data"),
    }
)
"""What is said in a few words, in brackets."""

ENVELOPE: Final = frozenset(
    {
        *("author_signature", "business_connection_id", "caption_entities", "chat", "date", "direct_messages_topic"),
        *("edit_date", "effect_id", "entities", "ephemeral_message_id", "external_reply", "forward_origin", "from"),
        *("guest_bot_caller_chat", "guest_bot_caller_user", "guest_query_id", "has_media_spoiler"),
        *("has_protected_content", "is_automatic_forward", "is_from_offline", "is_paid_post", "is_topic_message"),
        *("link_preview_options", "media_group_id", "message_id", "message_thread_id", "paid_star_count", "quote"),
        *("receiver_user", "reply_markup", "reply_to_checklist_task_id", "reply_to_message", "reply_to_story"),
        *("reply_to_poll_option_id", "sender_boost_count", "sender_business_bot", "sender_chat", "sender_tag"),
        *("show_caption_above_media", "suggested_post_info", "via_bot"),
    }
)
"""Who said something, where, to whom and how: it says nothing by itself."""

REPORTS: Final = frozenset(
    {
        *("boost_added", "channel_chat_created", "chat_background_set", "chat_owner_changed", "chat_owner_left"),
        *("community_chat_added", "community_chat_removed", "connected_website", "delete_chat_photo"),
        *("direct_message_price_changed", "forum_topic_closed", "forum_topic_created", "forum_topic_edited"),
        *("forum_topic_reopened", "general_forum_topic_hidden", "general_forum_topic_unhidden", "gift_upgrade_sent"),
        *("giveaway_created", "group_chat_created", "left_chat_member", "managed_bot_created"),
        *("message_auto_delete_timer_changed", "migrate_from_chat_id", "migrate_to_chat_id", "new_chat_members"),
        *("new_chat_photo", "new_chat_title", "paid_message_price_changed", "pinned_message", "poll_option_deleted"),
        *("proximity_alert_triggered", "refunded_payment", "suggested_post_approval_failed"),
        *("suggested_post_approved", "suggested_post_declined", "suggested_post_paid", "suggested_post_refunded"),
        *("supergroup_chat_created", "video_chat_ended", "video_chat_participants_invited", "video_chat_scheduled"),
        *("video_chat_started", "write_access_allowed"),
    }
)
"""What only reports that something happened in the chat: nothing was asked, and nothing is made of it."""

KNOWN: Final = WORDS | FILES | DESCRIBED | ENVELOPE | REPORTS
_LONGEST_NAME: Final = 40


def name_content(body: Mapping[str, Any]) -> str:
    """Return in a few words what an unreadable message holds; empty where it only reports something."""
    if any(name in body for name in REPORTS):
        return ""
    known = FILES | DESCRIBED | WORDS
    names = [name for name, value in body.items() if (name in known and value) or _is_newer(name, value)]
    return f"[sent, but cannot be read here: {', '.join(_spell(name) for name in names)}]" if names else ""


def _is_newer(name: str, value: object) -> bool:
    """Return whether a field holds something that this service does not know; a number or a flag does not."""
    return name not in KNOWN and isinstance(value, Mapping | list) and bool(value)


def _spell(name: str) -> str:
    """Return a field's name as words: nothing in it ends the bracket that it stands in."""
    return "".join(each if each.isalnum() else " " for each in name)[:_LONGEST_NAME]
