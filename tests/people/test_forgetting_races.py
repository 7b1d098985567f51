"""What is forgotten is forgotten also while others write, while answers are owed, and after a cut."""

import asyncio
import io
import zipfile
from datetime import timedelta

import pytest
from people.conversing import ALICE, BOB, NOW, command, open_chat
from people.crowd import Crowd, crowded, find_bytes
from people.test_forgetting import PERSON
from sqlalchemy import select

from botservice import AgentContext, MessageWindowMessageSelector
from botservice.background.maintenance import Maintenance
from botservice.commands.catalogue import Catalogue
from botservice.commands.forget_and_export import EXPORT, FORGET
from botservice.commands.memory import MEMORY
from botservice.core.errors import DeliveryError, StorageError, TurnGrew
from botservice.people.fact_keeping import keep_fact
from botservice.people.queries import find_identity
from botservice.privacy.forgetting import forget_messages, forget_person
from botservice.privacy.right_queries import begin_export, note_export
from botservice.storage.tables.conversations import blobs, deliveries, turns
from botservice.storage.tables.people import exports
from botservice.turns.delivery_queries import find_next_delivery
from botservice.turns.outbox import Outbox
from botservice.turns.queries import insert_turn

pytestmark = pytest.mark.slow

MARK = "owed4711word"
COMMANDS = Catalogue([FORGET, EXPORT, MEMORY])


def gossip(messages):
    """Answer with all that the prompt holds."""
    return f"so it is: {' '.join(str(each['content']) for each in messages)}"


def talking(storage, script=gossip):
    return crowded(storage, script, selector=MessageWindowMessageSelector(6), commands=COMMANDS)


class NeverStill:
    """A storage in which something happens before every write."""

    def __init__(self, storage, happen):
        self._storage, self._happen = storage, happen

    def __getattr__(self, name):
        return getattr(self._storage, name)

    async def write(self, operation, **options):
        await self._happen()
        return await self._storage.write(operation, **options)


class Meanwhile:
    """A storage in which something happens between what is read and the first write."""

    def __init__(self, storage, happen):
        self._storage, self._happen = storage, happen

    def __getattr__(self, name):
        return getattr(self._storage, name)

    async def write(self, operation, **options):
        happen, self._happen = self._happen, None
        if happen is not None:
            await happen()
        return await self._storage.write(operation, **options)


async def group_of(storage):
    return await AgentContext.get_or_create(storage, {"transport": "messenger", "chat_id": "group1"})


async def test_an_answer_to_another_that_is_still_owed_is_given_anew_without_what_is_forgotten(storage):
    async with talking(storage) as bot:
        await bot.messenger.say(bot, "alice", f"my safe opens with {MARK}", chat="group1")
        bot.messenger.send_errors.append(DeliveryError("away", retry_after_seconds=3600))
        await bot.messenger.say(bot, "bob", "what did she say?", chat="group1", waits=False)
        await bot.messenger.until_tried(2)
    assert await find_bytes(storage, "what did she say?")
    await forget_person(storage, PERSON)
    assert await find_bytes(storage, MARK) == []
    async with talking(storage) as bot:
        await bot.messenger.shows("group1", "so it is: what did she say?")


async def test_what_is_owed_and_does_not_repeat_it_is_sent_and_then_not_kept(storage):
    async with talking(storage, ["noted", "a paraphrase"]) as bot:
        await bot.messenger.say(bot, "alice", f"my safe opens with {MARK}", chat="group1")
        bot.messenger.send_errors.append(DeliveryError("away"))
        await bot.messenger.say(bot, "bob", "what did she say?", chat="group1", waits=False)
        await bot.messenger.until_tried(2)
        await forget_person(storage, PERSON)
        await bot.messenger.until(lambda: len(bot.messenger.visible["group1"]) == 2)
        await bot.worker.stop()
    assert bot.messenger.visible["group1"] == ["noted", "a paraphrase"]
    assert [row.payload for row in await sent(storage)] == [{}]


async def test_what_is_forgotten_between_the_look_and_the_sending_is_not_sent(storage):
    async with talking(storage, [gossip]) as bot:
        bot.messenger.send_errors.append(DeliveryError("away", retry_after_seconds=3600))
        await bot.messenger.say(bot, "alice", f"my safe opens with {MARK}", chat="alice", waits=False)
        await bot.messenger.until_tried(1)
    context = await AgentContext.get_or_create(storage, {"transport": "messenger", "chat_id": "alice"})
    owed = await storage.read(lambda c: find_next_delivery(c, context.id, {"messenger"}))
    claim = await storage.claims.try_claim(context.id)
    await forget_person(storage, PERSON)
    messenger = Crowd()
    await Outbox(storage, {"messenger": messenger}, storage.now).send(context.context_keys, owed, claim)
    assert messenger.tries == []


@pytest.mark.parametrize("whole", [False, True])
async def test_what_is_answered_while_the_forgetting_looks_is_forgotten_too(storage, whole):
    group = await open_chat(storage, "telegram-g", ALICE, BOB)
    said = await group.chat_history.append_user_message(f"the safe opens with {MARK}", author=ALICE)
    await group.chat_history.append_user_message("and then?", author=BOB)

    async def answer():
        await group.chat_history.append_assistant_message(f"Alice says: the safe opens with {MARK}")
        await group.chat_history.append_user_message(f"another {MARK} of mine", author=ALICE)

    meanwhile = Meanwhile(storage, answer)
    if whole:
        gone = await forget_person(meanwhile, ALICE)
        assert await find_bytes(storage, MARK) == []
        assert (gone.messages, gone.answers) == (2, 1)
    else:
        gone = await forget_messages(meanwhile, group.id, [said.id])
        assert (gone.messages, gone.answers) == (1, 1)
    left = [each.text for each in await group.chat_history.messages()]
    assert "and then?" in left
    assert f"Alice says: the safe opens with {MARK}" not in left


async def test_a_person_who_writes_elsewhere_meanwhile_is_forgotten_there_too(storage):
    chat = await open_chat(storage, "telegram-a", ALICE)
    await chat.chat_history.append_user_message("hi", author=ALICE)

    async def write_elsewhere():
        group = await open_chat(storage, "telegram-g", ALICE, BOB)
        await group.chat_history.append_user_message(f"by the way, {MARK}", author=ALICE)
        await group.chat_history.append_user_message("what way?", author=BOB)

    await forget_person(Meanwhile(storage, write_elsewhere), ALICE)
    assert await find_bytes(storage, MARK) == []
    assert await find_bytes(storage, "what way?")


async def test_a_chat_that_never_stands_still_is_forgotten_all_the_same(storage):
    group = await open_chat(storage, "telegram-g", ALICE, BOB)
    await group.chat_history.append_user_message(f"the safe opens with {MARK}", author=ALICE)

    async def answer():
        await group.chat_history.append_user_message("hello", author=BOB)

    await forget_person(Meanwhile(storage, answer), ALICE)
    assert await find_bytes(storage, MARK) == []


async def test_forgetting_that_comes_to_no_end_says_so_and_goes_on_when_it_is_asked_again(storage):
    count = 0

    async def write_elsewhere():
        nonlocal count
        count += 1
        chat = await open_chat(storage, f"telegram-{count}", ALICE, BOB)
        await chat.chat_history.append_user_message(f"by the way, {MARK}", author=ALICE)

    await write_elsewhere()
    with pytest.raises(StorageError, match="ask again"):
        await forget_person(NeverStill(storage, write_elsewhere), ALICE)
    assert await find_bytes(storage, MARK)
    await forget_person(storage, ALICE)
    assert await find_bytes(storage, MARK) == []


async def test_who_waited_behind_what_was_owed_to_the_forgotten_is_answered_at_once(storage):
    async with talking(storage, ["for her", "for him"]) as bot:
        bot.messenger.send_errors.append(DeliveryError("away", retry_after_seconds=3600))
        await bot.messenger.say(bot, "alice", f"my safe opens with {MARK}", chat="group1", waits=False)
        await bot.messenger.until_tried(1)
        await bot.messenger.say(bot, "bob", "and I?", chat="group1", waits=False)
        await until_put_off(storage)
        await forget_person(storage, PERSON)
        await bot.messenger.shows("group1", "for him")


async def until_put_off(storage):
    """Return when a question waits for an hour."""
    query = select(turns.c.id).where(turns.c.status == "queued", turns.c.due_at > storage.now() + timedelta(minutes=30))
    async with asyncio.timeout(60):
        while not await storage.read(lambda c: c.execute(query).all()):  # noqa: ASYNC110 - only the database tells
            await asyncio.sleep(0.01)


async def sent(storage):
    return await storage.read(lambda c: c.execute(select(deliveries.c.status, deliveries.c.payload)).all())


async def archives(storage):
    """Return what is kept of archives: their rows, and their bytes."""
    rows = await storage.read(lambda c: c.execute(select(exports.c.turn_id)).all())
    data = await storage.read(lambda c: c.execute(select(blobs.c.data)).scalars().all())
    return len(rows), sum(bytes(each).startswith(b"PK") for each in data)


@pytest.mark.parametrize(
    ("order", "chat"),
    [("/forget message", "group1"), ("/forget chat yes", "group1"), ("/forget me yes", "alice"), ("by bob", "group1")],
)
async def test_an_archive_goes_when_anything_in_it_is_forgotten(storage, order, chat):
    async with talking(storage) as bot:
        say = bot.messenger.say
        await say(bot, "alice", f"my safe opens with {MARK}", chat="group1")
        await say(bot, "bob", "hello", chat="group1")
        await say(bot, "alice", "hi", chat="alice")
        await say(bot, "alice", "/export", chat="alice")
        assert await archives(storage) == (1, 1)
        if order == "by bob":
            await say(bot, "bob", "/forget chat yes", chat=chat)
        elif order == "/forget message":
            asked = await say(bot, "alice", order, chat=chat)
            assert await archives(storage) == (1, 1)
            await say(bot, "alice", asked[asked.index("/forget") :], chat=chat)
        else:
            await say(bot, "alice", order, chat=chat)
    assert await archives(storage) == (0, 0)


async def test_an_archive_goes_when_a_fact_in_it_is_deleted(storage):
    chat = await open_chat(storage, "telegram-a", ALICE)
    await chat.chat_history.append_user_message("my dog is called Rex", author=ALICE)
    fact = await storage.write(lambda c: keep_fact(c, chat.id, ALICE, "dog", "my dog is called Rex", NOW))
    await command(chat, "/export", ALICE, COMMANDS)
    assert await archives(storage) == (1, 1)
    await command(chat, f"/memory delete {fact.id}", ALICE, COMMANDS)
    assert await archives(storage) == (0, 0)


async def test_an_archive_of_what_is_forgotten_while_it_is_made_is_made_anew(storage):
    chat, group = await open_chat(storage, "telegram-a", ALICE), await open_chat(storage, "telegram-g", ALICE, BOB)
    said = await group.chat_history.append_user_message(f"the safe opens with {MARK}", author=ALICE)
    turn_id = await storage.write(lambda c: insert_turn(c, chat.id, "telegram", NOW))
    identity = await storage.read(lambda c: find_identity(c, ALICE))
    await storage.write(lambda c: begin_export(c, turn_id, chat.id, identity, NOW, 1))
    await forget_messages(storage, group.id, [said.id])
    with pytest.raises(TurnGrew):
        await storage.write(lambda c: note_export(c, turn_id, "0" * 64))
    await storage.write(lambda c: begin_export(c, turn_id, chat.id, identity, NOW, 1))
    await storage.write(lambda c: note_export(c, turn_id, "0" * 64))
    assert (await archives(storage))[0] == 1


async def test_two_chats_of_a_person_that_ask_at_once_get_one_archive(storage):
    chats = [await open_chat(storage, f"telegram-{name}", ALICE) for name in "ab"]
    for chat in chats:
        await chat.chat_history.append_user_message("hi", author=ALICE)
    answers = await asyncio.gather(*(command(chat, "/export", ALICE, COMMANDS) for chat in chats))
    assert sorted("the next one from" in answer.text for answer in answers) == [False, True]
    assert await archives(storage) == (1, 1)


async def test_an_archive_is_gone_within_a_day(storage):
    chat = await open_chat(storage, "telegram-a", ALICE)
    await chat.chat_history.append_user_message("hi", author=ALICE)
    await command(chat, "/export", ALICE, COMMANDS)
    await Maintenance(storage, clock=lambda: NOW + timedelta(hours=19)).run_once()
    assert await archives(storage) == (1, 1)
    await Maintenance(storage, clock=lambda: NOW + timedelta(hours=23)).run_once()
    assert await archives(storage) == (0, 0)


async def test_an_archive_that_is_still_owed_is_made_anew_of_what_is_left(storage):
    async with talking(storage) as bot:
        say = bot.messenger.say
        await say(bot, "alice", f"my safe opens with {MARK}", chat="group1")
        await say(bot, "bob", "hello", chat="group1")
        await say(bot, "alice", "hi", chat="alice")
        bot.messenger.send_errors.append(DeliveryError("away", retry_after_seconds=3600))
        await say(bot, "alice", "/export", chat="alice", waits=False)
        await bot.messenger.until_tried(4)
    group = await group_of(storage)
    await forget_messages(storage, group.id, PERSON)
    assert await archives(storage) == (0, 0)
    async with talking(storage) as bot:
        await bot.messenger.until(lambda: "alice" in bot.messenger.visible)
    assert await archives(storage) == (1, 1)
    (data,) = [
        bytes(each)
        for each in await storage.read(lambda c: c.execute(select(blobs.c.data)).scalars().all())
        if bytes(each).startswith(b"PK")
    ]
    assert MARK not in zipfile.ZipFile(io.BytesIO(data)).read("data.json").decode()
