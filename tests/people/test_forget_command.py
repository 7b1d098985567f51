"""/forget and /export as people give them: asked twice, for one's own things alone, gone when it says so."""

import io
import zipfile

import pytest
from people.conversing import ALICE, BOB, command, open_chat, values
from people.crowd import crowded, find_bytes
from people.test_forgetting import LONG, MARK, Parrot, repeat

from botservice import AgentContext, MessageWindowMessageSelector
from botservice.agent.remembering import remember
from botservice.commands.catalogue import Catalogue
from botservice.commands.forget_and_export import EXPORT, FORGET
from botservice.commands.links import LINK
from botservice.commands.memory import MEMORY
from botservice.storage.blobs import digest_of

COMMANDS = Catalogue([FORGET, EXPORT, MEMORY, LINK])


def parrots(storage):
    return crowded(
        storage,
        Parrot(),
        tools=[repeat, remember],
        selector=MessageWindowMessageSelector(6),
        search_k=3,
        commands=COMMANDS,
    )


@pytest.mark.slow
async def test_everything_about_me_goes_when_it_is_confirmed_and_not_before(storage):
    async with parrots(storage) as bot:
        say = bot.messenger.say
        await say(bot, "alice", LONG, chat="alice", name=f"Al {MARK}", file=f"{MARK}.png")
        await say(bot, "alice", LONG, chat="group1", name=f"Al {MARK}", file=f"{MARK}.png")
        await say(bot, "bob", "bob likes beans", chat="group1")
        await say(bot, "alice", "hello there", chat="alice2", name=f"Al {MARK}")
        assert "/forget me yes" in await say(bot, "alice", "/forget me", chat="alice", name=f"Al {MARK}")
        assert await find_bytes(storage, MARK)
        assert "Forgotten" in await say(bot, "alice", "/forget me yes", chat="alice", name=f"Al {MARK}")
        await say(bot, "bob", "still here", chat="group1")
    assert await find_bytes(storage, MARK) == []
    assert await find_bytes(storage, "bob likes beans")


async def test_a_chat_goes_and_goes_on(storage):
    async with parrots(storage) as bot:
        say = bot.messenger.say
        await say(bot, "alice", LONG, chat="alice")
        await say(bot, "alice", f"other {MARK} chat", chat="alice2")
        await say(bot, "alice", "/forget chat", chat="alice")
        await say(bot, "alice", "/forget chat yes", chat="alice")
        first = await AgentContext.get_or_create(storage, {"transport": "messenger", "chat_id": "alice"})
        second = await AgentContext.get_or_create(storage, {"transport": "messenger", "chat_id": "alice2"})
        assert await first.chat_history.messages() == []
        assert len(await second.chat_history.messages()) == 2
        assert await find_bytes(storage, "My diary") == []
        assert MARK not in await say(bot, "alice", "what did I say?", chat="alice")


async def test_the_last_message_goes_and_in_a_group_one_s_own_alone(storage):
    async with parrots(storage) as bot:
        say = bot.messenger.say
        await say(bot, "alice", f"secret {MARK}", chat="group1")
        await say(bot, "bob", "bob says something", chat="group1")
        asked = await say(bot, "alice", "/forget message", chat="group1")
        assert f"secret {MARK}" in asked
        order = asked[asked.index("/forget") :]
        assert "can’t find a message" in await say(bot, "bob", order, chat="group1"), "it is not bob's"
        assert "Forgotten" in await say(bot, "alice", order, chat="group1")
        assert "can’t find a message" in await say(bot, "alice", "/forget message", chat="group1")
    group = await AgentContext.get_or_create(storage, {"transport": "messenger", "chat_id": "group1"})
    texts = [each.text for each in await group.chat_history.messages()]
    assert "bob says something" in texts
    # What the confirmation quoted is in what was sent, which the chat itself shows; it goes with the wish.
    assert not any(MARK in text for text in texts)


async def test_in_a_group_forget_chat_takes_what_one_wrote_and_leaves_the_others(storage):
    async with parrots(storage) as bot:
        say = bot.messenger.say
        for number in range(3):
            await say(bot, "alice", f"alice {MARK} number {number}", chat="group1")
            await say(bot, "bob", f"bob number {number}", chat="group1")
        assert "Other people write here too" in await say(bot, "alice", "/forget chat", chat="group1")
        await say(bot, "alice", "/forget chat yes", chat="group1")
    assert await find_bytes(storage, MARK) == []
    group = await AgentContext.get_or_create(storage, {"transport": "messenger", "chat_id": "group1"})
    assert sum("bob number" in each.text for each in await group.chat_history.messages()) >= 3


@pytest.mark.any_database
@pytest.mark.parametrize("text", ["/forget me", "/forget me yes", "/export"])
async def test_what_is_about_everything_is_not_done_where_others_listen(storage, text):
    group = await open_chat(storage, "telegram-g", ALICE, BOB)
    await group.chat_history.append_user_message("hi", author=ALICE)
    answer = await command(group, text, ALICE, COMMANDS, is_private=False)
    assert "private chat" in answer.text
    assert not answer.attachments
    assert len(await group.chat_history.messages()) == 1


@pytest.mark.any_database
async def test_it_asks_what_to_forget(storage):
    chat = await open_chat(storage, "telegram-a", ALICE)
    answer = await command(chat, "/forget", ALICE, COMMANDS)
    assert values(answer.buttons) == ["/forget message", "/forget chat", "/forget me"]
    answer = await command(chat, "/forget chat", ALICE, COMMANDS)
    assert values(answer.buttons) == ["/forget chat yes"]


async def test_the_archive_comes_as_a_file_that_the_platform_can_fetch(storage):
    chat = await open_chat(storage, "telegram-a", ALICE)
    await chat.chat_history.append_user_message("I like apples", author=ALICE)
    answer = await command(chat, "/export", ALICE, COMMANDS)
    (file,) = answer.attachments
    assert file.name == "about-you-2026-05-01.zip"
    assert "I like apples" in zipfile.ZipFile(io.BytesIO(file.data)).read("data.json").decode()
    kept = await storage.read(lambda c: c.exec_driver_sql("SELECT sha256 FROM blobs").scalars().all())
    assert kept == [digest_of(file.data)]


async def test_it_says_what_was_deleted_and_what_remains(storage):
    async with parrots(storage) as bot:
        say = bot.messenger.say
        await say(bot, "alice", LONG, chat="alice", file=f"{MARK}.png")
        await say(bot, "alice", "hello everybody", chat="group1")
        await say(bot, "bob", "hello alice", chat="group1")
        await say(bot, "alice", "and good bye", chat="group1")
        answer = await say(bot, "alice", "/forget chat yes", chat="group1")
        assert answer.startswith("Forgotten. Deleted: 2 messages, 2 answers, 1 fact. The words of other people stay. ")
        answer = await say(bot, "alice", "/forget me yes", chat="alice")
        counted = "Deleted: 1 whole chat, 1 message, 1 answer, 1 file, 1 fact. These stay: "
        assert answer.startswith(f"Forgotten. {counted}")
        assert ("The last traces" in answer) is not storage.is_sqlite
