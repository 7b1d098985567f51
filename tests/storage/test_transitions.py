"""What is recorded of transitions: ids and names of states, in the order of the commits, where it is asked for."""

import asyncio

import pytest
from model.conformance import find_breaches
from sqlalchemy import inspect
from turns.messenger import office

from botservice import Storage, ToolCall, tool
from botservice.storage.transitions import TABLE, read_transitions


async def told(bot, *texts):
    """Return the record once these texts are shown and stored as delivered."""
    await bot.messenger.shows("1", *texts)
    async with asyncio.timeout(60):
        while True:
            record = await bot.storage.read(read_transitions)
            if sum(each.after == "delivered" for each in record) == len(texts):
                return record
            await asyncio.sleep(0.01)


@pytest.fixture(params=["sqlite", "postgres"])
def recorded_url(request: pytest.FixtureRequest) -> str:
    """The address of an empty database for a test alone: triggers that record would stay."""
    names = {"sqlite": "sqlite_url", "postgres": "own_postgres_url"}
    url: str = request.getfixturevalue(names[request.param])
    return url


async def test_the_life_of_a_turn_is_recorded(recorded_url):
    @tool
    async def note() -> str:
        """Note something."""
        return "noted"

    async with (
        Storage.open(recorded_url, migrate=True, records_transitions=True) as storage,
        office(storage, [ToolCall("c", "note", {}), "secret"], tools=[note]) as bot,
    ):
        await bot.write("private", order=1)
        record = await told(bot, "secret")
    assert [(each.thing, each.before, each.after) for each in record] == [
        ("turn", "nothing", "queued"),
        ("turn", "queued", "running"),
        ("turn", "running", "running"),
        ("call", "nothing", "started"),
        ("call", "", "run once"),
        ("call", "started", "gone"),
        ("turn", "running", "answered"),
        ("delivery", "nothing", "attempting"),
        ("delivery", "", "sent"),
        ("delivery", "attempting", "delivered"),
    ]
    assert find_breaches(record) == []
    assert not any(word in repr(record) for word in ("secret", "private", "noted"))


async def test_each_entry_of_postgres_says_whether_its_session_has_the_conversation(own_postgres_url):
    opened = Storage.open(own_postgres_url, migrate=True, records_transitions=True)
    async with opened as storage, office(storage, ["one"]) as bot:
        await bot.write("hi", order=1)
        record = await told(bot, "one")
    assert [(each.after, each.is_held) for each in record if each.before] == [
        ("queued", False),
        ("running", True),
        ("answered", True),
        ("attempting", True),
        ("delivered", True),
    ]
    answered = [each.tx for each in record if each.after in ("attempting", "answered")]
    assert len(set(answered)) == 1, "the answer and what is to be sent are one transaction"


async def test_several_processes_may_begin_to_record_at_once(recorded_url):
    async with Storage.open(recorded_url, migrate=True):
        pass

    async def open_one():
        async with Storage.open(recorded_url, records_transitions=True) as storage:
            return await storage.read(read_transitions)

    assert await asyncio.gather(*(open_one() for _ in range(3))) == [[], [], []]


async def test_migrating_without_the_setting_ends_the_recording(recorded_url):
    async with Storage.open(recorded_url, migrate=True, records_transitions=True) as storage:
        assert await storage.read(read_transitions) == []
    await asyncio.to_thread(Storage.open(recorded_url, migrate=True).migrate)
    async with Storage.open(recorded_url) as storage, office(storage, ["one"]) as bot:
        await bot.write("hi", order=1)
        await bot.messenger.shows("1", "one")
        assert not await storage.read(lambda connection: inspect(connection).has_table(TABLE))


async def test_nothing_is_recorded_where_nobody_asks_for_it(storage_url):
    async with Storage.open(storage_url) as storage, office(storage, ["one"]) as bot:
        await bot.write("hi", order=1)
        await bot.messenger.shows("1", "one")
        assert not await storage.read(lambda connection: inspect(connection).has_table(TABLE))
