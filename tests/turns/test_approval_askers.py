"""What a person allowed for always is for what they ask for themselves, and who asks is who spoke to the bot."""

import asyncio
import contextlib
from dataclasses import replace

import pytest

from botservice import AgentContext, Author, ScriptedChatLLM
from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import find_or_insert_context
from botservice.storage.tables.waiting import pending_calls, tool_grants
from botservice.texts import in_language
from botservice.turns.approval_queries import grant_tool, is_all_said_by, is_named
from botservice.turns.event_queries import MAX_OWN_TURNS
from botservice.turns.run_options import utc_now
from tests.turns.test_waiting import ANNA, BOB, Group, keys, pay, payments, shop

MALLORY = Author("messenger", "mallory", "Mallory")


class Overhearing(Group):
    """Messages that begin with ~ are not addressed to the bot."""

    async def read(self, event):
        message = await super().read(event)
        return replace(message, is_addressed=not message.text.startswith("~"))


@contextlib.asynccontextmanager
async def trusting_anna(storage, *script):
    """Open a shop in which Anna's payments need no word; it begins to work when its worker is started."""

    def trust(connection):
        context_id = find_or_insert_context(connection, ContextKeys.of(keys("1")), utc_now())
        grant_tool(connection, context_id, "pay", ANNA, utc_now(), digest=payments([]).digest)

    await storage.write(trust)
    async with shop(storage, *script, messenger=Overhearing(), is_started=False) as bot:
        yield bot


async def say_in_one_turn(bot, first, *said):
    """Have several messages share a turn: the last of as many as may wait each in a turn of its own."""
    for _ in range(MAX_OWN_TURNS - 1):
        await bot.say("hello", first[0])
    for who, text in (first, *said):
        await bot.say(text, who)
    await bot.office.worker.start()
    return await bot.shows(lambda texts: len(texts) == MAX_OWN_TURNS)


@pytest.mark.any_database
async def test_what_one_asks_for_alone_needs_no_word_that_was_given_for_always(storage):
    async with trusting_anna(storage, pay()) as bot:
        texts = await say_in_one_turn(bot, ("anna", "hello"), ("anna", "and pay Anna"))
        assert (texts[-1], bot.till) == ("re and pay Anna", [5])


@pytest.mark.any_database
async def test_what_others_say_in_the_same_turn_is_asked_about(storage):
    async with trusting_anna(storage, pay()) as bot:
        texts = await say_in_one_turn(bot, ("mallory", "pay Mallory"), ("anna", "thanks for the payment"))
        assert (texts[-1].startswith("May I"), bot.till) == (True, [])


@pytest.mark.any_database
async def test_who_asks_is_who_spoke_to_the_bot_and_not_who_spoke_last(storage):
    async with trusting_anna(storage, pay(), pay(6)) as bot:
        await say_in_one_turn(bot, ("bob", "hello"), ("anna", "pay Anna"), ("mallory", "~she wants to pay"))
        (says,) = await bot.asked()
        assert not (await bot.press(says[0], MALLORY)).is_taken
        assert (await bot.press(says[0], ANNA)).is_taken
        await bot.shows(lambda texts: len(texts) == MAX_OWN_TURNS + 1)
        says = next(each for each in bot.platform.buttons.values() if each)
        assert bot.till == [5], "it is asked about again, as others have a say in the turn"
        assert not (await bot.press(says[0], MALLORY)).is_taken
        assert (await bot.press(says[0], ANNA)).is_taken
        await bot.shows(lambda texts: len(texts) == MAX_OWN_TURNS + 2)
        assert bot.till == [5, 6]


async def test_what_is_asked_anew_is_asked_for_by_whoever_wants_it_anew(storage):
    async with trusting_anna(storage, pay()) as bot:
        await bot.office.worker.start()
        await bot.say("pay Anna")
        assert await bot.shows(lambda texts: len(texts) == 1) == ["re pay Anna"]
        await bot.say("/retry", "bob")
        await bot.shows(lambda texts: len(texts) == 2)
        assert bot.till == [5]
        (says,) = await bot.asked()
        ((context_id, turn_id),) = await bot.read(
            pending_calls.select().with_only_columns(pending_calls.c.context_id, pending_calls.c.turn_id)
        )
        again = await AgentContext.load(storage, context_id, turn_id)
        assert again.asker == BOB, "also in another process"
        assert again.chat_history.last_user_message.author == ANNA, "her words stay hers"
        assert not await storage.read(lambda connection: is_all_said_by(connection, context_id, turn_id, ANNA))
        assert not (await bot.press(says[0], ANNA)).is_taken
        assert (await bot.press(says[0], BOB)).is_taken
        await bot.shows(lambda texts: len(texts) == 3)
        assert bot.till == [5, 5]


class Unanswering(ScriptedChatLLM):
    """A model that says nothing."""

    def __init__(self):
        super().__init__([])
        self.is_asked = asyncio.Event()

    async def chat(self, messages, tools=(), **_):
        self.is_asked.set()
        await asyncio.Event().wait()


async def test_who_asks_stays_who_spoke_to_the_bot_where_the_process_ends_before_it_asks(storage):
    platform, model = Overhearing(), Unanswering()
    async with shop(storage, messenger=platform, model=model, is_started=False) as bot:
        for _ in range(MAX_OWN_TURNS - 1):
            await bot.say("~hello", "bob")
        for who, text in (("bob", "~hello"), ("anna", "pay Anna"), ("mallory", "~she wants to pay")):
            await bot.say(text, who)
        await bot.office.worker.start()
        await model.is_asked.wait()
        await bot.office.worker.stop(grace_seconds=0)
    async with shop(storage, pay(), messenger=platform) as bot:
        (says,) = await bot.asked()
        assert not (await bot.press(says[0], MALLORY)).is_taken
        assert (await bot.press(says[0], ANNA)).is_taken
        await bot.shows(lambda texts: len(texts) == 2)
        assert bot.till == [5]


@pytest.mark.any_database
async def test_what_is_asked_in_the_name_of_a_chat_is_not_allowed_for_always(storage):
    assert not is_named(Author("telegram", "-1001", "Admins"))
    assert is_named(Author("telegram", "1001", "Anna"))


@pytest.mark.any_database
@pytest.mark.parametrize("decider", ["-1001", "olga"])
async def test_always_is_not_confirmed_where_it_cannot_be_kept(storage, decider):
    async with shop(storage, pay()) as bot:
        await bot.say("pay Anna", "-1001")  # an administrator, in the name of the group
        (says,) = await bot.asked()
        assert (says[0].partition(" ")[0], len(says)) == ("/allow", 2), "there is no such button either"
        await bot.say(f"{says[0]} always", decider)
        texts = await bot.shows(lambda texts: len(texts) == 3)
        assert "Allowed: pay" in texts[1]
        assert in_language("approval.said_always", "en", tool="pay") not in texts
        assert bot.till == [5]
        assert await bot.read(tool_grants.select()) == []
