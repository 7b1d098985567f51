"""The Bot API stand-in, through the real client: it fails as the real one does."""

import asyncio
import json
import random
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import timedelta

import httpx
import pytest
from standins.bot_api import (
    BotApi,
    Delay,
    Drop,
    Hang,
    LoseAnswer,
    Outcome,
    Person,
    RateLimits,
    Strictness,
    UpdateConfirmed,
    UpdateSent,
    UpdatesThrownAway,
    WebhookAnswered,
    flood,
    random_token,
    server_error,
)
from standins.bot_api.posting import Poster
from standins.serving import Exchange, Gate, Served
from telegram import (
    Bot,
    BotCommand,
    InlineKeyboardButton,
    InlineKeyboardMarkup,
    InputMediaPhoto,
    MessageEntity,
    ReplyParameters,
)
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TimedOut,
)
from telegram.request import HTTPXRequest

Refusal = Callable[[Awaitable[object]], Awaitable[str]]
PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)


@pytest.fixture(autouse=True)
def _times_as_timedelta(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PTB_TIMEDELTA", "1")  # or the client warns at every 429, and a warning is an error here


@pytest.fixture
def api() -> Iterator[BotApi]:
    with BotApi.running() as server:
        server.add_private_chat(42)
        yield server


@pytest.fixture
async def bot(api: BotApi) -> AsyncIterator[Bot]:
    async with client(api) as made:
        yield made


def client(api: BotApi, token: str | None = None) -> Bot:
    """Return the real client, without the 40 ms that it takes to load certificates nobody needs here."""
    plain = {"verify": False}
    return Bot(
        token or api.token,
        base_url=api.base_url,
        base_file_url=api.base_file_url,
        request=HTTPXRequest(httpx_kwargs=plain),
        get_updates_request=HTTPXRequest(httpx_kwargs=plain),
    )


@pytest.fixture
def refusal(api: BotApi) -> Refusal:
    """Return what makes a call that must be refused, and gives the reason as it stood on the wire."""

    async def refused(call: Awaitable[object]) -> str:
        with pytest.raises(BadRequest):
            await call
        return api.answers()[-1].description.removeprefix("Bad Request: ")

    return refused


# Tokens, methods, parameters


async def test_a_wrong_token_is_unauthorized_and_a_malformed_one_is_not_found(api: BotApi) -> None:
    stranger = client(api, random_token())
    with pytest.raises(InvalidToken, match="rejected by the server"):
        await stranger.initialize()
    await stranger.shutdown()
    async with httpx.AsyncClient(verify=False) as http:
        assert (await http.get(f"{api.base_url}nonsense/getMe")).status_code == 404


async def test_an_unknown_method_is_not_found(bot: Bot) -> None:
    with pytest.raises(Exception, match="not found"):
        await bot.do_api_request("sendSmell", api_kwargs={"chat_id": 42})


async def test_parameters_arrive_as_query_form_json_and_multipart_in_any_case_of_the_method(api: BotApi) -> None:
    url = f"{api.base_url}{api.token}"
    entities = [{"type": "bold", "offset": 0, "length": 2}]
    async with httpx.AsyncClient(verify=False) as http:
        for answer in (
            await http.get(f"{url}/sendmessage", params={"chat_id": "42", "text": "query"}),
            await http.post(f"{url}/SendMessage", data={"chat_id": "42", "text": "form ✓"}),
            await http.post(f"{url}/sendMessage", json={"chat_id": 42, "text": "json", "entities": entities}),
            await http.post(f"{url}/sendMessage", data={"chat_id": "42", "text": "multipart"}, files={"x": b"x"}),
        ):
            assert answer.json()["ok"] is True
        broken = await http.post(f"{url}/sendMessage", content=b"{", headers={"content-type": "application/json"})
        assert broken.status_code == 400
    assert api.visible_texts(42) == ["query", "form ✓", "json", "multipart"]
    assert api.visible_messages(42)[2].entities == tuple(entities)


async def test_get_me_and_get_chat_satisfy_the_client(api: BotApi, bot: Bot, refusal: Refusal) -> None:
    assert (bot.username, bot.id) == (api.username, int(api.token.partition(":")[0]))
    assert (await bot.get_chat(42)).first_name == "Person 42"
    assert (await bot.get_chat_member(42, bot.id)).status == "member"
    assert await refusal(bot.get_chat(43)) == "chat not found"


# Polling


async def test_polling_waits_for_an_update_and_the_offset_confirms(api: BotApi, bot: Bot) -> None:
    waiting = asyncio.create_task(bot.get_updates(timeout=20))
    await api.call("getUpdates")
    said = api.person_says("hello", chat_id=42)
    (update,) = await waiting
    assert (update.update_id, update.message.text, update.effective_user.id) == (said.update_id, "hello", 42)
    assert len(await bot.get_updates()) == 1, "unconfirmed updates come again"
    second = api.person_says("again", chat_id=42)
    assert [u.update_id for u in await bot.get_updates(offset=said.update_id + 1)] == [second.update_id]
    confirmed = api.journal.entries(UpdateConfirmed)
    assert [entry.update_id for entry in confirmed] == [said.update_id]
    assert second.update_id == said.update_id + 1


async def test_limit_negative_offset_and_allowed_updates(api: BotApi, bot: Bot) -> None:
    for number in range(5):
        api.person_says(str(number), chat_id=42)
    assert [u.message.text for u in await bot.get_updates(limit=2)] == ["0", "1"]
    assert [u.message.text for u in await bot.get_updates(offset=-2)] == ["3", "4"]
    assert len(api.journal.entries(UpdateConfirmed)) == 3
    await bot.get_updates(allowed_updates=["callback_query"])
    assert api.person_says("unheard", chat_id=42).update_id is None
    assert api.person_stops_generation(42) is None
    await bot.get_updates(allowed_updates=["message", "stopped_message_generation"])
    assert api.person_stops_generation(42) is not None


async def test_a_second_poller_throws_the_first_out(api: BotApi, bot: Bot) -> None:
    first = asyncio.create_task(bot.get_updates(timeout=20))
    await api.call("getUpdates")
    another = client(api)
    await another.initialize()
    second = asyncio.create_task(another.get_updates(timeout=20))
    with pytest.raises(Conflict, match="terminated by other getUpdates request"):
        await first
    api.person_says("hello", chat_id=42)
    assert len(await second) == 1
    await another.shutdown()


async def test_a_poller_that_dies_leaves_its_updates(api: BotApi, bot: Bot) -> None:
    first = asyncio.create_task(bot.get_updates(timeout=20))
    await api.call("getUpdates")
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await api.until(lambda: api.answers("getUpdates"))
    assert api.answers("getUpdates")[0].outcome is Outcome.ABANDONED
    api.person_says("hello", chat_id=42)
    assert len(await bot.get_updates()) == 1


async def test_polling_and_webhook_exclude_each_other(api: BotApi, bot: Bot) -> None:
    waiting = asyncio.create_task(bot.get_updates(timeout=20))
    await api.call("getUpdates")
    await bot.set_webhook("http://127.0.0.1:9/telegram", secret_token="s3cret")
    with pytest.raises(Conflict, match="terminated by setWebhook"):
        await waiting
    with pytest.raises(Conflict, match="can't use getUpdates method while webhook is active"):
        await bot.get_updates()
    await bot.delete_webhook()
    assert await bot.get_updates() == ()


# Sending


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


# Files


async def test_files_go_both_ways(api: BotApi, bot: Bot, refusal: Refusal) -> None:
    api.person_sends_photo(PNG, chat_id=42, caption="look @me")
    api.person_sends_voice(b"OggS" + bytes(9), chat_id=42)
    api.person_sends_document(b"text", chat_id=42, name="a.txt")
    api.person_sends_document(b"", chat_id=42, name="big.bin", size=30_000_000)
    photo, voice, document, big = [update.message for update in await bot.get_updates()]
    assert photo.caption == "look @me"
    assert bytes(await (await photo.photo[-1].get_file()).download_as_bytearray()) == PNG
    assert bytes(await (await voice.voice.get_file()).download_as_bytearray()).startswith(b"OggS")
    assert (document.document.file_name, document.document.mime_type) == ("a.txt", "text/plain")
    assert await refusal(big.document.get_file()) == "file is too big"
    sent = await bot.send_photo(42, PNG, caption="*c*", parse_mode="MarkdownV2")
    assert api.file(sent.photo[-1].file_id).data == PNG
    again = await bot.send_photo(42, sent.photo[-1].file_id)
    assert again.photo[-1].file_unique_id == sent.photo[-1].file_unique_id
    api.add_file_to_web("https://a.example/p.png", PNG)
    assert (await bot.send_photo(42, "https://a.example/p.png")).photo
    assert api.seen(42, sent.message_id).text == "c"


async def test_files_that_are_wrong_are_refused(bot: Bot, refusal: Refusal) -> None:
    assert await refusal(bot.send_photo(42, b"no image")) == "IMAGE_PROCESS_FAILED"
    assert await refusal(bot.send_document(42, b"")) == "file must be non-empty"
    assert await refusal(bot.send_photo(42, PNG, caption="x" * 1025)) == "message caption is too long"
    assert "HTTP URL content" in await refusal(bot.send_photo(42, "https://a.example/none.png"))
    assert "big for a photo" in await refusal(bot.send_photo(42, PNG + bytes(10 * 1024 * 1024)))
    assert await refusal(bot.get_file("nonsense")) == "invalid file_id"


async def test_albums_go_both_ways(api: BotApi, bot: Bot, refusal: Refusal) -> None:
    api.person_sends_album([PNG, PNG + b"2"], chat_id=42, caption="two")
    updates = await bot.get_updates()
    assert len({update.message.media_group_id for update in updates}) == 1
    assert [update.message.caption for update in updates] == ["two", None]
    sent = await bot.send_media_group(42, [InputMediaPhoto(PNG, caption="c"), InputMediaPhoto(PNG + b"3")])
    assert len({message.media_group_id for message in sent}) == 1
    assert api.file(sent[1].photo[-1].file_id).data == PNG + b"3"
    assert "from 2 to 10" in await refusal(bot.send_media_group(42, [InputMediaPhoto(PNG)]))


# Groups


async def test_a_group_has_topics_mentions_edits_and_privacy(api: BotApi, bot: Bot) -> None:
    bob = Person(7, "Bob", username="bob")
    api.add_group(-100123, is_forum=True)
    thread_id = api.add_topic(-100123)
    said = api.person_says(f"😀 @{api.username} /help", chat_id=-100123, user=bob, thread_id=thread_id)
    api.person_edits(-100123, said.message_id, "changed")
    _, first, second = await bot.get_updates()
    assert [(e.type, first.message.parse_entity(e)) for e in first.message.entities] == [
        ("mention", f"@{api.username}"),
        ("bot_command", "/help"),
    ]
    assert (first.message.message_thread_id, first.effective_user.first_name) == (thread_id, "Bob")
    assert second.edited_message.text == "changed"
    api.privacy_mode = True
    assert api.person_says("among us", chat_id=-100123, user=bob).update_id is None
    assert api.person_says(f"@{api.username} hi", chat_id=-100123, user=bob).update_id is not None
    mine = await bot.send_message(-100123, "hello")
    assert api.person_says("why?", chat_id=-100123, reply_to=mine.message_id).update_id is not None


# Faults


async def test_faults_happen_as_ordered(api: BotApi, bot: Bot) -> None:
    api.order(flood(3), "sendMessage", chat_id=42, times=2)
    for _ in range(2):
        with pytest.raises(RetryAfter) as caught:
            await bot.send_message(42, "x")
        assert caught.value.retry_after == timedelta(seconds=3)
    await bot.send_message(42, "through")
    api.order(server_error(502), when=lambda call: call.text("text") == "bad")
    api.order(server_error(500, html=True), times=1)
    with pytest.raises(NetworkError):
        await bot.send_message(42, "good")
    with pytest.raises(NetworkError, match="Bad Gateway"):
        await bot.send_message(42, "bad")
    assert api.visible_texts(42) == ["through"]


async def test_a_dropped_call_has_no_effect_and_a_lost_answer_has(api: BotApi, bot: Bot) -> None:
    api.order(Drop(), "sendMessage")
    with pytest.raises(NetworkError):
        await bot.send_message(42, "dropped")
    api.order(LoseAnswer(), "sendMessage")
    with pytest.raises(NetworkError):
        await bot.send_message(42, "lost")
    assert api.visible_texts(42) == ["lost"]
    assert [(a.outcome, a.had_effect) for a in api.answers("sendMessage")] == [
        (Outcome.DROPPED, False),
        (Outcome.LOST, True),
    ]


async def test_a_call_can_hang_before_or_after_its_effect(api: BotApi, bot: Bot) -> None:
    before = api.order(Hang(), "sendMessage")
    with pytest.raises(TimedOut):
        await bot.send_message(42, "never", read_timeout=0.05)
    after = api.order(Hang(after_effect=True), "sendMessage")
    sending = asyncio.create_task(bot.send_message(42, "at last", read_timeout=5))
    await api.message(42, "at last")
    assert not sending.done()
    after.release()
    assert (await sending).text == "at last"
    assert before.used == after.used == 1
    api.order(Delay(0.01), "sendMessage")
    await bot.send_message(42, "late")
    assert api.visible_texts(42) == ["at last", "late"]


async def test_published_limits_answer_429_when_switched_on(api: BotApi, bot: Bot) -> None:
    now = [0.0]
    api.limits = RateLimits(clock=lambda: now[0])
    api.add_group(-100123)
    await bot.send_message(42, "1")
    with pytest.raises(RetryAfter):
        await bot.send_message(42, "too fast")
    await bot.send_chat_action(42, "typing")
    now[0] += 1
    await bot.send_message(42, "2")
    for _ in range(20):
        now[0] += 2
        await bot.send_message(-100123, "x")
    now[0] += 2
    with pytest.raises(RetryAfter) as caught:
        await bot.send_message(-100123, "21st")
    assert caught.value.retry_after == timedelta(seconds=20)
    assert api.limits.refused == 2


# Webhooks


class Receiver(Served):
    """A webhook of a test: what it got, and what it answers."""

    def __init__(self) -> None:
        super().__init__()
        self.got: list[tuple[int, str, str | None]] = []
        self.statuses: list[int] = []
        self.gate = Gate(is_open=True)
        self.at_once = 0
        self.peak = 0

    @property
    def address(self) -> str:
        return f"{self.url}/telegram/webhook"

    @property
    def texts(self) -> list[str]:
        return [text for _, text, _ in self.got]

    async def handle(self, exchange: Exchange) -> None:
        update = json.loads(await exchange.body())
        text = update.get("message", {}).get("text", "")
        self.got.append((update["update_id"], text, exchange.headers.get("x-telegram-bot-api-secret-token")))
        self.at_once += 1
        self.peak = max(self.peak, self.at_once)
        await self.gate.passed()
        self.at_once -= 1
        await exchange.answer(self.statuses.pop(0) if self.statuses else 200, b"")


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    made = Receiver()
    with made.serving():
        yield made


def confirmed(api: BotApi, count: int) -> "asyncio.Future[None]":
    return asyncio.ensure_future(api.until(lambda: len(api.journal.entries(UpdateConfirmed)) >= count))


async def test_a_webhook_gets_updates_with_its_secret_until_it_accepts(
    api: BotApi, bot: Bot, receiver: Receiver
) -> None:
    receiver.statuses = [500, 401, 200]
    waiting = api.person_says("before", chat_id=42)
    await bot.set_webhook(receiver.address, secret_token="s3cret", max_connections=3, allowed_updates=["message"])
    api.person_says("after", chat_id=42)
    await confirmed(api, 2)
    assert receiver.got[:3] == [(waiting.update_id, "before", "s3cret")] * 3
    assert receiver.texts[3:] == ["after"]
    assert [entry.status for entry in api.journal.entries(WebhookAnswered)] == [500, 401, 200, 200]
    info = await bot.get_webhook_info()
    assert (info.url, info.max_connections, info.pending_update_count) == (receiver.address, 3, 0)
    assert "401" in info.last_error_message


async def test_a_webhook_keeps_order_within_a_chat_and_goes_side_by_side_across_chats(
    api: BotApi, bot: Bot, receiver: Receiver
) -> None:
    receiver.gate = Gate()
    await bot.set_webhook(receiver.address, max_connections=5)
    for number in range(3):
        for chat_id in range(101, 109):
            api.person_says(f"{chat_id}:{number}", chat_id=chat_id)
    await api.until(lambda: len(api.journal.entries(UpdateSent)) >= 5)
    receiver.gate.open()
    await confirmed(api, 24)
    assert receiver.peak <= 5
    assert api.webhooks.peak == 5
    for chat_id in range(101, 109):
        assert [t for t in receiver.texts if t.startswith(str(chat_id))] == [f"{chat_id}:{n}" for n in range(3)]


@pytest.mark.parametrize("order", ["reversed", "shuffled", "at_once"])
async def test_a_webhook_can_be_out_of_order_and_twice(api: BotApi, bot: Bot, receiver: Receiver, order: str) -> None:
    api.deliver(order=order, twice="after", seed=3)
    await bot.set_webhook(receiver.address, max_connections=1 if order == "reversed" else 40)
    with api.webhook_paused():
        for number in range(6):
            api.person_says(str(number), chat_id=42)
    await confirmed(api, 6)
    firsts = list(dict.fromkeys(receiver.texts))
    assert sorted(receiver.texts) == sorted([str(n) for n in range(6)] * 2)
    if order == "reversed":
        assert firsts == [str(n) for n in reversed(range(6))]


async def test_a_webhook_that_is_down_gets_everything_when_it_is_back(
    api: BotApi, bot: Bot, receiver: Receiver
) -> None:
    await bot.set_webhook("https://bot.example.org/telegram/webhook")
    api.person_says("hello", chat_id=42)
    await api.until(lambda: len(api.journal.entries(WebhookAnswered)) >= 2)
    api.reach_webhooks_at(receiver.address)
    await confirmed(api, 1)
    assert receiver.texts == ["hello"]


async def test_webhook_settings_are_checked_and_dropping_is_noted(api: BotApi, bot: Bot, refusal: Refusal) -> None:
    assert "HTTPS URL" in await refusal(bot.set_webhook("http://bot.example.org/x"))
    assert "ports" in await refusal(bot.set_webhook("https://bot.example.org:8000/x"))
    assert "unallowed characters" in await refusal(bot.set_webhook("http://127.0.0.1:9/", secret_token="a b"))
    said = api.person_says("gone", chat_id=42)
    await bot.delete_webhook(drop_pending_updates=True)
    (thrown,) = api.journal.entries(UpdatesThrownAway)
    assert thrown.update_ids == (said.update_id,)


# The stand-in as a tool


async def test_arbitrary_updates_pass_through(api: BotApi, bot: Bot) -> None:
    api.push_update({"message_from_mars": {"chat": {"id": 42}, "antennas": 3}})
    api.push_update({"update_id": 5, "message": api.person_says("x", chat_id=42).message})
    updates = await bot.get_updates()
    assert updates[0].api_kwargs["message_from_mars"]["antennas"] == 3
    assert 5 in [update.update_id for update in updates]


def test_waiting_says_what_is_there_when_it_fails(api: BotApi) -> None:
    api.person_says("only this", chat_id=42)
    with pytest.raises(TimeoutError, match="only this"):
        api.wait_for_message(42, timeout=0.01)
    threading.Timer(0.01, api.person_says, ["in the end"], {"chat_id": 42}).start()
    assert api.wait_for_message(42, "end", from_bot=None).from_bot is False


async def test_the_server_can_go_away_and_come_back_with_its_state(api: BotApi) -> None:
    other = BotApi(token=random_token())
    with other.serving():
        port = other.port
        other.person_says("first", chat_id=1)
    with other.serving(port):
        async with client(other) as bot:
            assert [update.message.text for update in await bot.get_updates()] == ["first"]


async def test_two_hundred_chats_with_ten_messages_each_pass_quickly_and_in_order(api: BotApi) -> None:
    chats = range(1000, 1200)
    everything = [(chat, number) for number in range(10) for chat in chats]
    random.Random(1).shuffle(everything)
    for chat, number in everything:
        api.person_says(str(number), chat_id=chat)
    url = f"{api.base_url}{api.token}"
    got: dict[int, list[str]] = {chat: [] for chat in chats}
    poster, json_type = Poster(), {"content-type": "application/json"}
    offset = 0
    while True:
        _, answer = await poster.post(f"{url}/getUpdates", json.dumps({"offset": offset}).encode(), json_type)
        updates = json.loads(answer)["result"]
        if not updates:
            break
        offset = updates[-1]["update_id"] + 1
        for update in updates:
            got[update["message"]["chat"]["id"]].append(update["message"]["text"])

    async def echo(chat: int) -> None:
        for text in got[chat]:
            body = json.dumps({"chat_id": chat, "text": text}).encode()
            status, _ = await poster.post(f"{url}/sendMessage", body, json_type)
            assert status == 200

    await asyncio.gather(*map(echo, chats))
    poster.close()
    for chat in chats:
        assert api.visible_texts(chat, from_bot=True) == api.visible_texts(chat, from_bot=False)
    assert api.world.shown_by_bot == 2000
    assert [entry.seq for entry in api.journal.entries()] == list(range(1, len(api.journal) + 1))
