"""Claims: one holder at a time, in all processes together, and nothing left behind by those who go."""

import asyncio
import fcntl
import gc
import itertools
import os
import subprocess
import sys
import weakref
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import create_engine, insert, make_url, select, text
from sqlalchemy.pool import NullPool
from standins.patience import PATIENT
from storage.writing import Held, add, issue, names

from botservice import Storage
from botservice.core.errors import ClaimLost, DatabaseInUse
from botservice.storage.postgres_replicas import LOCK_SPACE
from botservice.storage.tables.conversations import contexts

NEW = insert(contexts)
NAMES = select(contexts.c.key_hash)
NOW = datetime(2024, 5, 17, tzinfo=UTC)


def locks(url):
    """Return how many advisory locks of ours Postgres has, counting each as often as it was taken."""
    engine = create_engine(make_url(url).set(drivername="postgresql+psycopg"), poolclass=NullPool)
    with engine.connect() as connection:
        return connection.execute(
            text(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND classid = :space "
                "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            ),
            {"space": LOCK_SPACE},
        ).scalar_one()


async def test_a_context_has_one_holder_until_it_is_given_back(storage_url):
    async with Storage.open(storage_url, limits=PATIENT) as one, Storage.open(storage_url, limits=PATIENT) as two:
        claim = await one.claims.try_claim(7)
        assert claim.is_held
        assert one.claims.holder(7) is claim
        assert await one.claims.try_claim(7) is None
        assert await two.claims.try_claim(7) is None
        assert await two.claims.try_claim(8) is not None
        await one.claims.release(claim)
        await one.claims.release(claim)
        assert not claim.is_held
        second = await two.claims.try_claim(7)
        assert second.is_held
        await one.claims.release(claim)
        assert second.is_held


async def test_of_many_who_want_a_context_at_once_one_gets_it(storage_url):
    async with Storage.open(storage_url, limits=PATIENT) as one, Storage.open(storage_url, limits=PATIENT) as two:
        for context_id in range(10):
            claims = await asyncio.gather(*(each.claims.try_claim(context_id) for each in (one, two) * 5))
            assert len([claim for claim in claims if claim is not None]) == 1


async def test_a_storage_that_closes_gives_its_claims_back(storage_url):
    async with Storage.open(storage_url, limits=PATIENT) as one:
        async with Storage.open(storage_url, limits=PATIENT) as two:
            claims = [await two.claims.try_claim(number) for number in range(3)]
        assert not any(claim.is_held for claim in claims)
        assert await one.claims.try_claim(1) is not None


async def test_a_claim_that_is_taken_over_writes_nothing_more(storage):
    claim = await storage.claims.try_claim(1)
    successor = storage.claims.take_over(claim)
    assert storage.claims.holder(1) is successor
    with pytest.raises(ClaimLost):
        await storage.write(add("old"), fence=claim)
    await storage.write(add("new"), fence=successor)
    with pytest.raises(ClaimLost):
        storage.claims.take_over(claim)
    await storage.claims.release(claim)
    assert successor.is_held
    await storage.claims.release(successor)
    assert await storage.claims.try_claim(1) is not None
    assert await names(storage) == ["new"]


async def test_a_write_under_a_claim_is_committed_before_the_claim_is_given_back(storage):
    claim = await storage.claims.try_claim(1)
    async with Held(storage):
        [writing] = await issue(storage, [add("issued")], fence=claim, sort_key=(1,))
        writing.cancel()
        releasing = asyncio.ensure_future(storage.claims.release(claim))
        await asyncio.sleep(0)
    await releasing
    assert await names(storage) == ["issued"]
    assert not claim.is_held


async def test_a_claim_that_is_abandoned_is_free_soon(storage):
    claim = await storage.claims.try_claim(1)
    storage.claims.abandon(claim)
    await storage._writer.issue(add("after"), is_last=True)
    assert not claim.is_held
    assert await storage.claims.try_claim(1) is not None


async def test_the_garbage_collector_may_abandon_a_claim_at_any_line(sqlite_storage):
    """A run in a cycle is collected wherever memory is asked for, also while the claims' lock is held."""

    class Run:
        pass

    claims = sqlite_storage.claims
    claim = await claims.try_claim(1)
    run = Run()
    run.itself = run
    weakref.finalize(run, claims.abandon, claim)
    del run
    async with asyncio.timeout(60):
        with claims._shared.guard, claims._shared.lock._guard:
            await asyncio.to_thread(lambda: None)
            gc.collect()
    assert not claim.is_held


async def test_claiming_that_is_cancelled_leaves_no_lock(postgres_url):
    async with Storage.open(postgres_url, limits=PATIENT) as storage:
        for _ in range(20):
            async with Held(storage):
                claiming = asyncio.ensure_future(storage.claims.try_claim(5))
                await asyncio.sleep(0)
                claiming.cancel()
            await asyncio.wait([claiming])
        await storage.write(add("after"))
        assert locks(postgres_url) == 0
        assert storage.claims.holder(5) is None


async def test_claims_of_a_batch_that_is_done_again_are_locked_once(postgres_url):
    def fail(_):
        raise LookupError("bad row")

    async with Storage.open(postgres_url, limits=PATIENT) as storage:
        async with Held(storage):
            claiming = [asyncio.ensure_future(storage.claims.try_claim(number)) for number in range(30)]
            await asyncio.sleep(0)
            [bad] = await issue(storage, [fail], sort_key=("z",))
        await asyncio.wait([bad])
        claims = await asyncio.gather(*claiming)
        assert locks(postgres_url) == 30
        await asyncio.gather(*(storage.claims.release(claim) for claim in claims))
        assert locks(postgres_url) == 0
    assert isinstance(bad.exception(), LookupError)


def store_twice(connection):
    for _ in range(2):
        connection.execute(NEW, {"key_hash": "same", "context_keys": {}, "metadata": {}, "created_at": NOW})


def wait_and_raise(connection):
    connection.execute(NAMES).all()
    raise LookupError("bad row")


@pytest.mark.parametrize("fail", [store_twice, wait_and_raise])
async def test_locks_are_counted_right_while_a_neighbour_fails(postgres_url, fail):
    """A neighbour whose statement fails, or who raises while others wait for the database."""

    async def among_failures(storage, doing):
        async with Held(storage):
            failing = await issue(storage, [fail], sort_key=(-1,))
            done = [asyncio.ensure_future(each) for each in doing]
            await asyncio.sleep(0)
        results = await asyncio.gather(*done)
        await asyncio.wait(failing)
        assert all(each.exception() for each in failing)
        return results

    async with (
        Storage.open(postgres_url, limits=PATIENT) as storage,
        Storage.open(postgres_url, limits=PATIENT) as other,
    ):
        for _ in range(3):
            claims = await among_failures(storage, [storage.claims.try_claim(number) for number in range(15)])
            assert locks(postgres_url) == 15
            await among_failures(storage, [storage.claims.release(claim) for claim in claims])
            assert locks(postgres_url) == 0
            for number in range(15):
                claim = await other.claims.try_claim(number)
                assert claim is not None
                await other.claims.release(claim)


async def test_claiming_and_releasing_at_random_leaves_no_lock(postgres_url):
    numbers = itertools.count()

    async def use(storage, context_id):
        for _ in range(10):
            claim = await storage.claims.try_claim(context_id)
            if claim is not None:
                await storage.write(add(str(next(numbers))), fence=claim)
                await storage.claims.release(claim)

    async with Storage.open(postgres_url, limits=PATIENT) as one, Storage.open(postgres_url, limits=PATIENT) as two:
        await asyncio.gather(*(use(storage, number % 3) for number in range(12) for storage in (one, two)))
        assert locks(postgres_url) == 0


WORKER = """
import asyncio, sys
from botservice import Storage

async def main():
    async with Storage.open(sys.argv[1]) as storage:
        with storage.claims.working():
            print("working", flush=True)
            sys.stdin.read()

asyncio.run(main())
"""


def can_lock(storage):
    """Return whether another process could work on a file now, one of an earlier release among them."""
    with Path(f"{storage.where.path}.lock").open("r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


@pytest.fixture
def worker(sqlite_url):
    with subprocess.Popen(
        [sys.executable, "-c", WORKER, sqlite_url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "working\n"
        yield process
        process.kill()


async def test_a_second_worker_on_a_file_is_refused_and_told_what_to_do(sqlite_url, worker):
    async with Storage.open(sqlite_url) as storage:
        told = rf"another process works on .*bot\.db \(its id is {worker.pid}\): stop it and try again.*Postgres"
        with pytest.raises(DatabaseInUse, match=told), storage.claims.working():
            pass
        with pytest.raises(DatabaseInUse):
            await storage.claims.try_claim(1)
        assert storage.claims.holder(1) is None
        await storage.write(add("reading and writing works all the same"))
        assert len(await names(storage)) == 1


async def test_the_lock_of_a_killed_worker_is_free(sqlite_url, worker):
    worker.kill()
    worker.wait(60)
    async with Storage.open(sqlite_url) as storage:
        with storage.claims.working():
            assert await storage.claims.try_claim(1) is not None


async def test_the_file_is_unlocked_when_the_last_holder_of_the_process_goes(sqlite_url):
    async with Storage.open(sqlite_url) as one, Storage.open(sqlite_url) as two:
        with one.claims.working():
            claim = await two.claims.try_claim(1)
        assert not can_lock(one)
        await two.claims.release(claim)
        assert can_lock(one)
        await one.claims.release(await one.claims.try_claim(1))
        assert can_lock(two)


async def test_a_worker_whose_lock_file_is_deleted_locks_what_others_will(sqlite_url):
    async with Storage.open(sqlite_url) as storage:
        with storage.claims.working():
            pass
        os.unlink(f"{storage.where.path}.lock")  # noqa: PTH108 - at once, in a test
        with storage.claims.working():
            assert not can_lock(storage)
        assert can_lock(storage)


async def test_a_worker_whose_lock_file_is_moved_locks_what_others_will(sqlite_url):
    async with Storage.open(sqlite_url) as storage:
        with storage.claims.working():
            pass
        os.rename(f"{storage.where.path}.lock", f"{storage.where.path}.lock.old")  # noqa: PTH104 - at once, in a test
        with storage.claims.working():
            assert not can_lock(storage)
        assert can_lock(storage)


FORKED = """
import os, sys
from pathlib import Path
from botservice.core.errors import DatabaseInUse
from botservice.storage.claims import WorkerLock

lock = WorkerLock(Path(sys.argv[1]))
lock.acquire()  # its file is open from now on
lock.release()
may_try, tried = os.pipe(), os.pipe()
if os.fork() == 0:
    os.read(may_try[0], 1)
    try:
        lock.acquire()
        os.write(tried[1], b"y")
    except DatabaseInUse:
        os.write(tried[1], b"n")
    os._exit(0)
lock.acquire()
os.write(may_try[1], b".")
print(os.read(tried[0], 1).decode())
"""


def test_a_process_that_was_forked_does_not_have_the_lock_of_its_parent(tmp_path):
    command = [sys.executable, "-c", FORKED, str(tmp_path / "bot.db")]
    assert subprocess.run(command, capture_output=True, check=True, text=True).stdout == "n\n"


async def test_two_services_in_two_schemas_of_one_database_do_not_meet(own_postgres_url):
    engine = create_engine(make_url(own_postgres_url).set(drivername="postgresql+psycopg"), poolclass=NullPool)
    with engine.begin() as connection:
        for name in ("one", "two"):
            connection.execute(text(f"CREATE SCHEMA {name}"))
    first, second = [
        str(make_url(own_postgres_url).update_query_dict({"options": f"-csearch_path={name}"}))
        for name in ("one", "two")
    ]
    async with (
        Storage.open(first, migrate=True) as one,
        Storage.open(first) as beside,
        Storage.open(second, migrate=True) as other,
    ):
        for storage in (one, other):
            await storage.write(add("chat"))
        assert await one.claims.try_claim(1) is not None
        assert await beside.claims.try_claim(1) is None
        assert await beside.read(lambda connection: beside.claims.find_free(connection, [1, 2])) == [2]
        assert await other.read(lambda connection: other.claims.find_free(connection, [1, 2])) == [1, 2]
        assert await other.claims.try_claim(1) is not None
