"""Answers of many messages: a stop ends them, and in groups nobody waits for their end."""

import asyncio
from datetime import UTC, datetime

import pytest
from sqlalchemy import Connection, select
from turns.messenger import PATIENCE_SECONDS, Messenger, office
from turns.test_worker_controls import until_handled

from botservice import Storage
from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import find_context
from botservice.conversation.reminder_queries import NewReminder, insert_reminder
from botservice.storage.tables.conversations import deliveries

pytestmark = pytest.mark.any_database

LONG = "|".join(f"part {number}" for number in range(8))


class Gated(Messenger):
    """A platform on which every message waits for a pass."""

    def __init__(self, *, is_group: bool = False) -> None:
        super().__init__()
        self.passes = asyncio.Semaphore(0)
        self.is_group = is_group

    def is_shared(self, context_keys):
        return self.is_group

    async def send(self, context_keys, delivery):
        await self.passes.acquire()
        return await super().send(context_keys, delivery)

    def let_pass(self, count: int) -> None:
        for _ in range(count):
            self.passes.release()


def answer(messages) -> str:
    return LONG if messages[-1]["content"] == "long" else f"re: {messages[-1]['content']}"


async def statuses(storage: Storage) -> list[str]:
    query = select(deliveries.c.status).order_by(deliveries.c.id)
    return list(await storage.read(lambda connection: connection.execute(query).scalars().all()))


async def test_a_stop_drops_what_is_still_owed_of_an_answer_and_nothing_else(storage: Storage) -> None:
    platform = Gated()
    async with office(storage, answer, messenger=platform) as bot:
        await bot.write("long", order=1)
        platform.let_pass(2)
        await platform.shows("1", "part 0", "part 1")
        await bot.stop_turn(order=2)
        await bot.write("next", order=3)
        platform.let_pass(20)
        await platform.until(lambda: "re: next" in platform.visible["1"])
    assert platform.visible["1"][:2] == ["part 0", "part 1"]
    assert platform.visible["1"][2:] in (["re: next"], ["part 2", "re: next"]), "one was on its way"
    assert (await statuses(storage)).count("failed") in (5, 6)


async def test_a_stop_before_a_question_leaves_its_answer_whole(storage: Storage) -> None:
    platform = Gated()
    async with office(storage, answer, messenger=platform) as bot:
        await bot.write("long", order=5)
        platform.let_pass(1)
        await platform.shows("1", "part 0")
        await bot.stop_turn(order=4)
        platform.let_pass(20)
        await platform.shows("1", *LONG.split("|"))


async def test_a_stop_while_an_answer_is_being_sent_ends_no_later_turn(storage: Storage) -> None:
    platform = Gated()
    async with office(storage, answer, messenger=platform) as bot:
        await bot.write("long", order=1)
        platform.let_pass(1)
        await platform.shows("1", "part 0")
        await bot.stop_turn(order=2)
        platform.let_pass(20)
        await until_handled(storage)
        await storage.write(lambda connection: remind(connection, "tea"))
        await platform.until(lambda: "tea" in platform.visible["1"][-1])
    assert platform.visible["1"][:-1] in (["part 0"], ["part 0", "part 1"]), "one was on its way"


def remind(connection: Connection, text: str) -> None:
    """Have the agent asked something in the chat now."""
    now = datetime.now(UTC)
    context = find_context(connection, ContextKeys.of({"transport": "messenger", "chat_id": "1"}))
    assert context is not None
    insert_reminder(connection, NewReminder("r1", context, "messenger", text, now, now, is_task=True))


@pytest.mark.parametrize("is_group", [True, False])
async def test_nobody_in_a_group_waits_for_the_end_of_a_long_answer(storage: Storage, is_group: bool) -> None:
    platform = Gated(is_group=is_group)
    async with office(storage, answer, messenger=platform) as bot:
        await bot.write("long", order=1)
        platform.let_pass(2)
        await platform.shows("1", "part 0", "part 1")
        await bot.write("hi", order=2)
        platform.let_pass(20)
        await platform.until(lambda: len(platform.visible["1"]) == 9)
    place = platform.visible["1"].index("re: hi")
    assert (place <= 4) is is_group
    assert [each for each in platform.visible["1"] if each != "re: hi"] == LONG.split("|")


async def test_a_long_answer_comes_to_its_end_however_many_ask(storage: Storage) -> None:
    platform = Gated(is_group=True)
    async with office(storage, answer, messenger=platform) as bot:
        await bot.write("long", order=1)
        platform.let_pass(1)
        await platform.shows("1", "part 0")
        for order in range(2, 12):
            await bot.write(f"hi {order}", order=order)
        platform.let_pass(40)
        async with asyncio.timeout(PATIENCE_SECONDS):
            await platform.until(lambda: len(platform.visible["1"]) == 18)
    assert {each for each in platform.visible["1"] if each.startswith("part")} == set(LONG.split("|"))
