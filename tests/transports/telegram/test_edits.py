"""What people edit in Telegram: answered as edited while it waits, and true in the history afterwards."""

import asyncio

import pytest
from standins.bot_api import BotApi

from botservice import AgentContext, Storage

GROUP = -1001000000001
PATIENCE_SECONDS = 60


async def said(storage: Storage, chat_id: int = 42, **more: str) -> list[str]:
    keys = {"transport": "telegram", "chat_id": str(chat_id), **more}
    return [each.text for each in await (await AgentContext.get_or_create(storage, keys)).chat_history.messages()]


async def until_said(storage: Storage, *texts: str, chat_id: int = 42, **more: str) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await said(storage, chat_id, **more) != list(texts):  # noqa: ASYNC110 - only storage knows
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("webhook", [False, True])
async def test_the_history_says_what_an_answered_message_says_now(
    api: BotApi, bot_on, sqlite_storage: Storage, webhook: bool
) -> None:
    async with bot_on(api, webhook=webhook):
        hello = api.person_says("helo", chat_id=42)
        await api.message(42, "You said: helo")
        for text in ("hallo", "hello"):
            api.person_edits(42, hello.message_id, text)
        await until_said(sqlite_storage, "hello", "You said: helo")
    assert len(api.visible_texts(42)) == 1, "an edit is not answered"


async def test_a_question_that_waits_is_answered_as_edited(api: BotApi, bot_on, typist, sqlite_storage) -> None:
    async with bot_on(api, typist):
        api.person_says("one", chat_id=42)
        await api.until(lambda: typist.prompts)
        two = api.person_says("two", chat_id=42)
        api.person_edits(42, two.message_id, "three")
        await api.all_taken()
        typist.write("first")
        typist.finish()
        await api.message(42, "first")
        typist.write("second")
        typist.finish()
        await api.message(42, "second")
    assert typist.prompts[1][-1]["content"] == "three"
    assert await said(sqlite_storage) == ["one", "first", "three", "second"]


async def test_an_edited_caption_keeps_its_picture_and_a_topic_its_own_words(
    api: BotApi, bot_on, sqlite_storage: Storage
) -> None:
    api.add_group(GROUP, is_forum=True)
    tea, coffee = api.add_topic(GROUP, "Tea"), api.add_topic(GROUP, "Coffee")
    async with bot_on(api):
        sent = api.person_sends_photo(b"\x89PNG", chat_id=42, caption="my cat")
        await api.message(42)
        api.person_edits(42, sent.message_id, "my dog")
        await until_said(sqlite_storage, "my dog", "You said: my cat")
        keys = {"transport": "telegram", "chat_id": "42"}
        kept = (await (await AgentContext.get_or_create(sqlite_storage, keys)).chat_history.messages())[0]
        assert [each.data for each in kept.attachments] == [b"\x89PNG"]
        first = api.person_says(f"@{api.username} green", chat_id=GROUP, thread_id=tea)
        api.person_says(f"@{api.username} black", chat_id=GROUP, thread_id=coffee)
        await api.messages(GROUP, 2)
        api.person_edits(GROUP, first.message_id, f"@{api.username} white")
        await until_said(sqlite_storage, "white", "You said: green", chat_id=GROUP, thread_id=str(tea))
    assert await said(sqlite_storage, GROUP, thread_id=str(coffee)) == ["black", "You said: black"]
