"""Topics in private chats: each is a conversation of its own, and /new makes one where the bot may."""

from typing import Any

import pytest
from standins.bot_api import BotApi, LoseAnswer, Refuse, flood, server_error

from botservice import AgentContext, Storage
from botservice.texts import in_language

NEW_TOPIC, FRESH = in_language("new.topic", "en"), in_language("new.done", "en")


async def words(storage: Storage, **keys: str) -> list[str]:
    context = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": "42", **keys})
    return [message.text for message in await context.chat_history.messages()]


async def test_each_topic_of_a_private_chat_is_answered_in_it_and_knows_no_other(
    api: BotApi, bot_on: Any, sqlite_storage: Storage
) -> None:
    tea, trains = api.add_topic(42, "Tea"), api.add_topic(42, "Trains")
    async with bot_on(api) as bot:
        for thread_id, text in ((tea, "green"), (trains, "fast")):
            api.person_says(text, chat_id=42, thread_id=thread_id)
            await api.message(42, f"You said: {text}")
        answers = [each for each in api.visible_messages(42) if each.kind == "text" and each.from_bot]
        assert [each.thread_id for each in answers] == [tea, trains]
        assert "green" not in str(bot.llm.prompts[-1])
    assert await words(sqlite_storage, thread_id=str(trains)) == ["fast", "You said: fast"]


async def test_new_makes_a_topic_where_the_bot_has_topics(api: BotApi, bot_on: Any, sqlite_storage: Storage) -> None:
    api.abilities["has_topics_enabled"] = True
    async with bot_on(api):
        api.person_says("before", chat_id=42)
        await api.message(42, "You said: before")
        api.person_says("/new", chat_id=42)
        await api.message(42, NEW_TOPIC)
        (made,) = api.answers("createForumTopic")
        thread_id = made.result["message_thread_id"]
        api.person_says("after", chat_id=42, thread_id=thread_id)
        answer = await api.message(42, "You said: after")
    assert answer.thread_id == thread_id
    assert await words(sqlite_storage) == ["before", "You said: before"]
    assert await words(sqlite_storage, thread_id=str(thread_id)) == ["after", "You said: after"]


async def test_new_begins_afresh_in_the_same_chat_where_the_bot_has_no_topics(api: BotApi, bot_on: Any) -> None:
    async with bot_on(api):
        api.person_says("/new", chat_id=42)
        await api.message(42, FRESH)
    assert not api.calls("createForumTopic")


@pytest.mark.parametrize("status", [400, 403, 404])
async def test_a_chat_in_which_no_topic_can_be_made_is_not_asked_again(
    api: BotApi, bot_on: Any, caplog: Any, status: int
) -> None:
    api.abilities["has_topics_enabled"] = True
    api.order(Refuse(status, "Bad Request: the chat is not a forum"), "createForumTopic", times=None)
    async with bot_on(api):
        for number in (1, 2):
            api.person_says("/new", chat_id=42)
            await api.until(lambda number=number: api.visible_texts(42) == [FRESH] * number)
    assert len(api.calls("createForumTopic")) == 1
    assert [each.msg for each in caplog.records].count("telegram.topic_refused") == 1


@pytest.mark.parametrize("fault", [flood(30), server_error(500), server_error(403, html=True), LoseAnswer()], ids=str)
async def test_a_server_in_trouble_turns_no_topics_off(api: BotApi, bot_on: Any, fault: Any) -> None:
    api.abilities["has_topics_enabled"] = True
    api.order(fault, "createForumTopic")
    async with bot_on(api):
        api.person_says("/new", chat_id=42)
        await api.message(42, FRESH)
        api.person_says("/new", chat_id=42)
        await api.message(42, NEW_TOPIC)


async def test_a_group_is_given_no_topics(api: BotApi, bot_on: Any) -> None:
    api.abilities["has_topics_enabled"] = True
    async with bot_on(api):
        api.person_says("/new", chat_id=-1001)
        await api.message(-1001)
    assert not api.calls("createForumTopic")


async def test_an_answer_to_a_topic_that_is_deleted_meanwhile_comes_in_the_chat(
    api: BotApi, bot_on: Any, typist: Any
) -> None:
    tea = api.add_topic(42, "Tea")
    async with bot_on(api, typist):
        api.person_says("green?", chat_id=42, thread_id=tea)
        await api.until(lambda: typist.prompts)
        api.delete_topic(42, tea)
        typist.write("yes")
        typist.finish()
        assert (await api.message(42, "yes")).thread_id is None
