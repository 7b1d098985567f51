"""A clock that was wrong for a while holds nothing up once it is right again."""

import asyncio
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from sqlalchemy import Table, select, update
from turns.messenger import PATIENCE_SECONDS, Messenger, SetClock, echo, office

from botservice import Storage
from botservice.core.errors import DeliveryError
from botservice.storage.tables.conversations import deliveries, turns
from botservice.turns.turn import AT_ONCE, is_due

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


class Slow(Messenger):
    """A messenger that says to come back in half an hour, once."""

    def __init__(self):
        super().__init__()
        self.send_errors = [DeliveryError("flood", retry_after_seconds=1800)]


async def until_put_off(storage: Storage, table: Table) -> None:
    """Return when a row says why it waits."""
    query = select(table.c.id).where(table.c.error.is_not(None))
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await storage.read(lambda connection: connection.execute(query).all()):  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)


@pytest.mark.any_database
async def test_a_message_put_off_while_the_clock_was_ahead_is_sent_when_it_is_right_again(storage):
    clock, messenger = SetClock(NOON + HOUR), Slow()
    async with office(storage, echo, messenger=messenger, clock=clock) as bot:
        await bot.write("hello", order=1)
        await until_put_off(storage, deliveries)
        await bot.write("and?", order=2)
        clock.now = NOON
        await messenger.shows("1", "re: hello", "re: and?")


async def test_a_message_put_off_by_a_clock_that_was_ahead_is_sent_by_the_next_process(storage):
    messenger = Slow()
    async with office(storage, echo, messenger=messenger, clock=SetClock(NOON + HOUR)) as bot:
        await bot.write("hello", order=1)
        await until_put_off(storage, deliveries)
    async with office(storage, echo, messenger=messenger, clock=SetClock(NOON)) as bot:
        await messenger.shows("1", "re: hello")


@pytest.mark.any_database
async def test_what_was_said_while_the_clock_was_ahead_is_answered_when_it_is_right_again(storage):
    clock = SetClock(NOON + HOUR)
    async with office(storage, echo, clock=clock, is_started=False) as bot:
        await bot.write("hello", order=1)
        await bot.write("one", order=2, group="album")
        await bot.write("two", order=3, group="album")
        clock.now = NOON
        await bot.worker.start()
        await bot.messenger.shows("1", "re: hello", "re: two")


@pytest.mark.parametrize("ahead", [timedelta(seconds=30), HOUR])
async def test_the_order_is_kept_also_where_the_clock_was_set_back_in_between(storage, ahead):
    clock = SetClock(NOON + ahead)
    async with office(storage, echo, clock=clock, is_started=False) as bot:
        await bot.write("first", order=1)
        clock.now = NOON
        await bot.write("second", order=2)
        await bot.worker.start()
        await bot.messenger.shows("1", "re: first", "re: second")


async def test_a_turn_that_failed_while_the_clock_was_ahead_is_tried_again_when_it_is_right(storage):
    clock, messenger = SetClock(NOON + HOUR), Messenger()
    messenger.read_errors = [RuntimeError("a hiccup")]
    async with office(storage, echo, messenger=messenger, clock=clock) as bot:
        await bot.write("hello", order=1)
        await until_put_off(storage, turns)
        clock.now = NOON
        await messenger.shows("1", "re: hello")


@pytest.mark.any_database
async def test_what_was_put_off_by_a_clock_that_is_right_waits_for_its_time(storage):
    clock, messenger = SetClock(NOON), Slow()
    async with office(storage, echo, messenger=messenger, clock=clock, sweep_seconds=0.01) as bot:
        await bot.write("hello", order=1)
        await until_put_off(storage, deliveries)
        clock.now -= AT_ONCE  # as another replica may read it
        await bot.write("another chat", chat="2", order=1)
        await messenger.shows("2", "re: another chat")
        assert messenger.tries == ["re: hello", "re: another chat"]
        clock.now = NOON + timedelta(minutes=31)
        await messenger.shows("1", "re: hello")


@pytest.mark.parametrize(
    ("due_at", "due_set_at", "expected"),
    [
        (NOON, NOON, True),
        (NOON + HOUR, NOON, False),
        (NOON + HOUR, NOON + AT_ONCE, False),
        (NOON + HOUR, NOON + 2 * AT_ONCE, True),
        (NOON + HOUR, None, False),
        (NOON - HOUR, None, True),
    ],
)
def test_what_waits_is_due_at_its_time_or_where_that_was_set_in_the_future(due_at, due_set_at, expected):
    assert is_due(SimpleNamespace(due_at=due_at, due_set_at=due_set_at), NOON) is expected


@pytest.mark.parametrize(("age", "status"), [(timedelta(hours=23), "pending"), (timedelta(hours=25), "failed")])
async def test_a_message_is_given_up_by_its_age_and_not_by_the_tries_of_another_version(storage, age, status):
    messenger, clock = Messenger(), SetClock(NOON)
    async with office(storage, echo, messenger=messenger, clock=clock) as bot:
        messenger.send_errors = [DeliveryError("away", retry_after_seconds=60)]
        await bot.write("hello", order=1)
        await until_put_off(storage, deliveries)
    await storage.write(lambda connection: connection.execute(update(deliveries).values(attempts=5_000)))
    messenger.send_errors = [DeliveryError("away", retry_after_seconds=60)]
    clock.now = NOON + age
    async with office(storage, echo, messenger=messenger, clock=clock):
        await messenger.until_tried(2)
        await until_status(storage, status, tries=5_001)


async def until_status(storage: Storage, status: str, *, tries: int) -> None:
    """Return when what is owed was tried so often, and is as it should be."""
    tried = select(deliveries.c.status).where(deliveries.c.attempts == tries, deliveries.c.status != "attempting")
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not (found := await storage.read(lambda c: c.execute(tried).scalars().all())):  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.01)
    assert found == [status]
