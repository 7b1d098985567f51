"""The stand-in refuses a guest, and whoever makes topics, what Telegram refuses."""

import pytest
from bot_api.bot_clients import Refusal
from standins.bot_api import BotApi, Person
from standins.bot_api.guests import TOO_OLD
from standins.bot_api.messages import NOT_MODIFIED
from telegram import Bot, InlineQueryResultArticle, InputTextMessageContent
from telegram.error import EndPointNotFound

ADA = Person(42, "Ada")


def article(text: str, result_id: str = "1") -> InlineQueryResultArticle:
    return InlineQueryResultArticle(result_id, "t", InputTextMessageContent(text))


async def test_a_question_takes_one_answer_which_may_be_edited(api: BotApi, bot: Bot, refusal: Refusal) -> None:
    query = api.guest_is_asked("hello?", user=ADA)
    sent = await bot.answer_guest_query(query.id, article("wait"))
    assert await refusal(bot.answer_guest_query(query.id, article("wait"))) == TOO_OLD
    assert await bot.edit_message_text("hello!", inline_message_id=sent.inline_message_id) is True
    assert query.shown == ["wait", "hello!"]
    assert await refusal(bot.edit_message_text("hello!", inline_message_id=sent.inline_message_id)) == NOT_MODIFIED
    query.is_editable = False
    late = bot.edit_message_text("too late", inline_message_id=sent.inline_message_id)
    assert await refusal(late) == "MESSAGE_ID_INVALID"


async def test_a_question_that_is_too_old_or_nobody_s_takes_none(api: BotApi, bot: Bot, refusal: Refusal) -> None:
    query = api.guest_is_asked("hello?", user=ADA)
    query.is_open = False
    assert await refusal(bot.answer_guest_query(query.id, article("x"))) == TOO_OLD
    assert await refusal(bot.answer_guest_query("1", article("x"))) == TOO_OLD
    assert query.shown == []


async def test_what_is_no_answer_is_refused(api: BotApi, bot: Bot, refusal: Refusal) -> None:
    query = api.guest_is_asked("hello?", user=ADA)
    assert await refusal(bot.answer_guest_query(query.id, article("x", "y" * 65))) == "RESULT_ID_INVALID"
    assert await refusal(bot.answer_guest_query(query.id, article(""))) == "message text is empty"
    assert "too long" in (await refusal(bot.answer_guest_query(query.id, article("x" * 4097)))).lower()


async def test_the_chat_of_a_guest_is_known_to_no_other_method(api: BotApi, bot: Bot, refusal: Refusal) -> None:
    api.guest_is_asked("hello?", user=ADA)
    assert await refusal(bot.send_message(-1009000000001, "hi")) == "chat not found"


async def test_guests_are_told_of_only_where_they_are_asked_for(api: BotApi, bot: Bot) -> None:
    api.guest_is_asked("one", user=ADA)
    assert await bot.get_updates() == ()
    await bot.get_updates(allowed_updates=["guest_message"])
    query = api.guest_is_asked("two", user=ADA)
    (update,) = await bot.get_updates()
    assert update.guest_message is not None
    assert (update.guest_message.text, update.guest_message.guest_query_id) == ("two", query.id)


async def test_topics_are_made_where_the_bot_may(api: BotApi, bot: Bot, refusal: Refusal) -> None:
    assert await refusal(bot.create_forum_topic(42, "Tea")) == "the chat is not a forum"
    api.abilities["has_topics_enabled"] = True
    made = await bot.create_forum_topic(42, "Tea")
    assert (await bot.send_message(42, "hi", message_thread_id=made.message_thread_id)).is_topic_message
    assert await refusal(bot.create_forum_topic(42, "x" * 129)) == "TOPIC_TITLE_TOO_LONG"
    api.add_group(-1001, is_forum=True)
    assert await refusal(bot.create_forum_topic(-1001, "Tea")) == "not enough rights to create a topic"


@pytest.mark.parametrize("method", ["sendHologram", "answerGuestQueries"])
async def test_a_method_that_there_is_not_is_a_404(api: BotApi, bot: Bot, method: str) -> None:
    with pytest.raises(EndPointNotFound):
        await bot.do_api_request(method)
    assert api.answers()[-1].status == 404
