"""What people reported of other AI bots in Telegram: each case stands for a kind."""

from typing import Any

import pytest
from standins.bot_api import BotApi, Person
from standins.bot_api.faults import Refuse
from standins.bot_api.files import attached

from botservice import AgentContext, Storage

GROUP = -1001000000001
ADA, BOB = Person(1, "Ada"), Person(2, "Bob")
PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)


async def settle(api: BotApi) -> None:
    """Return when the bot has answered whatever it was sent: one more question is the last one that it takes."""
    await api.all_taken()
    api.person_says("the end", chat_id=77)
    await api.message(77, "You said: the end")


async def said(storage: Storage, chat_id: int = 42) -> list[str]:
    context = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": str(chat_id)})
    return [each.text for each in await context.chat_history.messages()]


@pytest.mark.parametrize(
    ("status", "description"),
    [
        (400, "Bad Request: TOPIC_CLOSED"),
        (403, "Forbidden: the group chat was deleted"),
        (403, "Forbidden: bot was kicked from the supergroup chat"),
        (400, "Bad Request: not enough rights to send text messages to the chat"),
        (400, "Bad Request: CHAT_WRITE_FORBIDDEN"),
        (403, "Forbidden: bot can't initiate conversation with a user"),
        (403, "Forbidden: user is deactivated"),
    ],
)
async def test_a_chat_that_takes_nothing_keeps_nobody_else_waiting(
    api: BotApi, bot_on: Any, status: int, description: str
) -> None:
    api.add_group(GROUP, members=[ADA])
    order = api.order(Refuse(status, description), "sendMessage", chat_id=GROUP, times=None)
    async with bot_on(api):
        api.person_says(f"@{api.username} hello", chat_id=GROUP, user=ADA)
        await api.until(lambda: order.used)
        await settle(api)
        order.cancel()
        api.person_says(f"@{api.username} again", chat_id=GROUP, user=ADA)
        await api.message(GROUP, "You said: again")
    assert api.visible_texts(GROUP) == ["You said: again"]


async def test_a_caption_that_is_edited_after_its_answer_is_changed_and_not_answered(
    api: BotApi, bot_on: Any, sqlite_storage: Storage
) -> None:
    async with bot_on(api):
        sent = api.person_sends_photo(PNG, chat_id=42, caption="my cat")
        await api.message(42)
        api.person_edits(42, sent.message_id, "my dog")
        await settle(api)
    assert len(api.visible_texts(42)) == 1
    assert "my dog" in (await said(sqlite_storage))[0]


async def test_an_edit_of_a_message_that_the_bot_has_never_seen_does_no_harm(api: BotApi, bot_on: Any) -> None:
    async with bot_on(api):
        chat = {"id": 42, "type": "private", "first_name": "Ada"}
        person = {"id": 42, "is_bot": False, "first_name": "Ada"}
        body = {"message_id": 999, "date": 1, "edit_date": 2, "chat": chat, "from": person, "text": "new words"}
        api.push_update({"edited_message": body})
        await settle(api)
    assert api.visible_texts(42) == []


async def test_an_answer_to_a_message_that_was_deleted_meanwhile_is_shown(api: BotApi, bot_on: Any) -> None:
    api.add_group(GROUP, members=[ADA])
    async with bot_on(api):
        with api.condition:
            sent = api.person_says(f"@{api.username} hello", chat_id=GROUP, user=ADA)
            api.person_deletes(GROUP, sent.message_id)
        await api.message(GROUP)


@pytest.mark.parametrize("kind", ["video_note", "voice", "audio", "video", "animation"])
async def test_recordings_without_a_model_for_speech_are_named(api: BotApi, bot_on: Any, kind: str) -> None:
    async with bot_on(api):
        with api.condition:
            file = api.world.files.add(kind, b"\x00" * 32)
        api.person_sends(attached(kind, file), chat_id=42)
        await api.message(42)


async def test_a_forwarded_album_with_a_comment_is_one_question(api: BotApi, bot_on: Any) -> None:
    origin = {"type": "hidden_user", "date": 1, "sender_user_name": "Eve"}
    async with bot_on(api, lambda prompt: f"seen {str(prompt).count('image_url') // 2}"):
        with api.condition:
            api.person_says("which is best?", chat_id=42)
            for number in range(3):
                file = api.world.files.add("photo", PNG + bytes([number]))
                more = {"media_group_id": "77", "forward_origin": origin}
                api.person_sends(attached("photo", file) | more, chat_id=42)
        await api.message(42, "seen 3")
    assert api.visible_texts(42) == ["seen 3"]


async def test_other_bots_in_a_group_are_not_answered(api: BotApi, bot_on: Any) -> None:
    api.add_group(GROUP, members=[ADA])
    chat = {"id": GROUP, "type": "supergroup", "title": "Team"}
    text = f"@{api.username} hello"
    mention = [{"type": "mention", "offset": 0, "length": len(api.username) + 1}]
    base = {"date": 1_700_000_000, "chat": chat, "text": text, "entities": mention}
    bot = {"id": 9, "is_bot": True, "first_name": "Other", "username": "other_bot"}
    async with bot_on(api):
        api.push_update({"message": base | {"message_id": 900, "from": bot}})
        await settle(api)
    assert api.visible_texts(GROUP) == []


@pytest.mark.parametrize("text", ["/start ref_123", "/start", "/start@stand_in_bot x"])
async def test_links_that_start_the_bot_are_welcomed(api: BotApi, bot_on: Any, text: str) -> None:
    async with bot_on(api):
        api.person_says(text.replace("stand_in_bot", api.username), chat_id=42)
        await api.message(42)


@pytest.mark.parametrize("text", ["\u200b", "\u2060\u200d", ".", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "a" * 4096])
async def test_odd_texts_are_answered(api: BotApi, bot_on: Any, text: str) -> None:
    async with bot_on(api):
        api.person_says(text, chat_id=42)
        await api.message(42)
