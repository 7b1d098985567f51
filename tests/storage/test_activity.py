"""A Postgres that nobody uses is left alone, so that a serverless one can sleep."""

import asyncio
import contextlib

import pytest
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.pool import NullPool
from standins.patience import PATIENT
from turns.messenger import PATIENCE_SECONDS, echo, message, office
from turns.test_worker import history

from botservice import Storage
from botservice.storage.activity import Activity, in_background
from botservice.storage.limits import StorageLimits
from botservice.turns.inbox import Inbox, Pressure

RESTING = StorageLimits(silence=60.0, heartbeat=0.05, rest=3600.0, awake=0.2)
OTHERS = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"


@pytest.fixture
def operator(postgres_url):
    """Another person's connection to the same database."""
    engine = create_engine(make_url(postgres_url).set(drivername="postgresql+psycopg"), poolclass=NullPool)
    with engine.connect() as connection:
        yield connection
    engine.dispose()


async def until(condition):
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not condition():  # noqa: ASYNC110 - a database tells nobody
            await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def bot_at(url, **more):
    async with Storage.open(url, limits=RESTING) as storage, office(storage, echo, **more) as bot:
        pressure = Pressure(max_waiting=100)
        async with pressure.watching(storage):
            yield bot


async def test_a_bot_that_has_nothing_to_do_closes_its_connections_and_answers_all_the_same(postgres_url, operator):
    def sessions():
        with operator.begin():
            return operator.execute(text(OTHERS)).scalar_one()

    before = sessions()
    async with bot_at(postgres_url) as bot:
        await bot.write("hello", order=1)
        await bot.messenger.shows("1", "re: hello")
        await until(lambda: sessions() == before)
        await bot.write("are you there?", order=2)
        await bot.messenger.shows("1", "re: hello", "re: are you there?")
        assert await bot.storage.claims.try_claim(99) is not None
        await until(lambda: sessions() > before)


async def test_what_an_answer_is_made_for_keeps_its_connection(postgres_url, operator):
    held, begun = asyncio.Event(), asyncio.Event()

    async def model(messages):
        begun.set()
        await held.wait()
        return "at last"

    async with Storage.open(postgres_url, limits=RESTING) as storage, office(storage, model) as bot:
        await bot.write("hello", order=1)
        await begun.wait()
        await asyncio.sleep(5 * RESTING.awake)  # a model that takes longer than a database counts as in use
        assert not storage.activity.is_resting
        held.set()
        await bot.messenger.shows("1", "at last")
        assert await history(storage) == [("user", "hello"), ("assistant", "at last")]


async def test_what_another_process_took_in_is_found_after_the_rest(postgres_url):
    limits = StorageLimits(silence=60.0, heartbeat=0.05, rest=1.0, awake=0.2)
    async with (
        Storage.open(postgres_url, limits=PATIENT) as other,
        Storage.open(postgres_url, limits=limits) as storage,
        office(storage, echo) as bot,
    ):
        async with asyncio.timeout(PATIENCE_SECONDS):
            await storage.activity.until_resting()
        inbox = Inbox(other, lambda *_: None, other.now)
        await inbox.accept("messenger", [message("hello", order=1)])
        await bot.messenger.shows("1", "re: hello")


async def test_a_loop_that_pauses_goes_on_as_soon_as_the_database_is_used():
    activity = Activity(3600.0, -1.0, lambda: False)
    pausing = asyncio.create_task(activity.pause(0.0))
    await asyncio.sleep(0)
    in_background.set(True)
    activity.note()
    await asyncio.sleep(0)
    assert not pausing.done(), "a look of a loop is no use"
    in_background.set(False)
    await asyncio.to_thread(activity.note)
    await pausing


async def test_where_nothing_is_set_the_database_is_never_left_alone():
    assert not Activity(None, -1.0, lambda: False).is_resting
    activity = Activity(3600.0, -1.0, lambda: False)
    assert activity.is_resting
    activity.keep_awake()
    assert not activity.is_resting
