"""What time it is: on Postgres, what its server says."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import create_engine
from sqlalchemy.engine import make_url

from botservice import Storage
from botservice.storage.limits import StorageLimits
from botservice.storage.postgres_clock import DatabaseClock

AROUND = timedelta(minutes=10)
PATIENCE_SECONDS = 60


class Seconds:
    """A clock that a test sets."""

    def __init__(self, now: float):
        self.now = now

    def __call__(self) -> float:
        return self.now


class Server:
    """A Postgres whose clock a test sets wrong, by a function that comes before its own."""

    def __init__(self, url: str):
        self._engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"), isolation_level="AUTOCOMMIT")
        self.url = f"{url}{'&' if '?' in url else '?'}options=-csearch_path%3Dpublic,odd,pg_catalog"

    def set_ahead(self, hours: int) -> None:
        self.run(
            "CREATE SCHEMA IF NOT EXISTS odd",
            "CREATE OR REPLACE FUNCTION odd.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE "
            f"AS 'SELECT pg_catalog.clock_timestamp() + interval ''{hours} hours'''",
        )

    def run(self, *statements: str) -> None:
        with self._engine.connect() as connection:
            for each in statements:
                connection.exec_driver_sql(each)

    def close(self) -> None:
        self.run("DROP SCHEMA IF EXISTS odd CASCADE")
        self._engine.dispose()


@pytest.fixture
def server(postgres_url: str) -> Iterator[Server]:
    server = Server(postgres_url)
    server.set_ahead(3)
    yield server
    server.close()


def is_about(storage: Storage, ahead: timedelta) -> bool:
    return abs(storage.now() - ahead - datetime.now(UTC)) < AROUND


async def test_replicas_go_by_the_clock_of_their_database(server):
    async with Storage.open(server.url) as storage:
        assert is_about(storage, timedelta(hours=3))


async def test_a_clock_of_the_database_that_is_set_is_followed_while_nothing_is_written(server):
    async with Storage.open(server.url, limits=StorageLimits(heartbeat=0.05)) as storage:
        server.set_ahead(1)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not is_about(storage, timedelta(hours=1)):  # noqa: ASYNC110 - a clock tells nobody
                await asyncio.sleep(0.01)


async def test_the_clock_of_the_database_is_followed_while_there_is_always_something_to_write(server, monkeypatch):
    monkeypatch.setattr("botservice.storage.writing_connection._LONGEST_WITHOUT_HEARTBEAT", 0.0)
    async with Storage.open(server.url, limits=StorageLimits(heartbeat=3600)) as storage:
        server.set_ahead(1)
        await storage.write(lambda _: None)
        assert is_about(storage, timedelta(hours=1))


async def test_a_file_has_the_clock_of_its_machine(sqlite_storage):
    before = datetime.now(UTC)
    assert before <= sqlite_storage.now() <= datetime.now(UTC)


def test_a_clock_that_nobody_has_looked_at_is_that_of_the_machine():
    assert DatabaseClock(own=Seconds(1000.0)).now() == datetime.fromtimestamp(1000, UTC)


def test_between_two_looks_the_machines_clock_may_be_set_without_any_effect():
    steady, own = Seconds(50.0), Seconds(1000.0)
    clock = DatabaseClock(steady, own)
    clock.look(lambda: 5000.0)
    steady.now += 7
    own.now -= 3600
    assert clock.now() == datetime.fromtimestamp(5007, UTC)


def test_a_slow_answer_does_not_let_the_time_jump():
    steady = Seconds(50.0)
    clock = DatabaseClock(steady, Seconds(5000.0))
    clock.look(lambda: 5000.0)

    def answer_late() -> float:
        steady.now += 4
        return 5000.5  # read soon after it was asked for

    clock.look(answer_late)
    assert clock.now() == datetime.fromtimestamp(5004, UTC)


def test_a_process_that_hangs_while_it_looks_at_the_clock_is_wrong_by_no_more_than_before():
    steady = Seconds(50.0)
    clock = DatabaseClock(steady, Seconds(5000.0))
    clock.look(lambda: 5000.001)  # wrong by a millisecond from now on

    def answer_and_hang() -> float:
        steady.now += 600
        return 5000.0

    clock.look(answer_and_hang)
    assert clock.now() == datetime.fromtimestamp(5600, UTC)


async def test_the_clock_is_looked_at_also_after_the_session_was_lost(server):
    async with Storage.open(server.url, limits=StorageLimits(heartbeat=0.05, silence=3600)) as storage:
        server.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND application_name = 'botservice'"
        )
        server.set_ahead(1)
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not is_about(storage, timedelta(hours=1)):  # noqa: ASYNC110 - a clock tells nobody
                await asyncio.sleep(0.01)


def test_a_clock_that_is_far_from_the_databases_is_reported_once(caplog):
    clock = DatabaseClock(Seconds(50.0), Seconds(5000.0))
    for _ in range(2):
        clock.look(lambda: 4000.0)
    assert [(each.message, each.seconds_ahead_of_database) for each in caplog.records] == [
        ("storage.clocks_differ", 1000)
    ]
