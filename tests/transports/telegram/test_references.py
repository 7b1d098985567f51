"""Replies, quotes and forwards: who said what is known from Telegram to the row, and goes with whoever is forgotten."""

import asyncio
from typing import Any

import pytest
from people.crowd import find_rows
from sqlalchemy import select, union_all
from standins.bot_api import BotApi, Person
from standins.bot_api.media import attached

from botservice import AgentContext, Author, Message, Storage
from botservice.core.message_references import Reference, ReferenceKind
from botservice.privacy.exported_data import as_values, read_person
from botservice.privacy.forgetting import forget_person
from botservice.storage.tables.conversations import deliveries, turns

GROUP = -1001000000001
ALICE, BOB = Person(7, "Alice"), Person(8, "Bob")
WHO = Author("telegram", "7", "Alice")
MARK = "zx81marker"
USER = {"id": 7, "is_bot": False, "first_name": "Alice"}
CHANNEL = {"id": -1002, "type": "channel", "title": "News"}
PATIENCE_SECONDS = 60


async def said(storage: Storage, chat_id: int = GROUP) -> list[Message]:
    context = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": str(chat_id)})
    return [each for each in await context.chat_history.messages() if each.role == "user"]


async def held(storage: Storage, chat_id: int = GROUP) -> Reference:
    """Return the only thing that the last message holds of others."""
    (reference,) = (await said(storage, chat_id))[-1].references
    return reference


async def until_said(storage: Storage, text: str) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while text not in [each.text for each in await said(storage)]:  # noqa: ASYNC110 - only storage knows
            await asyncio.sleep(0.01)


async def quiet(storage: Storage) -> None:
    """Wait until no turn is open, and nothing is to be sent."""
    is_open = select(turns.c.id).where(turns.c.status.in_(["queued", "running"]))
    is_owed = select(deliveries.c.id).where(deliveries.c.status.in_(["pending", "attempting"]))
    busy = union_all(is_open, is_owed).limit(1)
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await storage.read(lambda c: c.execute(busy).first()):  # noqa: ASYNC110 - only storage knows
            await asyncio.sleep(0.01)


async def ask(bot: Any, text: str, user: Person = BOB, **how: Any) -> int:
    """Write to the bot in the group, wait until it has answered, and return the message's id."""
    api, count = bot.api, len(bot.llm.prompts)
    told = api.person_says(f"@{api.username} {text}", chat_id=GROUP, user=user, **how)
    await api.until(lambda: len(bot.llm.prompts) > count)
    await quiet(bot.storage)
    return int(told.message_id)


async def is_gone_everywhere(bot: Any) -> None:
    """Check that the mark stands in no row, no prompt that comes, and nothing that others are given."""
    assert await find_rows(bot.storage, MARK) == []
    await ask(bot, "what was said here?")
    assert MARK not in str(bot.llm.prompts[-1])
    assert MARK not in str(as_values(await read_person(bot.storage, Author("telegram", "8"))))


@pytest.fixture
def group(api: BotApi) -> BotApi:
    api.add_group(GROUP)
    return api


async def test_a_quote_of_a_message_to_the_bot_goes_with_its_author(group: BotApi, bot_on, sqlite_storage) -> None:
    async with bot_on(group) as bot:
        asked = await ask(bot, f"my code is {MARK}", ALICE)
        await ask(bot, "which code?", reply_to=asked)
        await ask(bot, "really?", reply_to=asked, quote=f"is {MARK}")
        assert await held(sqlite_storage) == Reference(ReferenceKind.REPLY, WHO, f"is {MARK}", str(asked))
        assert MARK in str(bot.llm.prompts[-1])
        keys = {"transport": "telegram", "chat_id": str(GROUP)}
        recorded = await (await AgentContext.get_or_create(sqlite_storage, keys)).load_memory()
        assert recorded.steps[-1].model_input_messages == bot.llm.prompts[-1]
        await forget_person(sqlite_storage, WHO)
        await is_gone_everywhere(bot)
    assert [each.full_text for each in await said(sqlite_storage)] == [
        "[in reply to somebody]\nwhich code?",
        "[in reply to somebody]\nreally?",
        "what was said here?",
    ]


async def test_a_quote_of_a_message_that_the_bot_was_never_shown_goes_too(
    group: BotApi, bot_on, sqlite_storage
) -> None:
    group.privacy_mode = True
    async with bot_on(group) as bot:
        unseen = group.person_says(f"the code is {MARK}", chat_id=GROUP, user=ALICE).message_id
        await ask(bot, "which code?", reply_to=unseen)
        assert await held(sqlite_storage) == Reference(ReferenceKind.REPLY, WHO, f"the code is {MARK}", str(unseen))
        await forget_person(sqlite_storage, WHO)
        await is_gone_everywhere(bot)


async def test_a_quote_goes_that_its_author_has_edited_since(group: BotApi, bot_on, sqlite_storage) -> None:
    async with bot_on(group) as bot:
        asked = await ask(bot, f"my code is {MARK}", ALICE)
        await ask(bot, "which code?", reply_to=asked)
        group.person_edits(GROUP, asked, f"@{group.username} never mind")
        await until_said(sqlite_storage, "never mind")
        await quiet(sqlite_storage)
        group.person_says("/forget message yes", chat_id=GROUP, user=ALICE)
        await until_gone(bot)
        assert [each.full_text for each in await said(sqlite_storage)] == ["[in reply to somebody]\nwhich code?"]
        await is_gone_everywhere(bot)


async def until_gone(bot: Any) -> None:
    """Wait until the message that is to go is gone."""
    async with asyncio.timeout(PATIENCE_SECONDS):
        while "7" in [each.author.id for each in await said(bot.storage)]:  # noqa: ASYNC110 - only storage knows
            await asyncio.sleep(0.01)
    await quiet(bot.storage)


async def test_an_answer_that_is_quoted_goes_with_what_it_answers(group: BotApi, bot_on, sqlite_storage) -> None:
    async with bot_on(group) as bot:
        await ask(bot, f"my code is {MARK}", ALICE)
        answer = group.visible_messages(GROUP, from_bot=True)[-1]
        assert MARK in answer.text
        await ask(bot, "is that so?", reply_to=answer.message_id)
        assert (await held(sqlite_storage)).is_of_assistant
        await forget_person(sqlite_storage, WHO)
        await is_gone_everywhere(bot)


async def test_a_question_that_is_being_answered_goes_on_without_the_quote(
    group: BotApi, bot_on, typist, sqlite_storage
) -> None:
    group.privacy_mode = True
    async with bot_on(group, typist):
        unseen = group.person_says(f"the code is {MARK}", chat_id=GROUP, user=ALICE).message_id
        group.person_says(f"@{group.username} which code?", chat_id=GROUP, user=BOB, reply_to=unseen)
        await group.until(lambda: typist.prompts)
        await forget_person(sqlite_storage, WHO)
        typist.write("lost")
        typist.finish()
        await group.until(lambda: len(typist.prompts) == 2)
        typist.write("no idea")
        typist.finish()
        await group.message(GROUP, "no idea")
        await quiet(sqlite_storage)
        assert MARK in str(typist.prompts[0])
        assert MARK not in str(typist.prompts[1])
        assert await find_rows(sqlite_storage, MARK) == []


async def test_an_edit_does_not_bring_back_what_is_forgotten(group: BotApi, bot_on, sqlite_storage) -> None:
    async with bot_on(group) as bot:
        asked = await ask(bot, f"my code is {MARK}", ALICE)
        reply = await ask(bot, "which code?", reply_to=asked)
        await forget_person(sqlite_storage, WHO)
        group.person_edits(GROUP, reply, f"@{group.username} what code?")
        await until_said(sqlite_storage, "what code?")
        await quiet(sqlite_storage)
        await is_gone_everywhere(bot)


@pytest.mark.parametrize(
    ("origin", "author"),
    [
        ({"type": "user", "date": 0, "sender_user": USER}, WHO),
        ({"type": "chat", "date": 0, "sender_chat": CHANNEL}, Author("telegram", "-1002", "News")),
        ({"type": "channel", "date": 0, "message_id": 1, "chat": CHANNEL}, Author("telegram", "-1002", "News")),
        ({"type": "hidden_user", "date": 0, "sender_user_name": "Alice"}, Author("telegram", None, "Alice")),
    ],
)
async def test_what_is_forwarded_names_its_author(api: BotApi, bot_on, sqlite_storage, origin, author) -> None:
    async with bot_on(api) as bot:
        api.person_sends({"text": f"the code is {MARK}", "forward_origin": origin}, chat_id=42)
        await api.message(42, lambda shown: MARK in shown.text)
        await quiet(sqlite_storage)
        (kept,) = await said(sqlite_storage, 42)
        assert (kept.text, kept.references) == ("", (Reference(ReferenceKind.FORWARD, author, f"the code is {MARK}"),))
        given = str(as_values(await read_person(sqlite_storage, Author("telegram", "42"))))
        assert "[forwarded: a message of another person]" in given
        if author.id is not None:
            await forget_person(sqlite_storage, author)
            assert await find_rows(bot.storage, MARK) == []


async def test_a_forwarded_file_is_its_authors(api: BotApi, bot_on, sqlite_storage) -> None:
    async with bot_on(api):
        with api.condition:
            file = api.world.files.add("document", MARK.encode(), name="plan.txt", mime_type="text/plain")
        origin = {"type": "user", "date": 0, "sender_user": USER}
        api.person_sends({**attached("document", file), "forward_origin": origin}, chat_id=42)
        await api.message(42, lambda shown: MARK in shown.text)
        await quiet(sqlite_storage)
        await forget_person(sqlite_storage, WHO)
        (kept,) = await said(sqlite_storage, 42)
        assert (kept.full_text, kept.attachments) == ("[forwarded from somebody]", ())
        assert await find_rows(sqlite_storage, MARK) == []


async def test_a_file_that_is_replied_to_goes_with_whoever_sent_it(group: BotApi, bot_on, sqlite_storage) -> None:
    async with bot_on(group) as bot:
        sent = group.person_sends_document(
            f"the code is {MARK}".encode(), chat_id=GROUP, user=ALICE, name=f"{MARK}.txt"
        )
        photo = group.person_sends_photo(b"\x89PNG\r\n\x1a\n" + MARK.encode(), chat_id=GROUP, user=ALICE)
        await ask(bot, "which code?", reply_to=sent.message_id)
        replied = await ask(bot, "what is this?", reply_to=photo.message_id)
        assert (await held(sqlite_storage)).file_count == 1
        assert len((await said(sqlite_storage))[-1].attachments) == 1
        given = as_values(await read_person(sqlite_storage, Author("telegram", "8")))
        assert MARK not in str(given["messages"])
        await forget_person(sqlite_storage, WHO)
        assert [(each.full_text, each.attachments) for each in await said(sqlite_storage)] == [
            ("[in reply to somebody]\nwhich code?", ()),
            ("[in reply to somebody]\nwhat is this?", ()),
        ]
        group.person_edits(GROUP, replied, f"@{group.username} what was this?")
        await until_said(sqlite_storage, "what was this?")
        await quiet(sqlite_storage)
        assert (await said(sqlite_storage))[-1].attachments == ()
        await is_gone_everywhere(bot)


async def test_a_reply_to_another_chat_names_whom_it_quotes(api: BotApi, bot_on, sqlite_storage) -> None:
    outside = {"origin": {"type": "user", "date": 0, "sender_user": USER}, "chat": CHANNEL, "message_id": 5}
    async with bot_on(api):
        quote = {"text": f"the code is {MARK}", "position": 0}
        api.person_says("which code?", chat_id=42, extra={"external_reply": outside, "quote": quote})
        await api.message(42, lambda shown: MARK in shown.text)
        await quiet(sqlite_storage)
        assert await held(sqlite_storage, 42) == Reference(ReferenceKind.REPLY, WHO, f"the code is {MARK}")
        await forget_person(sqlite_storage, WHO)
        assert [each.full_text for each in await said(sqlite_storage, 42)] == ["[in reply to somebody]\nwhich code?"]
        assert await find_rows(sqlite_storage, MARK) == []


async def test_a_forwarded_command_is_nobodys_order(api: BotApi, bot_on, sqlite_storage) -> None:
    async with bot_on(api):
        api.person_says("my dog is Rex", chat_id=42)
        await api.messages(42, 1)
        origin = {"type": "user", "date": 0, "sender_user": USER}
        api.person_sends({"text": "/forget me yes", "forward_origin": origin}, chat_id=42)
        await api.messages(42, 2)
        await quiet(sqlite_storage)
    assert "my dog is Rex" in [each.text for each in await said(sqlite_storage, 42)]
