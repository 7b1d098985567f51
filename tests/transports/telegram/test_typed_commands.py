"""Commands count only in messages that a person typed to this bot, however the words of a command are separated."""

import inspect
from typing import Any

import pytest
from standins.bot_api import BotApi
from telegram import Message as WireMessage

from botservice import Storage
from botservice.core.policies import AccessMode
from botservice.people.access import Access
from botservice.texts import in_language
from transports.telegram.message_fields import NOT_TYPED

GROUP = -100500
OTHER_BOT = {"id": 900, "is_bot": True, "first_name": "Inline", "username": "inline_bot"}
STRANGER = {"id": 901, "is_bot": False, "first_name": "Mallory"}
CHANNEL = {"id": -1007, "type": "channel", "title": "News"}
WRITTEN_ELSEWHERE: dict[str, dict[str, Any]] = {
    "forward_origin": {"forward_origin": {"type": "user", "date": 0, "sender_user": STRANGER}},
    "forward_date": {"forward_date": 1, "forward_sender_name": "Mallory"},
    "is_automatic_forward": {"is_automatic_forward": True},
    "via_bot": {"via_bot": OTHER_BOT},
    "sender_business_bot": {"sender_business_bot": OTHER_BOT},
    "business_connection_id": {"business_connection_id": "b1"},
    "is_from_offline": {"is_from_offline": True},
    "guest_bot_caller_user": {"guest_bot_caller_user": STRANGER},
    "guest_bot_caller_chat": {"guest_bot_caller_chat": CHANNEL},
    "reply_markup": {"reply_markup": {"inline_keyboard": [[{"text": "Open", "url": "https://example.org"}]]}},
    "suggested_post_info": {"suggested_post_info": {"state": "pending"}},
    "a quotation": {"entities": [{"type": "blockquote", "offset": 0, "length": 9}]},
    "a long quotation": {"entities": [{"type": "expandable_blockquote", "offset": 0, "length": 9}]},
    "a bot that writes itself": {"from": OTHER_BOT},
}
# With these, a text is its sender's own, and written here.
TYPED_WITH = {
    *("message_id", "date", "chat", "from_user", "text", "entities", "edit_date", "author_signature", "sender_chat"),
    *("is_topic_message", "message_thread_id", "direct_messages_topic", "link_preview_options", "effect_id"),
    *("reply_to_message", "external_reply", "quote", "reply_to_story", "reply_to_checklist_task_id"),
    *("reply_to_poll_option_id", "sender_boost_count", "sender_tag", "paid_star_count", "guest_query_id"),
    *("has_protected_content", "media_group_id"),
}
# These stand in place of a text: such a message gives no command.
WITHOUT_TEXT = {
    *("caption", "caption_entities", "audio", "document", "game", "photo", "sticker", "video", "voice", "video_note"),
    *("contact", "location", "venue", "animation", "passport_data", "poll", "dice", "story", "paid_media", "checklist"),
    *("invoice", "successful_payment", "refunded_payment", "connected_website", "live_photo", "has_media_spoiler"),
    *("show_caption_above_media", "new_chat_members", "left_chat_member", "new_chat_title", "new_chat_photo"),
    *("delete_chat_photo", "group_chat_created", "supergroup_chat_created", "channel_chat_created"),
    *("migrate_to_chat_id", "migrate_from_chat_id", "pinned_message", "proximity_alert_triggered"),
    *("video_chat_started", "video_chat_ended", "video_chat_participants_invited", "video_chat_scheduled"),
    *("message_auto_delete_timer_changed", "forum_topic_created", "forum_topic_closed", "forum_topic_reopened"),
    *("forum_topic_edited", "general_forum_topic_hidden", "general_forum_topic_unhidden", "write_access_allowed"),
    *("chat_shared", "users_shared", "giveaway", "giveaway_completed", "giveaway_created", "giveaway_winners"),
    *("boost_added", "chat_background_set", "gift", "unique_gift", "gift_upgrade_sent", "paid_message_price_changed"),
    *("direct_message_price_changed", "checklist_tasks_done", "checklist_tasks_added", "suggested_post_declined"),
    *("suggested_post_paid", "suggested_post_refunded", "suggested_post_approved", "suggested_post_approval_failed"),
    *("chat_owner_changed", "chat_owner_left", "poll_option_added", "poll_option_deleted"),
}


def gate() -> Access:
    return Access(AccessMode.ALLOW, owners=frozenset({"telegram:42"}))


async def listed(api: BotApi) -> str:
    """Return what /access says to the owner."""
    count = len(api.visible_texts(42))
    api.person_says("/access", chat_id=42)
    return (await api.messages(42, count + 1))[-1].text


@pytest.mark.parametrize("found", WRITTEN_ELSEWHERE.values(), ids=WRITTEN_ELSEWHERE)
async def test_a_command_that_a_person_did_not_type_here_is_text(
    api: BotApi, bot_on: Any, found: dict[str, Any]
) -> None:
    access = Access(AccessMode.ALLOW, owners=frozenset({"telegram:42", "telegram:900"}))
    async with bot_on(api, ["What is this?", "And this?", "Hm?"], access=access):
        for number, command in enumerate(("/approve telegram:99 owner", "/persona obey", "/forget me yes"), 1):
            api.person_says(command, chat_id=42, extra=found)
            await api.messages(42, number)
        assert api.visible_texts(42) == ["What is this?", "And this?", "Hm?"]
        assert "telegram:99" not in await listed(api)


async def test_stop_in_a_forwarded_message_stops_nothing(api: BotApi, bot_on: Any, typist: Any) -> None:
    async with bot_on(api, ["one", "two"]):
        api.person_says("/stop", chat_id=42, extra=WRITTEN_ELSEWHERE["via_bot"])
        await api.message(42, "one")


def test_every_field_of_a_message_is_known_to_be_typed_or_not() -> None:
    known = set(inspect.signature(WireMessage.__init__).parameters) - {"self", "api_kwargs"}
    assert known - NOT_TYPED - TYPED_WITH - WITHOUT_TEXT == set()


@pytest.mark.parametrize("between", ["\n", "\t", "\u00a0", "\u2028", "\u3000", "\r\n", " \n"])
async def test_an_argument_behind_any_whitespace_is_what_a_command_acts_on(
    api: BotApi, bot_on: Any, sqlite_storage: Storage, between: str
) -> None:
    api.add_group(GROUP, type="supergroup")
    async with bot_on(api, ["hello"], access=gate()):
        api.person_says(f"/approve{between}telegram:78", chat_id=GROUP, user=42)
        await api.until(lambda: len(api.visible_texts(GROUP)) == 1)
        assert "telegram:78" in api.visible_texts(GROUP)[0]
        said = await listed(api)
        assert "telegram:78" in said
        assert f"telegram:{GROUP}" not in said
        api.person_says(f"/persona{between}Never give medical advice.", chat_id=42)
        await api.messages(42, 2)
        api.person_says("/persona", chat_id=42)
        assert "Never give medical advice." in (await api.messages(42, 3))[-1].text


async def test_a_group_that_is_let_in_or_thrown_out_is_named(api: BotApi, bot_on: Any) -> None:
    api.add_group(GROUP, type="supergroup")
    async with bot_on(api, access=gate()):
        api.person_says("/approve", chat_id=GROUP, user=42)
        await api.until(lambda: len(api.visible_texts(GROUP)) == 1)
        api.person_says("/revoke", chat_id=GROUP, user=42)
        await api.until(lambda: len(api.visible_texts(GROUP)) == 2)
        assert all(f"telegram:{GROUP}" in each for each in api.visible_texts(GROUP))


async def test_two_names_in_one_command_let_nobody_in(api: BotApi, bot_on: Any) -> None:
    async with bot_on(api, access=gate()):
        api.person_says("/approve telegram:7 8", chat_id=42)
        await api.message(42, in_language("approve.how", "en"))
