"""The readers: side by side, each read with one view of the database, whatever became of the one before."""

import asyncio
import threading

import pytest
from sqlalchemy import Integer, bindparam, func, select, text
from sqlalchemy.exc import DataError
from storage.writing import add, names

from botservice.core.errors import StorageUnavailable
from botservice.storage.tables.conversations import contexts

COUNT = select(func.count()).select_from(contexts)
DIVIDE = select(1 / bindparam("number", type_=Integer))
PATIENCE_SECONDS = 60


def count(connection):
    return connection.execute(COUNT).scalar_one()


async def test_a_read_sees_one_moment_while_others_write(storage):
    await storage.write(add("first"))
    has_read, may_read = threading.Event(), threading.Event()

    def read_twice(connection):
        before = count(connection)
        has_read.set()
        assert may_read.wait(PATIENCE_SECONDS)
        return before, count(connection)

    reading = asyncio.create_task(storage.read(read_twice))
    assert await asyncio.to_thread(has_read.wait, PATIENCE_SECONDS)
    await storage.write(add("second"))
    may_read.set()
    assert await reading == (1, 1)
    assert await storage.read(count) == 2


async def test_two_reads_run_side_by_side(storage):
    together = threading.Barrier(2, timeout=PATIENCE_SECONDS)

    def meet(connection):
        together.wait()
        return count(connection)

    assert await asyncio.gather(storage.read(meet), storage.read(meet)) == [0, 0]


@pytest.mark.parametrize("error", [LookupError("no"), StopIteration("no")])
async def test_a_read_that_fails_leaves_nothing_behind(storage, error):
    def fail(connection):
        count(connection)
        raise error

    for _ in range(4):  # every reader had its turn
        with pytest.raises((LookupError, RuntimeError)):
            await storage.read(fail)
    await storage.write(add("new"))
    assert [await storage.read(count) for _ in range(4)] == [1, 1, 1, 1]


async def test_a_read_whose_error_comes_at_its_end_leaves_nothing_behind(postgres_storage):
    for _ in range(4):
        with pytest.raises(DataError, match="division by zero"):
            await postgres_storage.read(lambda connection: connection.execute(DIVIDE, {"number": 0}))
    assert [await postgres_storage.read(count) for _ in range(4)] == [0, 0, 0, 0]


async def test_a_read_that_nobody_waits_for_any_more_is_not_begun(storage):
    is_held, asked = threading.Event(), []

    def hold(_):
        assert is_held.wait(PATIENCE_SECONDS)

    holding = [asyncio.create_task(storage.read(hold)) for _ in range(2)]
    left = asyncio.create_task(storage.read(lambda _: asked.append("left")))
    await asyncio.sleep(0)
    left.cancel()
    await asyncio.wait([left])
    is_held.set()
    await asyncio.gather(*holding)
    assert await names(storage) == []
    assert asked == []


async def test_the_word_for_a_short_read_is_taken_until_the_next_major_version(storage):
    with pytest.warns(DeprecationWarning, match="leave it out"):
        assert await storage.read(lambda connection: connection.scalar(text("SELECT 1")), is_short=True) == 1


async def test_a_storage_that_is_closed_reads_nothing_more(storage):
    await storage.close()
    with pytest.raises(StorageUnavailable):
        await storage.read(count)


async def test_nobody_waits_for_a_read_that_may_be_long(storage):
    has_begun, is_over = threading.Event(), threading.Event()

    def take_long(connection):
        found = count(connection)
        has_begun.set()
        assert is_over.wait(PATIENCE_SECONDS)
        return found

    long = [asyncio.create_task(storage.read(take_long, is_long=True)) for _ in range(20)]
    try:
        assert await asyncio.to_thread(has_begun.wait, PATIENCE_SECONDS)  # and the others have asked, too
        async with asyncio.timeout(PATIENCE_SECONDS):
            assert await storage.read(count) == 0
    finally:
        is_over.set()
    assert await asyncio.gather(*long) == [0] * 20


@pytest.mark.slow
async def test_the_log_of_sqlite_stays_short_while_one_long_read_follows_another(sqlite_storage):
    path = sqlite_storage.where.path
    text_of_a_megabyte = "x" * 2**20
    reading: list[tuple[asyncio.Task[None], threading.Event]] = []

    async def begin():
        has_begun, may_end = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def hold(connection):
            count(connection)
            loop.call_soon_threadsafe(has_begun.set)
            assert may_end.wait(PATIENCE_SECONDS)

        reading.append((asyncio.create_task(sqlite_storage.read(hold, is_long=True)), may_end))
        return has_begun

    async with asyncio.timeout(PATIENCE_SECONDS):
        await (await begin()).wait()
        for number in range(60):
            await sqlite_storage.write(add(f"{number} {text_of_a_megabyte}"))
            has_begun = await begin()
            reading[-2][1].set()
            await reading[-2][0]
            await has_begun.wait()
        reading[-1][1].set()
        await reading[-1][0]
    assert path.with_name(f"{path.name}-wal").stat().st_size < 24 * 2**20


async def test_a_system_without_threads_to_read_with_is_asked_for_them_again(sqlite_storage, monkeypatch):
    def refuse(_thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as full:
        full.setattr(threading.Thread, "start", refuse)
        with pytest.raises(StorageUnavailable, match="can't start new thread"):
            await sqlite_storage.read(count, is_long=True)
    assert await sqlite_storage.read(count, is_long=True) == 0


@pytest.mark.parametrize("how", [{}, {"is_long": True}], ids=str)
async def test_a_read_that_fails_keeps_no_old_view_for_the_next_ones(storage, how):
    for number in range(3):
        await storage.write(add(str(number)))

    def leave_rows_unread(connection):
        rows = connection.execute(select(contexts.c.id))
        raise ValueError(rows.fetchone())

    failed = [await asyncio.gather(storage.read(leave_rows_unread, **how), return_exceptions=True) for _ in range(4)]
    await storage.write(add("new"))
    assert [await storage.read(count, **how) for _ in range(4)] == [4] * 4
    assert all(each.__traceback__ is not None for [each] in failed), (
        "their frames are still there, as while one is logged"
    )


@pytest.mark.parametrize("how", [{}, {"is_long": True}], ids=str)
async def test_a_read_that_returns_before_its_rows_are_read_keeps_no_old_view_for_the_next_ones(storage, how):
    for number in range(3):
        await storage.write(add(str(number)))
    unread = [await storage.read(lambda connection: connection.execute(select(contexts.c.id)), **how) for _ in range(4)]
    await storage.write(add("new"))
    assert [await storage.read(count, **how) for _ in range(4)] == [4] * 4
    assert len(unread) == 4


async def test_a_write_that_fails_with_rows_unread_keeps_no_one_from_writing(storage):
    await storage.write(add("first"))
    await storage.write(add("second"))

    def leave_rows_unread(connection):
        rows = connection.execute(select(contexts.c.id))
        raise ValueError(rows.fetchone())

    failed = await asyncio.gather(storage.write(leave_rows_unread), return_exceptions=True)
    await storage.write(add("third"))
    assert await storage.read(count) == 3
    assert failed[0].__traceback__ is not None
