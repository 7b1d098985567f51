"""What people write, send, quote and forward reaches the agent; in groups, who said it and whether the bot is meant."""

import asyncio
from typing import Any

import pytest
from standins.bot_api import BotApi, Person, Refuse, server_error
from standins.clocks import LastingMinute

from botservice import AgentContext, Storage
from botservice.commands.standard import standard_commands
from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import find_context
from botservice.core.messages import Message, Role

PNG = b"\x89PNG\r\n\x1a\n" + bytes(64)
GROUP = -1001000000001


async def history(storage: Storage, chat_id: int = 42, **keys: str) -> list[Message]:
    context = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": str(chat_id), **keys})
    return await context.chat_history.messages()


async def until_moved(storage: Storage, chat_id: int) -> None:
    """Return when a conversation goes on elsewhere; meanwhile, one may be there that is about to be deleted."""
    keys = ContextKeys.of({"transport": "telegram", "chat_id": str(chat_id)})
    async with asyncio.timeout(60):
        while await storage.read(lambda connection: find_context(connection, keys)):  # noqa: ASYNC110 - only storage knows
            await asyncio.sleep(0.01)


async def said_to_bot(api: BotApi, bot_on, storage: Storage, say) -> Message:
    """Return what the history keeps of what a person did."""
    async with bot_on(api, ["ok"]):
        say()
        await api.message(42, "ok")
        return (await history(storage))[0]


async def test_a_message_keeps_its_author_date_and_id(api: BotApi, bot_on, sqlite_storage: Storage) -> None:
    alice = Person(42, "Ada", "Lovelace")
    kept = await said_to_bot(api, bot_on, sqlite_storage, lambda: api.person_says("hi", chat_id=42, user=alice))
    wire = api.visible_messages(42)[0].wire
    assert (kept.author.platform, kept.author.id, kept.author.name) == ("telegram", "42", "Ada Lovelace")
    assert kept.external_id == str(wire["message_id"])
    assert int(kept.created_at.timestamp()) == wire["date"]


KINDS: list[tuple[dict[str, Any], str]] = [
        ({"sticker": {"file_id": "s", "file_unique_id": "u", "type": "regular", "width": 1, "height": 1,
                      "is_animated": False, "is_video": False, "emoji": "🎉"}}, "🎉"),
        ({"location": {"latitude": 48.1, "longitude": 11.5}}, "[location: 48.1, 11.5]"),
        ({"venue": {"location": {"latitude": 1.0, "longitude": 2.0}, "title": "Café", "address": "Main St 1"},
          "location": {"latitude": 1.0, "longitude": 2.0}}, "[place: Café, Main St 1 (1.0, 2.0)]"),
        ({"contact": {"phone_number": "+49123", "first_name": "Bob", "last_name": "Ross"}},
         "[contact: Bob Ross, +49123]"),
        ({"dice": {"emoji": "🎲", "value": 4}}, "🎲 [4]"),
        ({"text": "look", "forward_origin": {"type": "hidden_user", "date": 0, "sender_user_name": "Eve"}},
         "[forwarded from Eve]\nlook"),
        ({"text": "look", "forward_origin": {"type": "channel", "date": 0, "message_id": 1, "chat":
          {"id": -1002, "type": "channel", "title": "News"}}}, "[forwarded from News]\nlook"),
        ({"poll": {"id": "1", "question": "Tea?", "options": [{"text": "yes", "voter_count": 0, "persistent_id": "a"},
          {"text": "no", "voter_count": 0, "persistent_id": "b"}], "total_voter_count": 0, "is_closed": False,
          "is_anonymous": True, "type": "regular", "allows_multiple_answers": False,
          "allows_revoting": False, "members_only": False}}, "[poll: Tea?: yes / no]"),
]  # fmt: skip


async def test_everything_has_words(api: BotApi, bot_on, sqlite_storage: Storage) -> None:
    async with bot_on(api, ["ok"] * len(KINDS)):
        for count, (content, _) in enumerate(KINDS, start=1):
            api.person_sends(content, chat_id=42)
            await api.messages(42, count)
    kept = [each for each in await history(sqlite_storage) if each.role == Role.USER]
    assert [each.full_text for each in kept] == [text for _, text in KINDS]


async def test_a_reply_brings_what_it_replies_to_and_a_quote_its_words(
    api: BotApi, bot_on, sqlite_storage: Storage
) -> None:
    async with bot_on(api):
        api.person_says("The sky is blue", chat_id=42)
        shown = await api.message(42)
        api.person_says("why?", chat_id=42, reply_to=shown.message_id)
        await api.messages(42, 2)
        api.person_says("really?", chat_id=42, reply_to=shown.message_id, quote="sky")
        await api.messages(42, 3)
        texts = [message.full_text for message in await history(sqlite_storage) if message.role == "user"]
    assert texts == [
        "The sky is blue",
        '[in reply to you: "You said: The sky is blue"]\nwhy?',
        '[in reply to you: "sky"]\nreally?',
    ]


async def test_a_photo_is_seen_by_the_model_in_its_largest_size(api: BotApi, bot_on, sqlite_storage: Storage) -> None:
    async with bot_on(api, ["a cat"]) as bot:
        api.person_sends_photo(PNG, chat_id=42, caption="what is it?")
        await api.message(42, "a cat")
        parts = bot.llm.prompts[0][-1]["content"]
    assert [part["type"] for part in parts] == ["text", "image_url"]
    (kept, _) = await history(sqlite_storage)
    assert kept.text == "what is it?"
    assert (kept.attachments[0].mime_type, kept.attachments[0].data) == ("image/jpeg", PNG)


@pytest.mark.parametrize("webhook", [False, True])
async def test_an_album_is_one_turn(api: BotApi, bot_on, sqlite_storage: Storage, webhook: bool) -> None:
    clock = LastingMinute()
    async with bot_on(api, lambda _: f"seen {len(api.calls('getFile'))}", webhook=webhook, clock=clock):
        await api.until(lambda: api.updates.allowed)
        api.person_sends_album([PNG, PNG + b"2", PNG + b"3"], chat_id=42, caption="all")
        api.person_says("and then?", chat_id=42)
        await api.all_taken()
        clock.pass_(seconds=2)
        await api.messages(42, 2)
    assert api.visible_texts(42) == ["seen 3", "seen 3"]
    kept = [message for message in await history(sqlite_storage) if message.role == "user"]
    assert [message.text for message in kept] == ["all", "", "", "and then?"]
    assert [message.attachments[0].data for message in kept[:3]] == [PNG, PNG + b"2", PNG + b"3"]


async def test_a_text_file_is_read(api: BotApi, bot_on, sqlite_storage: Storage) -> None:
    def send() -> None:
        api.person_sends_document("größe: 1\n".encode(), chat_id=42, name="a.yaml", caption="read it")

    kept = await said_to_bot(api, bot_on, sqlite_storage, send)
    assert kept.text == "read it\n[file, a.yaml]\ngröße: 1"
    assert kept.attachments[0].name == "a.yaml"


@pytest.mark.parametrize(
    ("encoding", "text"), [("cp1251", "Завтра в десять часов"), ("euc_kr", "내일 회의는 열 시에 시작합니다.")]
)
async def test_a_text_file_in_an_old_encoding_is_read_as_it_was_written(
    api: BotApi, bot_on: Any, encoding: str, text: str
) -> None:
    async with bot_on(api) as bot:
        api.person_sends_document(text.encode(encoding), chat_id=42)
        await api.message(42)
    assert text in str(bot.llm.prompts[-1][-1])


async def test_the_model_is_told_that_an_encoding_is_a_guess(api: BotApi, bot_on: Any) -> None:
    async with bot_on(api) as bot:
        api.person_sends_document("Привет".encode("koi8-r"), chat_id=42)
        await api.message(42)
    assert "which is a guess: letters may be wrong" in str(bot.llm.prompts[-1][-1])


async def test_what_is_too_large_is_said_kindly(api: BotApi, bot_on, sqlite_storage: Storage) -> None:
    def send() -> None:
        api.person_sends_document(b"x", chat_id=42, name="film.mkv", size=3_000_000_000)

    kept = await said_to_bot(api, bot_on, sqlite_storage, send)
    assert kept.text == "[file, film.mkv, 2861.0 MB: too large for a bot to fetch; Telegram's limit is 20 MB]"
    assert not api.calls("getFile")


@pytest.mark.parametrize("method", ["getFile", "downloadFile"])
async def test_a_file_that_is_lost_on_the_way_is_fetched_again(api: BotApi, bot_on, method, sqlite_storage) -> None:
    api.order(server_error(502), method, times=2)
    kept = await said_to_bot(api, bot_on, sqlite_storage, lambda: api.person_sends_photo(PNG, chat_id=42))
    assert kept.attachments[0].data == PNG


async def test_a_file_that_cannot_be_had_is_named_and_the_message_answered(api: BotApi, bot_on, sqlite_storage) -> None:
    api.order(Refuse(400, "Bad Request: wrong file_id or the file is temporarily unavailable"), "getFile", times=None)
    kept = await said_to_bot(api, bot_on, sqlite_storage, lambda: api.person_sends_voice(b"OggS", chat_id=42))
    assert kept.text == "[voice message, 3 s: Telegram does not give it out; ask for it to be sent again]"


async def test_the_address_of_a_file_is_never_kept(api: BotApi, bot_on, sqlite_storage: Storage) -> None:
    kept = await said_to_bot(api, bot_on, sqlite_storage, lambda: api.person_sends_photo(PNG, chat_id=42))
    assert kept.attachments[0].url is None


SILENT: list[dict[str, Any]] = [
    {"message": {"new_chat_members": [{"id": 9, "is_bot": False, "first_name": "Bob"}]}},
    {"message": {"pinned_message": {"message_id": 1, "date": 0, "chat": {"id": 42, "type": "private"}}}},
    {"edited_message": {"text": "changed"}},
    {"my_chat_member": {}},
    {"some_new_kind": {"chat": {"id": 42}}},
    {"poll_answer": {"poll_id": "1"}},
    {"inline_query": {"id": "1", "query": "x"}},
    {},
]


async def test_what_says_nothing_is_answered_by_nothing(api: BotApi, bot_on) -> None:
    chat = {"id": 42, "type": "private", "first_name": "A"}
    person = {"id": 42, "is_bot": False, "first_name": "A"}
    base = {"message_id": 77, "date": 1, "chat": chat, "from": person}
    async with bot_on(api):
        for update in SILENT:
            told = ("message", "edited_message")
            api.push_update({kind: base | body if kind in told else body for kind, body in update.items()})
        api.person_says("hello", chat_id=42)
        await api.message(42)
    assert api.visible_texts(42) == ["You said: hello"]


async def test_an_edit_does_no_harm(api: BotApi, bot_on, sqlite_storage: Storage) -> None:
    async with bot_on(api):
        said = api.person_says("hello", chat_id=42)
        await api.message(42)
        api.person_edits(42, said.message_id, "hello there")
        api.person_says("bye", chat_id=42)
        await api.messages(42, 2)
    assert api.visible_texts(42) == ["You said: hello", "You said: bye"]


async def test_a_group_is_listened_to_and_answered_when_the_bot_is_meant(
    api: BotApi, bot_on, sqlite_storage: Storage
) -> None:
    ada, bob = Person(1, "Ada"), Person(2, "Bob", username="bob")
    api.add_group(GROUP, members=[ada, bob])

    def count(prompt) -> str:
        return f"answer {len(api.visible_texts(GROUP)) + 1}"

    async with bot_on(api, count):
        api.person_says("I like tea", chat_id=GROUP, user=ada)
        api.person_says("I like coffee", chat_id=GROUP, user=bob)
        said = api.person_says(f"@{api.username.upper()} what does Ada like?", chat_id=GROUP, user=bob)
        first = await api.message(GROUP, "answer 1")
        api.person_says("and Bob?", chat_id=GROUP, user=ada, reply_to=first.message_id)
        await api.message(GROUP, "answer 2")
        api.person_says(f"/ask@{api.username} me", chat_id=GROUP, user=ada)
        await api.message(GROUP, "I don’t know the command /ask")
        api.person_says(f"/ask@{api.username} me", chat_id=GROUP, user=ada)
        await api.messages(GROUP, 4)
        mention = [{"type": "text_mention", "offset": 0, "length": 3,
                    "user": {"id": 7140000001, "is_bot": True, "first_name": "Bot"}}]  # fmt: skip
        api.person_says("Bot hello", chat_id=GROUP, user=ada, entities=mention)
        await api.message(GROUP, "answer 5")
        for ignored in ("@bob hi", "/ask@other_bot me", "a@stand_in_bot.com", "the end"):
            api.person_says(ignored, chat_id=GROUP, user=ada)
        api.person_says(f"really, @{api.username}?", chat_id=GROUP, user=bob)
        await api.message(GROUP, "answer 6")
        kept = await history(sqlite_storage, GROUP)
    assert len(api.visible_texts(GROUP)) == 6
    assert first.reply_to == said.message_id
    people = [(message.author.name, message.text) for message in kept if message.role == "user"]
    assert people[:3] == [("Ada", "I like tea"), ("Bob", "I like coffee"), ("Bob", "what does Ada like?")]
    assert ("Ada", "the end") in people


async def test_two_people_of_one_name_are_told_apart(api: BotApi, bot_on) -> None:
    first, second = Person(7140000101, "Ada", username="ada"), Person(7140000104, "Ada", username="ada2")
    api.add_group(GROUP, members=[first, second])
    async with bot_on(api, ["yes", "no"]) as bot:
        api.person_says("I am allergic to nuts", chat_id=GROUP, user=first)
        api.person_says("I love nuts", chat_id=GROUP, user=second)
        api.person_says(f"@{api.username} am I allergic?", chat_id=GROUP, user=second)
        await api.message(GROUP, "yes")
        api.person_says(f"@{api.username} and I?", chat_id=GROUP, user=first)
        await api.message(GROUP, "no")
    labels = [each["content"].partition(": ")[0] for each in bot.llm.prompts[-1] if each["role"] == "user"]
    assert labels == [labels[0], labels[1], labels[1], labels[0]]
    assert labels[0] != labels[1]
    assert all(each.startswith("Ada [") for each in labels)
    assert not any(str(who.id)[-4:] in each for each in labels for who in (first, second))


async def test_listening_shows_nothing(api: BotApi, bot_on) -> None:
    api.add_group(GROUP)
    async with bot_on(api) as bot:
        for number in range(5):
            api.person_says(f"chatter {number}", chat_id=GROUP)
        said = api.person_says(f"@{api.username} hi", chat_id=GROUP)
        await api.message(GROUP, after=said.message_id)
        assert len(bot.llm.prompts) == 1
    assert {call.method for call in api.calls(chat_id=GROUP)} <= {"sendMessage", "sendChatAction"}


@pytest.mark.parametrize("webhook", [False, True])
async def test_a_group_that_becomes_a_supergroup_keeps_its_memory(
    api: BotApi, bot_on, sqlite_storage: Storage, webhook: bool
) -> None:
    api.add_group(-500, type="group")
    async with bot_on(api, lambda prompt: f"seen {sum(m['role'] == 'user' for m in prompt)}", webhook=webhook):
        api.person_says(f"@{api.username} hello", chat_id=-500)
        await api.message(-500, "seen 1")
        api.migrate(-500, GROUP)
        api.person_says(f"@{api.username} still here?", chat_id=GROUP)
        await api.message(GROUP, "seen 2")
    assert [m.text for m in await history(sqlite_storage, GROUP)] == ["hello", "seen 1", "still here?", "seen 2"]


async def test_what_is_said_in_a_supergroup_before_its_migration_is_known_joins_its_memory(
    api: BotApi, bot_on, sqlite_storage: Storage
) -> None:
    api.add_group(-500, type="group")
    async with bot_on(api, lambda prompt: f"seen {sum(m['role'] == 'user' for m in prompt)}"):
        api.person_says(f"@{api.username} hello", chat_id=-500)
        await api.message(-500, "seen 1")
        early = api.person_says(f"@{api.username} early", chat_id=GROUP)
        await api.message(GROUP, "seen 1")
        moved = {"message_id": 99, "date": 1, "chat": {"id": -500, "type": "group"}, "migrate_to_chat_id": GROUP}
        api.push_update({"message": moved})
        await until_moved(sqlite_storage, -500)
        api.person_says(f"@{api.username} still here?", chat_id=GROUP)
        await api.message(GROUP, "seen 3", after=early.message_id)
    assert [m.text for m in await history(sqlite_storage, GROUP)] == [
        "hello", "seen 1", "early", "seen 1", "still here?", "seen 3"]  # fmt: skip
    assert await history(sqlite_storage, -500) == []


async def test_a_topic_is_its_own_conversation_and_a_thread_of_replies_is_not(
    api: BotApi, bot_on, sqlite_storage: Storage
) -> None:
    api.add_group(GROUP, is_forum=True)
    tea, coffee = api.add_topic(GROUP, "Tea"), api.add_topic(GROUP, "Coffee")
    async with bot_on(api, lambda prompt: f"seen {sum(m['role'] == 'user' for m in prompt)}"):
        for topic in (tea, coffee, None):
            api.person_says(f"@{api.username} hello", chat_id=GROUP, thread_id=topic)
            shown = await api.message(GROUP, lambda m, topic=topic: m.thread_id == topic)
            assert shown.text == "seen 1"
        api.person_says(f"@{api.username} again", chat_id=GROUP, thread_id=tea)
        await api.message(GROUP, "seen 2")
        reply_thread = {"message_thread_id": 3}
        api.person_says(f"@{api.username} reply", chat_id=-1001000000002, extra=reply_thread)
        await api.message(-1001000000002)
    assert [m.text for m in await history(sqlite_storage, GROUP, thread_id=str(tea)) if m.role == "user"] == [
        "hello", "again"]  # fmt: skip
    assert len(await history(sqlite_storage, GROUP, thread_id=str(coffee))) == 2
    assert len(await history(sqlite_storage, -1001000000002)) == 2


@pytest.mark.parametrize(("language", "hello"), [("en", "Hi!"), ("de-AT", "Hallo!"), ("ko", "안녕"), ("xx", "Hi!")])
async def test_start_and_help_are_answered_without_the_model(
    api: BotApi, bot_on, sqlite_storage: Storage, language: str, hello: str
) -> None:
    person = Person(42, language_code=language)
    async with bot_on(api) as bot:
        api.person_says("/start", chat_id=42, user=person)
        assert (await api.message(42)).text.startswith(hello)
        said = api.person_says("/help", chat_id=42)
        assert "/stop" in (await api.message(42, after=said.message_id)).text
        assert bot.llm.prompts == []
    assert await history(sqlite_storage) == []


async def test_commands_are_registered_in_many_languages(api: BotApi, bot_on) -> None:
    async with bot_on(api, knows_menus=False):
        await api.until(lambda: len(api.commands) >= 10)
    names = [command.name for command in standard_commands().offered(None)]
    everywhere = {language: menu for (scope, language), menu in api.commands.items() if "default" in scope}
    assert all([each["command"] for each in menu] == names for menu in everywhere.values())
    assert set(everywhere) >= {"", "de", "es", "fr", "ko", "ja", "zh"}
