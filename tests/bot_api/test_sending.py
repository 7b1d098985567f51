"""What the Bot API stand-in makes of texts, markup, replies, edits and buttons, and what it refuses."""

import pytest
from bot_api.bot_clients import Refusal
from standins.bot_api import BotApi, Strictness
from telegram import Bot, BotCommand, InlineKeyboardButton, InlineKeyboardMarkup, MessageEntity, ReplyParameters
from telegram.error import ChatMigrated, Forbidden


async def test_text_is_counted_in_utf16_units_after_parsing(api: BotApi, bot: Bot, refusal: Refusal) -> None:
    await bot.send_message(42, "x" * 4096)
    await bot.send_message(42, "<b>" + "😀" * 2048 + "</b>", parse_mode="HTML")
    assert await refusal(bot.send_message(42, "x" * 4097)) == "message is too long"
    assert await refusal(bot.send_message(42, "😀" * 2048 + "x")) == "message is too long"
    assert await refusal(bot.send_message(42, "")) == "message text is empty"
    assert await refusal(bot.send_message(42, " \n\u200b ")) == "text must be non-empty"
    assert len(api.visible_messages(42)) == 2


async def test_text_is_cleaned_and_trimmed_with_its_entities(bot: Bot) -> None:
    bold = [MessageEntity("bold", 3, 4)]
    sent = await bot.send_message(42, "\n a\r\nb\x00 ! \n ", entities=bold)
    assert sent.text == "a\nb  !"
    assert [(e.offset, e.length) for e in sent.entities] == [(1, 3)]


@pytest.mark.parametrize(
    ("entity", "problem"),
    [
        (("bold", 100, 1), "entity begins after the end of the text at UTF-16 offset 100"),
        (("bold", 0, 100), "entity beginning at UTF-16 offset 0 ends after the end of the text at UTF-16 offset 100"),
        (("bold", 1, 2), "entity begins in a middle of a UTF-16 symbol at UTF-16 offset 1"),
        (("bold", -1, 1), "receive an entity with incorrect offset -1"),
        (("shout", 0, 2), "can't parse MessageEntity: Unsupported type specified"),
    ],
)
async def test_wrong_entities_are_refused(
    bot: Bot, entity: tuple[str, int, int], problem: str, refusal: Refusal
) -> None:
    message = await refusal(bot.send_message(42, "😀 hello", entities=[MessageEntity(*entity)]))
    assert message == problem


async def test_links_of_entities_are_checked(bot: Bot, refusal: Refusal) -> None:
    def link(url: str) -> list[MessageEntity]:
        return [MessageEntity("text_link", 0, 5, url=url)]

    assert "Wrong HTTP URL" in await refusal(bot.send_message(42, "click", entities=link("not-a-url")))
    assert "Unsupported URL protocol" in await refusal(bot.send_message(42, "click", entities=link("ftp://a.example")))
    sent = await bot.send_message(42, "click", entities=link("example.org"))
    assert sent.entities[0].url == "http://example.org/"


async def test_more_than_a_hundred_entities_are_cut_or_refused(api: BotApi, bot: Bot, refusal: Refusal) -> None:
    entities = [MessageEntity("bold", 2 * number, 1) for number in range(150)]
    assert len((await bot.send_message(42, "ab" * 150, entities=entities)).entities) == 100
    api.strict = Strictness(count=True, nesting=True)
    assert "150 entities" in await refusal(bot.send_message(42, "ab" * 150, entities=entities))
    crossed = [MessageEntity("bold", 0, 3), MessageEntity("italic", 2, 3)]
    assert "overlaps" in await refusal(bot.send_message(42, "abcdef", entities=crossed))


async def test_entities_survive_utf16_on_their_way(api: BotApi, bot: Bot) -> None:
    sent = await bot.send_message(42, "😀 *fat* _and ~thin~_ `code` [l](https://a.example/b)", parse_mode="MarkdownV2")
    assert sent.text == "😀 fat and thin code l"
    assert [(e.type, sent.parse_entity(e)) for e in sent.entities] == [
        ("bold", "fat"),
        ("italic", "and thin"),
        ("strikethrough", "thin"),
        ("code", "code"),
        ("text_link", "l"),
    ]


@pytest.mark.parametrize(
    ("mode", "text", "problem"),
    [
        ("MarkdownV2", "hello.", "Character '.' is reserved and must be escaped with the preceding '\\'"),
        ("MarkdownV2", "é *open", "Can't find end of Bold entity at byte offset 3"),
        ("MarkdownV2", "```py\ncode", "Can't find end of PreCode entity at byte offset 0"),
        ("MarkdownV2", "[a](b", "Can't find end of a URL at byte offset 4"),
        ("MarkdownV2", ">a *b\nc*", "Can't find end of Bold entity at byte offset 3"),
        ("HTML", "a < b", 'Unsupported start tag "" at byte offset 2'),
        ("HTML", "<p>x</p>", 'Unsupported start tag "p" at byte offset 0'),
        ("HTML", "<b>open", 'Can\'t find end tag corresponding to start tag "b"'),
        ("HTML", "<b><i>x</b></i>", 'Unmatched end tag at byte offset 7, expected "</i>", found "</b>"'),
        ("HTML", "x</b>", "Unexpected end tag at byte offset 1"),
        ("HTML", "<span>x</span>", 'Tag "span" must have class "tg-spoiler" at byte offset 0'),
        ("HTML", "<b", "Unclosed start tag at byte offset 0"),
        ("Markdown", "*open", "Can't find end of the entity starting at byte offset 0"),
    ],
)
async def test_markup_is_parsed_strictly(bot: Bot, mode: str, text: str, problem: str, refusal: Refusal) -> None:
    assert await refusal(bot.send_message(42, text, parse_mode=mode)) == f"can't parse entities: {problem}"


@pytest.mark.parametrize(
    ("mode", "text", "plain", "kinds"),
    [
        ("MarkdownV2", "__u__ ||s|| \\. \\\\", "u s . \\", ["underline", "spoiler"]),
        ("MarkdownV2", "```py\nx = `1`\n```", "x = 1", None),
        ("MarkdownV2", ">one\n>two\nrest", "one\ntwo\nrest", ["blockquote"]),
        ("MarkdownV2", ">one\n>*two*||", "one\ntwo", ["expandable_blockquote", "bold"]),
        ("MarkdownV2", ">a\n**>b\n>c||\nd", "a\nb\nc\nd", ["blockquote", "expandable_blockquote"]),
        ("MarkdownV2", "![👍](tg://emoji?id=5368324170671202286)", "👍", ["custom_emoji"]),
        ("HTML", "&lt;b&gt; &#x1F600; &unknown;", "<b> 😀 &unknown;", []),
        ("HTML", '<pre><code class="language-py">x</code></pre>', "x", ["pre"]),
        ("HTML", '<a href="https://a.example/?a=1&amp;b=2">l</a>', "l", ["text_link"]),
        ("HTML", "<blockquote expandable>q</blockquote>", "q", ["expandable_blockquote"]),
        ("HTML", '<span class="tg-spoiler">s</span><tg-spoiler>t</tg-spoiler>', "st", ["spoiler", "spoiler"]),
        ("Markdown", "*b* _i_ `c` \\* [l](a.example)", "b i c * l", ["bold", "italic", "code", "text_link"]),
    ],
)
async def test_markup_becomes_entities(
    bot: Bot, mode: str, text: str, plain: str, kinds: list[str] | None, refusal: Refusal
) -> None:
    if kinds is None:
        assert "Can't find end" not in await refusal(bot.send_message(42, text + ".", parse_mode=mode))
        return
    sent = await bot.send_message(42, text, parse_mode=mode)
    assert (sent.text, [entity.type for entity in sent.entities]) == (plain, kinds)


async def test_an_unknown_parse_mode_is_refused(bot: Bot, refusal: Refusal) -> None:
    assert await refusal(bot.send_message(42, "x", parse_mode="LaTeX")) == "unsupported parse_mode"


async def test_replies_topics_and_quotes_must_exist(api: BotApi, bot: Bot, refusal: Refusal) -> None:
    said = api.person_says("a question", chat_id=42)
    answer = await bot.send_message(42, "yes", reply_parameters=ReplyParameters(said.message_id, quote="question"))
    assert api.visible_messages(42)[-1].reply_to == said.message_id == answer.reply_to_message.message_id
    missing = ReplyParameters(999)
    assert await refusal(bot.send_message(42, "x", reply_parameters=missing)) == "message to be replied not found"
    await bot.send_message(42, "x", reply_parameters=ReplyParameters(999, allow_sending_without_reply=True))
    wrong = ReplyParameters(said.message_id, quote="answer")
    assert await refusal(bot.send_message(42, "x", reply_parameters=wrong)) == "QUOTE_TEXT_INVALID"
    assert await refusal(bot.send_message(42, "x", message_thread_id=7)) == "message thread not found"
    api.add_group(-100123, is_forum=True)
    thread_id = api.add_topic(-100123, "Cats")
    sent = await bot.send_message(-100123, "meow", message_thread_id=thread_id)
    assert (sent.message_thread_id, sent.is_topic_message) == (thread_id, True)
    api.delete_topic(-100123, thread_id)
    assert await refusal(bot.send_message(-100123, "x", message_thread_id=thread_id)) == "message thread not found"


async def test_chats_that_are_gone_say_how(api: BotApi, bot: Bot) -> None:
    api.add_group(-5, type="group")
    api.migrate(-5, -100777)
    with pytest.raises(ChatMigrated) as migrated:
        await bot.send_message(-5, "x")
    assert migrated.value.new_chat_id == -100777
    api.person_blocks(42)
    with pytest.raises(Forbidden, match="bot was blocked by the user"):
        await bot.send_message(42, "x")
    api.person_unblocks(42)
    await bot.send_message(42, "x")
    api.person_blocks(-100777)
    with pytest.raises(Forbidden, match="bot was kicked from the supergroup chat"):
        await bot.send_message(-100777, "x")
    updates = await bot.get_updates()
    assert [u.message.migrate_to_chat_id for u in updates if u.message] == [-100777, None]
    assert [u.my_chat_member.new_chat_member.status for u in updates if u.my_chat_member] == [
        "kicked",
        "member",
        "kicked",
    ]


async def test_edits_and_deletions_show(api: BotApi, bot: Bot, refusal: Refusal) -> None:
    said = api.person_says("hi", chat_id=42)
    sent = await bot.send_message(42, "one")
    await bot.edit_message_text("two", 42, sent.message_id)
    assert (await refusal(bot.edit_message_text("two", 42, sent.message_id))).startswith("message is not modified")
    assert await refusal(bot.edit_message_text("x", 42, 999)) == "message to edit not found"
    assert await refusal(bot.edit_message_text("x", 42, said.message_id)) == "message can't be edited"
    assert api.visible_texts(42, from_bot=None) == ["hi", "two"]
    await bot.delete_message(42, sent.message_id)
    assert await refusal(bot.delete_message(42, sent.message_id)) == "message to delete not found"
    assert api.visible_texts(42) == []


async def test_drafts_are_for_private_chats_and_vanish(api: BotApi, bot: Bot, refusal: Refusal) -> None:
    await bot.send_message_draft(42, 7, "")
    await bot.send_message_draft(42, 7, "Once upon")
    assert [draft.text for draft in api.drafts(42)] == ["", "Once upon"]
    assert api.visible_draft(42).text == "Once upon"
    await bot.send_message(42, "Once upon a time")
    assert api.visible_draft(42) is None
    assert "draft_id" in await refusal(bot.send_message_draft(42, 0, "x"))
    assert await refusal(bot.send_message_draft(42, 7, "x" * 4097)) == "message is too long"
    api.add_group(-100123)
    assert await refusal(bot.send_message_draft(-100123, 7, "x")) == "TEXTDRAFT_PEER_INVALID"


async def test_buttons_are_checked_and_pressed(api: BotApi, bot: Bot, refusal: Refusal) -> None:
    def row(**action: str) -> InlineKeyboardMarkup:
        return InlineKeyboardMarkup([[InlineKeyboardButton("b", **action)]])

    assert "BUTTON_DATA_INVALID" in await refusal(bot.send_message(42, "x", reply_markup=row(callback_data="x" * 65)))
    assert "Wrong HTTP URL" in await refusal(bot.send_message(42, "x", reply_markup=row(url="nowhere")))
    sent = await bot.send_message(42, "x", reply_markup=row(callback_data="yes"))
    assert api.visible_messages(42)[-1].buttons[0][0]["callback_data"] == "yes"
    query_id = api.person_presses(42, sent.message_id, "yes")
    (update,) = await bot.get_updates()
    assert (update.callback_query.data, update.callback_query.id) == ("yes", query_id)
    await update.callback_query.answer("ok")
    assert api.callback_answers[query_id]["text"] == "ok"
    assert "query is too old" in await refusal(bot.answer_callback_query(query_id))


async def test_actions_reactions_and_commands(api: BotApi, bot: Bot, refusal: Refusal) -> None:
    said = api.person_says("hi", chat_id=42)
    await bot.send_chat_action(42, "typing")
    assert "action" in await refusal(bot.send_chat_action(42, "dancing"))
    await bot.set_message_reaction(42, said.message_id, "👍")
    assert api.seen(42, said.message_id).reactions[0]["emoji"] == "👍"
    assert await refusal(bot.set_message_reaction(42, said.message_id, "x")) == "REACTION_INVALID"
    await bot.set_my_commands([BotCommand("help", "Helps")], language_code="de")
    assert [command.command for command in await bot.get_my_commands(language_code="de")] == ["help"]
    assert await bot.get_my_commands() == ()
    assert await refusal(bot.set_my_commands([("Help!", "x")])) == "BOT_COMMAND_INVALID"
