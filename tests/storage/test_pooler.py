"""A pooler in transaction mode breaks claims and LISTEN: it is refused before anything relies on them.

What the check at the start misses, the first transaction finds that gets another session.
"""

import asyncio
import contextlib
import itertools
import os
import subprocess
import sys
import threading
from collections import Counter

import psycopg
import pytest
from crash.served import ROOT, ServedBot
from sqlalchemy import text
from standins.pgbouncer import needs_pgbouncer, pgbouncer
from standins.pooler import Pooler
from storage.writing import add, names

from botservice import Storage
from botservice.core.errors import StorageUnavailable, UnsuitablePooler
from botservice.storage.engines import READ_CONNECTIONS
from botservice.storage.limits import StorageLimits

UNHURRIED = StorageLimits(silence=3600.0, heartbeat=3600.0)


@pytest.mark.parametrize("size", [1, 2, 4])
async def test_a_pooler_in_transaction_mode_is_refused_with_what_to_do(postgres_url, size):
    told = pytest.raises(UnsuitablePooler, match=r"transaction mode.*direct address.*session mode")
    with Pooler.running(postgres_url, mode="transaction", size=size) as pooler, told:
        await Storage.open(pooler.url)


async def test_a_pooler_in_session_mode_is_as_good_as_none(postgres_url):
    with Pooler.running(postgres_url, mode="session", size=8) as pooler:
        async with Storage.open(pooler.url) as one, Storage.open(postgres_url) as two:
            claim = await one.claims.try_claim(1)
            await one.write(add("a"), fence=claim)
            assert await two.claims.try_claim(1) is None
            assert await names(one) == ["a"]


@contextlib.contextmanager
def transaction_of_another(url):
    """Have another person be in the middle of a transaction: the session that came back last is theirs."""
    with psycopg.connect(url) as other:
        other.execute("SELECT 1")
        yield
        other.rollback()


async def test_a_write_that_gets_another_session_is_refused_and_so_is_all_that_follows(postgres_url):
    with Pooler.running(postgres_url, mode="session", size=12) as pooler:
        async with Storage.open(pooler.url, limits=UNHURRIED) as storage, Storage.open(postgres_url) as other:
            claim = await storage.claims.try_claim(1)
            await storage.write(add("before"), fence=claim)
            pooler.mode = "transaction"
            await storage.write(add("last"), fence=claim)  # after which its session can be lent to another
            with transaction_of_another(pooler.url):
                with pytest.raises(UnsuitablePooler, match="another session"):
                    await storage.write(add("in another session"), fence=claim)
                assert not claim.is_held
            assert isinstance(await storage.refused(), UnsuitablePooler)
            with pytest.raises(UnsuitablePooler):
                await storage.write(add("later"))
            assert await names(other) == ["before", "last"]


async def read_by_both(storage):
    """Read the names by both connections that read."""
    both = threading.Barrier(READ_CONNECTIONS)

    def read(connection):
        both.wait(60)
        return connection.execute(text("SELECT count(*) FROM contexts")).scalar_one()

    return await asyncio.gather(*(storage.read(read) for _ in range(READ_CONNECTIONS)))


async def test_a_read_that_gets_another_session_runs_no_statement_of_that_name(postgres_url):
    with Pooler.running(postgres_url, mode="session", size=12) as pooler:
        async with Storage.open(pooler.url, limits=UNHURRIED) as storage:
            for _ in range(8):  # until each has prepared what it asks
                await read_by_both(storage)
            pooler.mode = "transaction"
            await read_by_both(storage)  # after which their sessions can be lent to others
            with transaction_of_another(pooler.url), pytest.raises(UnsuitablePooler):
                await read_by_both(storage)
            assert storage.refusal is not None


async def test_nobody_gets_a_session_by_which_another_process_writes(postgres_url):
    with Pooler.running(postgres_url, mode="session", size=12) as pooler:
        async with Storage.open(pooler.url, limits=UNHURRIED) as one:
            claim = await one.claims.try_claim(1)
            pooler.mode = "transaction"
            await one.write(add("a"), fence=claim)  # its session is the one that is lent next
            with pytest.raises(UnsuitablePooler, match="which another botservice writes by"):
                await Storage.open(pooler.url)
            await one.write(add("b"), fence=claim)


async def test_a_process_that_ends_lets_go_of_no_lock_of_another_session(postgres_url):
    with Pooler.running(postgres_url, mode="session", size=24) as pooler:
        async with Storage.open(pooler.url, limits=UNHURRIED) as one:
            async with Storage.open(pooler.url, limits=UNHURRIED) as two:
                assert await one.claims.try_claim(1) is not None
                assert await two.claims.try_claim(2) is not None
                pooler.mode = "transaction"
                await two.write(add("two"))
                await one.write(add("one"))  # what the second one sends next gets the session of the first
            async with Storage.open(postgres_url) as third:
                assert await third.claims.try_claim(1) is None


class Foreign:
    """Other clients of the same user behind the same pooler."""

    def __init__(self, url, count):
        self._url = url
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=self._ask, args=(number,)) for number in range(count)]

    def __enter__(self):
        for each in self._threads:
            each.start()

    def __exit__(self, *_):
        self._ends.set()
        for each in self._threads:
            each.join()

    def _ask(self, number):
        with psycopg.connect(self._url, autocommit=True, prepare_threshold=None) as connection:
            for turn in itertools.count(number):
                if self._ends.wait(0.001 * (turn % 5)):
                    return
                connection.execute(f"SELECT pg_sleep({(turn * 7 % 11) / 2000})")


async def _replica(url, done):
    """Answer messages of ten chats, as long as the database takes it; return why that ended, if it did."""

    def count(name):
        return lambda c: c.execute(
            text("SELECT count(*) FROM contexts WHERE key_hash LIKE :like"), {"like": f"{name}:%"}
        ).scalar_one()

    try:
        async with Storage.open(url) as storage:
            for turn in range(6):
                for chat in range(1, 11):
                    claim = await storage.claims.try_claim(chat)
                    if claim is None:
                        continue
                    number = await storage.read(count(chat))
                    await storage.write(add(f"{chat}:{number}:{id(storage)}.{turn}"), fence=claim)
                    done.append((chat, number))
                    await storage.claims.release(claim)
            await storage.ping()
    except UnsuitablePooler as error:
        return error
    return None


@needs_pgbouncer
@pytest.mark.slow
@pytest.mark.timeout(1200)
async def test_two_replicas_behind_a_transaction_pooler_are_refused_or_write_once_and_in_order(postgres_url):
    refused = Counter()
    async with Storage.open(postgres_url) as direct:
        for _ in range(200):
            done = []
            with pgbouncer(postgres_url, mode="transaction") as url, Foreign(url, 2):
                errors = await asyncio.gather(_replica(url, done), _replica(url, done))
            refused[sum(error is not None for error in errors)] += 1
            written = [tuple(map(int, name.split(":")[:2])) for name in await names(direct)]
            assert len(written) == len(set(written)), "no message is answered twice"
            assert set(done) <= set(written), "what was told to be written is"
            for chat in range(1, 11):
                numbers = [number for each, number in written if each == chat]
                assert numbers == list(range(len(numbers))), "none is left out"
            await direct.write(lambda c: c.execute(text("DELETE FROM contexts")))
    assert refused.total() == 200
    assert refused[2] == 200, refused


@needs_pgbouncer
@pytest.mark.slow
async def test_pgbouncer_in_session_mode_is_as_good_as_none(postgres_url):
    with pgbouncer(postgres_url, mode="session") as url:
        done = []
        assert await asyncio.gather(_replica(url, done), _replica(url, done)) == [None, None]
        async with Storage.open(postgres_url) as direct:
            written = [tuple(map(int, name.split(":")[:2])) for name in await names(direct)]
        assert sorted(written) == sorted(set(done))


@pytest.mark.slow
def test_a_service_whose_pooler_changes_its_mode_ends_and_says_what_to_do(postgres_url, tmp_path):
    with (
        Pooler.running(postgres_url, mode="session", size=24) as pooler,
        ServedBot(tmp_path, DATABASE_URL=pooler.url, BOTSERVICE_DEMO="1") as bot,
    ):
        bot.start()
        pooler.mode = "transaction"
        with Foreign(pooler.url, 2):
            assert bot.wait() == 1
        [said] = [line for line in bot.log.splitlines() if "storage.refused" in line]
        assert "transaction mode" in said
        assert "direct address" in said
        assert "Traceback" not in bot.log


@needs_pgbouncer
async def test_statement_mode_is_refused(postgres_url):
    with pgbouncer(postgres_url, mode="statement") as url, pytest.raises(StorageUnavailable):
        await Storage.open(url)


@needs_pgbouncer
def test_a_pooler_without_a_free_session_is_waited_for_in_bounds_and_named(postgres_url, tmp_path):
    with pgbouncer(postgres_url, mode="session", size=1) as url, psycopg.connect(url) as other:
        other.execute("SELECT 1")
        command = [sys.executable, "-m", "botservice", "turns"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "DATABASE_URL": url}
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
    waiting, refused = done.stderr.splitlines()
    assert 'storage.waiting_for_database waits_for="a session: its pooler may have none free"' in waiting
    assert "no session within 5 seconds" in refused
    assert "default_pool_size" in refused
    assert done.returncode == 1


@needs_pgbouncer
async def test_a_page_that_gets_no_session_fails_in_bounds_and_turns_go_on(postgres_url):
    with pgbouncer(postgres_url, mode="session", size=1 + READ_CONNECTIONS) as url:
        async with Storage.open(url, limits=UNHURRIED) as storage:
            await storage.write(add("a"))
            await read_by_both(storage)
            with pytest.raises(StorageUnavailable, match="no session within"):
                await storage.read(lambda connection: connection.execute(text("SELECT 1")), is_long=True)
            await storage.write(add("b"))
            assert await names(storage) == ["a", "b"]
