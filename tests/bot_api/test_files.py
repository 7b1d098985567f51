"""Files and albums at the Bot API stand-in, and groups with their topics."""

from bot_api.bot_clients import Refusal
from standins.bot_api import BotApi, Person
from telegram import Bot, InputMediaPhoto

PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)


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
