"""Postgres: connections that are cut, sessions that hang, servers that restart, and locks of others."""

import asyncio
import contextlib
import threading

import pytest
from sqlalchemy import create_engine, func, make_url, select, text
from sqlalchemy.pool import NullPool
from storage.writing import Held, add, issue, names

from botservice import Storage
from botservice.core.errors import ClaimLost, StorageUnavailable
from botservice.storage.limits import StorageLimits
from botservice.storage.tables.conversations import contexts

PATIENCE_SECONDS = 60
# Nothing happens but what a test does: no heartbeat finds a cut connection first, and no session ends by itself.
UNHURRIED = StorageLimits(silence=3600.0, heartbeat=3600.0)
COUNT = select(func.count()).select_from(contexts)
OURS = "FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'botservice'"


@pytest.fixture
def operator(postgres_url):
    """Another person's connection to the same database."""
    engine = create_engine(
        make_url(postgres_url).set(drivername="postgresql+psycopg"), poolclass=NullPool, isolation_level="AUTOCOMMIT"
    )
    with engine.connect() as connection:
        yield connection
    engine.dispose()


def cut(operator):
    """End every session of every storage."""
    operator.execute(text(f"SELECT pg_terminate_backend(pid, 10000) {OURS}")).all()


async def until(attempt):
    """Return what attempt returns as soon as it is not None."""
    async with asyncio.timeout(60):
        while (result := await attempt()) is None:  # noqa: ASYNC110 - a server tells nobody
            await asyncio.sleep(0.01)
    return result


async def claimed(storage):
    """Return a claim, also where the machine was so busy that Postgres ended the session once before."""

    async def attempt():
        try:
            return await storage.claims.try_claim(1)
        except StorageUnavailable:
            return None

    return await until(attempt)


async def test_a_connection_that_is_cut_costs_the_claims_and_nothing_else(postgres_url, operator):
    async with Storage.open(postgres_url, limits=UNHURRIED) as storage:
        claim = await storage.claims.try_claim(1)
        generation = storage._writer.connection.generation
        await storage.write(add("before"), fence=claim)
        cut(operator)
        with pytest.raises(StorageUnavailable):
            await storage.write(add("cut"), fence=claim)
        assert not claim.is_held
        with pytest.raises(ClaimLost):
            await storage.write(add("old claim"), fence=claim)
        again = await storage.claims.try_claim(1)
        await storage.write(add("after"), fence=again)
        assert storage._writer.connection.generation == generation + 1
        assert await names(storage) == ["before", "after"]


async def test_what_waits_behind_a_cut_connection_is_refused_where_it_needs_a_claim(postgres_url, operator):
    async with Storage.open(postgres_url, limits=UNHURRIED) as storage:
        claim = await storage.claims.try_claim(1)
        with contextlib.suppress(StorageUnavailable):
            async with Held(storage):
                batch = await issue(storage, [add("fenced")], fence=claim)
                batch += await issue(storage, [add("free")])
                cut(operator)
        results = await asyncio.gather(*batch, return_exceptions=True)
    assert isinstance(results[0], ClaimLost | StorageUnavailable)
    async with Storage.open(postgres_url, limits=UNHURRIED) as storage:
        assert "fenced" not in await names(storage)


async def test_a_lock_asked_for_while_the_connection_is_cut_is_left_with_nobody(postgres_url, operator):
    async with Storage.open(postgres_url, limits=UNHURRIED) as one, Storage.open(postgres_url, limits=UNHURRIED) as two:
        hold = threading.Event()
        entered = asyncio.Event()
        loop = asyncio.get_running_loop()

        def wait(connection):
            loop.call_soon_threadsafe(entered.set)
            assert hold.wait(60)
            connection.execute(text("SELECT 1"))

        holding = asyncio.ensure_future(one.write(wait))
        await entered.wait()
        claiming = asyncio.ensure_future(one.claims.try_claim(1))
        await asyncio.sleep(0)
        cut(operator)
        hold.set()
        claim, _ = await asyncio.gather(claiming, holding, return_exceptions=True)
        assert claim is None or isinstance(claim, StorageUnavailable)
        await one.ping()
        with contextlib.suppress(StorageUnavailable):
            await two.ping()
        assert await two.claims.try_claim(1) is not None


async def test_reading_goes_on_after_every_connection_was_cut(postgres_url, operator):
    async with Storage.open(postgres_url, limits=UNHURRIED) as storage:
        await storage.write(add("a"))
        await asyncio.gather(*(names(storage) for _ in range(4)))
        cut(operator)
        assert await asyncio.gather(*(names(storage) for _ in range(4))) == [["a"]] * 4


async def test_a_read_that_has_answered_leaves_no_transaction_open_and_is_read_again_after_a_cut(
    postgres_url, operator
):
    in_transaction = text(f"SELECT count(*) {OURS} AND xact_start IS NOT NULL")

    async def has_none_open():
        return True if operator.execute(in_transaction).scalar_one() == 0 else None

    def count(connection):
        return connection.execute(COUNT).scalar_one()

    async with Storage.open(postgres_url, limits=UNHURRIED) as storage:
        await storage.write(add("a"))
        for _ in range(2):
            assert await asyncio.gather(*(storage.read(count) for _ in range(4))) == [1] * 4
            assert await until(has_none_open)
            cut(operator)


async def test_a_question_that_takes_too_long_is_given_up_and_the_reader_goes_on(postgres_url):
    async with Storage.open(postgres_url, limits=StorageLimits(read=0.1)) as storage:
        await storage.write(add("a"))
        with pytest.raises(StorageUnavailable, match="does not answer"):
            await storage.read(lambda connection: connection.execute(text("SELECT pg_sleep(600)")))

        async def read():  # a busy machine may take longer for it, once
            try:
                return await names(storage)
            except StorageUnavailable:
                return None

        assert await until(read) == ["a"]


@contextlib.contextmanager
def read_only(operator):
    """Have the server take no writes, as one that another has taken the place of."""
    operator.execute(text("SET default_transaction_read_only = off"))
    try:
        operator.execute(text("ALTER SYSTEM SET default_transaction_read_only = on"))
        operator.execute(text("SELECT pg_reload_conf()"))
        yield
    finally:
        operator.execute(text("ALTER SYSTEM RESET default_transaction_read_only"))
        operator.execute(text("SELECT pg_reload_conf()"))


async def unavailable(attempt):
    """Return the error with which the database takes nothing, once it does not."""

    async def refused():
        try:
            await attempt()
        except StorageUnavailable as error:
            return error
        return None

    return await until(refused)


async def test_a_server_that_takes_no_writes_is_left_and_found_again(postgres_url, operator):
    async with Storage.open(postgres_url, limits=UNHURRIED) as storage:
        claim = await storage.claims.try_claim(1)
        session, tried = storage._writer.connection.id, []

        async def write():  # the server hears a moment later that it is to take none, and may take the first
            tried.append(f"try {len(tried)}")
            await storage.write(add(tried[-1]))

        with read_only(operator):
            await unavailable(write)
            assert not claim.is_held
            await unavailable(storage.ping)

        async def written():
            try:
                return await storage.write(lambda connection: add("after")(connection) or True)
            except StorageUnavailable:
                return None

        await until(written)
        assert storage._writer.connection.id != session
        assert await names(storage) == [*tried[:-1], "after"]


async def test_a_claim_that_nobody_could_take_can_be_taken_once_there_is_a_server_again(postgres_url, operator):
    async with Storage.open(postgres_url, limits=UNHURRIED) as storage:
        with read_only(operator):
            await unavailable(lambda: storage.write(add("a")))
            await unavailable(lambda: storage.claims.try_claim(1))

        async def taken():
            try:
                return await storage.claims.try_claim(1)
            except StorageUnavailable:
                return None

        assert (await until(taken)).is_held


async def test_an_idle_writer_leaves_a_server_that_takes_no_writes(postgres_url, operator):
    async with Storage.open(postgres_url, limits=StorageLimits(heartbeat=0.05)) as storage:
        claim = await storage.claims.try_claim(1)
        with read_only(operator):

            async def let_go():
                return None if claim.is_held else True

            await until(let_go)
        with pytest.raises(ClaimLost):
            await storage.confirm(claim)


async def is_kept_while_idle(url, operator, silence):
    """Return whether a claim is held after a time in which Postgres would have ended a silent session twice."""
    limits = StorageLimits(silence=silence, heartbeat=0.05)
    async with Storage.open(url, limits=limits) as storage:
        claim = await claimed(storage)
        operator.execute(text(f"SELECT pg_sleep({2.4 * silence})"))
        try:
            await storage.write(add("a"), fence=claim)
        except (ClaimLost, StorageUnavailable):
            return False
        return claim.is_held


async def test_an_idle_writer_says_something_before_postgres_ends_its_session(postgres_url, operator):
    for silence in (0.5, 2.0, 8.0):  # a busy machine may stand still for the time that the first ones allow
        if await is_kept_while_idle(postgres_url, operator, silence):
            return
    pytest.fail("it never is")


async def test_postgres_ends_the_claims_of_a_writer_that_hangs(postgres_url):
    limits = StorageLimits(silence=1.0, heartbeat=60.0)
    async with Storage.open(postgres_url, limits=UNHURRIED) as other, Storage.open(postgres_url, limits=limits) as hung:
        claim = await claimed(hung)
        taken = await until(lambda: other.claims.try_claim(1))
        await other.write(add("taken over"), fence=taken)
        with pytest.raises((StorageUnavailable, ClaimLost)):
            await hung.write(add("hung"), fence=claim)
        assert await names(other) == ["taken over"]


def ask_nothing(_):
    """Hang right after BEGIN."""


def send_only(connection):
    connection.execute(COUNT)


def read_rows(connection):
    connection.execute(COUNT).all()


def ask_as_sqlalchemy_does(connection):
    connection.execute(text("SELECT 1")).all()


@pytest.mark.parametrize("ask", [ask_nothing, send_only, read_rows, ask_as_sqlalchemy_does])
async def test_postgres_ends_the_claims_of_a_writer_that_hangs_in_a_transaction(postgres_url, ask):
    limits = StorageLimits(silence=1.0, heartbeat=60.0)
    goes_on = threading.Event()

    def hang(connection):
        ask(connection)
        assert goes_on.wait(PATIENCE_SECONDS)

    async with Storage.open(postgres_url, limits=UNHURRIED) as other, Storage.open(postgres_url, limits=limits) as hung:
        claim = await claimed(hung)
        hanging = asyncio.ensure_future(hung.write(hang, fence=claim))
        try:
            taken = await until(lambda: other.claims.try_claim(1))
            await other.write(add("taken over"), fence=taken)
        finally:
            goes_on.set()
        with pytest.raises((StorageUnavailable, ClaimLost)):
            await hanging
        assert await names(other) == ["taken over"]


async def test_a_heartbeat_that_fails_gives_up_the_claims(postgres_url, operator):
    async with Storage.open(postgres_url, limits=StorageLimits(heartbeat=0.05)) as storage:
        claim = await storage.claims.try_claim(1)
        cut(operator)
        again = await claimed(storage)
        assert not claim.is_held
        await storage.write(add("again"), fence=again)


async def test_a_row_that_somebody_holds_fails_alone(postgres_url, operator):
    async with Storage.open(postgres_url, limits=StorageLimits(lock=0.1)) as storage:
        await storage.write(add("held"))
        with operator.engine.connect().execution_options(isolation_level="READ COMMITTED") as holder:
            holder.execute(text("UPDATE contexts SET metadata = '1' WHERE key_hash = 'held'"))
            change = text("UPDATE contexts SET metadata = '2' WHERE key_hash = 'held'")
            async with Held(storage):
                tasks = await issue(storage, [add("a"), lambda connection: connection.execute(change), add("b")])
            first, blocked, last = await asyncio.gather(*tasks, return_exceptions=True)
            holder.rollback()
        assert isinstance(blocked, StorageUnavailable)
        assert not isinstance(first, Exception)
        assert not isinstance(last, Exception)
        assert await names(storage) == ["held", "a", "b"]


async def test_groups_that_lock_rows_in_opposite_orders_are_both_written(postgres_url, operator):
    operator.execute(text("SELECT 1"))
    change = text("UPDATE contexts SET last_position = last_position + 1 WHERE key_hash = :name")

    def touch(name):
        return lambda connection: connection.execute(change, {"name": name})

    def touch_both(names, meet):
        def operation(connection):
            connection.execute(text("SET LOCAL deadlock_timeout = '50ms'"))
            connection.execute(change, {"name": names[0]})
            if not meet.broken:
                with contextlib.suppress(threading.BrokenBarrierError):
                    meet.wait(60)
                meet.abort()  # only the first try meets the other
            connection.execute(change, {"name": names[1]})

        return operation

    async with Storage.open(postgres_url, limits=UNHURRIED) as one, Storage.open(postgres_url, limits=UNHURRIED) as two:
        await one.write(add("x"))
        await one.write(add("y"))
        meet = threading.Barrier(2)
        await asyncio.gather(one.write(touch_both("xy", meet)), two.write(touch_both("yx", meet)))
        await asyncio.gather(*(storage.write(touch(name), sort_key=(name,)) for storage in (one, two) for name in "xy"))
        positions = operator.execute(text("SELECT last_position FROM contexts ORDER BY key_hash")).scalars().all()
    assert positions == [4, 4]


async def test_a_process_that_hung_learns_that_its_claim_is_gone_before_it_shows_anything(postgres_url):
    limits = StorageLimits(silence=0.3, heartbeat=60.0)
    async with Storage.open(postgres_url, limits=limits) as hung, Storage.open(postgres_url, limits=UNHURRIED) as other:
        claim = await claimed(hung)
        assert await until(lambda: other.claims.try_claim(1))
        assert claim.is_held, "it does not know by itself"
        with pytest.raises((StorageUnavailable, ClaimLost)):
            await hung.confirm(claim)


async def test_while_the_database_was_heard_of_a_claim_is_confirmed_without_asking_it(postgres_url):
    goes_on = threading.Event()
    async with Storage.open(postgres_url, limits=StorageLimits(silence=3600.0)) as storage:
        claim = await storage.claims.try_claim(1)
        holding = asyncio.ensure_future(storage.write(lambda _: goes_on.wait(PATIENCE_SECONDS)))
        try:
            await storage.confirm(claim)
        finally:
            goes_on.set()
        await holding
