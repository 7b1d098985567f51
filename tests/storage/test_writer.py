"""The writer: what is committed together, what fails alone, and what happens to those who do not wait."""

import asyncio
import threading
import traceback

import pytest
from sqlalchemy import event, func, insert, select
from standins.patience import PATIENT
from storage.writing import Held, add, issue, names, traced

from botservice import Storage
from botservice.core.errors import ClaimLost, StorageError, StorageUnavailable
from botservice.storage.tables.conversations import contexts


def count_commits(storage):
    if storage.is_sqlite:
        statements = traced(storage)
        return lambda: statements.count("COMMIT")
    commits = []
    event.listen(storage._writer.connection._engine, "commit", lambda connection: commits.append(1))
    return lambda: len(commits)


async def test_what_waits_is_committed_together(storage):
    commits = count_commits(storage)
    async with Held(storage):
        tasks = await issue(storage, [add(f"c{number}") for number in range(20)])
    await asyncio.gather(*tasks)
    assert commits() == 2
    assert await names(storage) == [f"c{number}" for number in range(20)]


async def test_what_is_done_for_several_subjects_is_done_once_in_a_batch(storage):
    given = []

    def name_all(_, subjects):
        given.append(list(subjects))
        return [f"done for {subject}" for subject in subjects]

    writer = storage._writer
    async with Held(storage):
        issued = [writer.issue(name_all, subject=subject) for subject in "abc"]
        last = writer.issue(name_all, subject="d", is_last=True)
    assert await asyncio.gather(*issued, last) == ["done for a", "done for b", "done for c", "done for d"]
    assert given == [["a", "b", "c"], ["d"]]


async def test_a_bad_row_never_takes_its_neighbours_along(storage):
    def fail(connection):
        add("half")(connection)
        raise LookupError("bad row")

    async with Held(storage):
        tasks = await issue(storage, [add("a"), fail, add("b"), add("a"), add("c")])
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result).__name__ for result in results if isinstance(result, Exception)] == [
        "LookupError",
        "StorageError",
    ]
    assert await names(storage) == ["a", "b", "c"]


async def test_an_error_repeats_nobodys_text(storage):
    await storage.write(add("secret"))
    private = insert(contexts).values(key_hash="b", context_keys={}, metadata={"a": "private"}, created_at=None)
    for operation in (add("secret"), lambda connection: connection.execute(private)):
        with pytest.raises(StorageError, match=r"(?i)unique|not.null") as caught:
            await storage.write(operation)
        told = "".join(traceback.format_exception(caught.value))
        assert "secret" not in told.replace('add("secret")', "")
        assert "private" not in told.replace("private = ", "").replace("execute(private)", "")


async def test_an_operation_that_stops_iterating_fails_alone(storage):
    async with Held(storage):
        tasks = await issue(storage, [lambda _: next(iter(())), add("a")])
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(results[0], RuntimeError)
    assert await names(storage) == ["a"]


class Fence:
    def __init__(self):
        self.is_held = True

    def check(self):
        if not self.is_held:
            raise ClaimLost("lost")


async def test_a_write_whose_fence_is_gone_is_refused_and_costs_its_neighbours_nothing(storage):
    commits = count_commits(storage)
    fence = Fence()
    async with Held(storage):
        [lost] = await issue(storage, [add("lost")], fence=fence)
        tasks = await issue(storage, [add("a"), add("b")])
        fence.is_held = False
    with pytest.raises(ClaimLost):
        await lost
    await asyncio.gather(*tasks)
    assert commits() == 2
    assert await names(storage) == ["a", "b"]


async def test_a_write_that_was_issued_happens_although_its_task_is_cancelled(storage):
    async with Held(storage):
        [task] = await issue(storage, [add("cancelled")])
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    await storage.write(add("next"))
    assert await names(storage) == ["cancelled", "next"]


async def test_writes_happen_in_the_order_of_their_keys_and_numbers_count_as_numbers(storage):
    async with Held(storage):
        tasks = []
        for key in [("b",), (10,), ("a", 1), (9,), ("a",)]:
            tasks += await issue(storage, [add(str(key))], sort_key=key)
    await asyncio.gather(*tasks)
    assert await names(storage) == ["(9,)", "(10,)", "('a',)", "('a', 1)", "('b',)"]


async def test_reads_see_what_was_committed_before_them(storage):
    for number in range(5):
        await storage.write(add(f"c{number}"))
        assert len(await names(storage)) == number + 1


async def test_a_read_is_one_view_of_the_database(storage):
    count = select(func.count()).select_from(contexts)
    first, go_on = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def query(connection):
        before = connection.execute(count).scalar_one()
        loop.call_soon_threadsafe(first.set)
        assert go_on.wait(60)
        return before, connection.execute(count).scalar_one()

    reading = asyncio.ensure_future(storage.read(query))
    await first.wait()
    await storage.write(add("meanwhile"))
    go_on.set()
    assert await reading == (0, 0)


async def test_a_read_cannot_write(storage):
    with pytest.raises(Exception, match=r"(?i)read-?only"):
        await storage.read(add("written by a reader"))
    assert await names(storage) == []


async def test_what_waits_at_the_end_is_committed_and_nothing_is_taken_after_it(storage_url):
    async with Storage.open(storage_url, limits=PATIENT) as storage:
        async with Held(storage) as held:
            tasks = await issue(storage, [add("a"), add("b")])
            closing = asyncio.ensure_future(storage.close())
            await asyncio.sleep(0)
            held.gate.set()
        await closing
        await asyncio.gather(*tasks)
        with pytest.raises(StorageUnavailable, match="not open"):
            await storage.write(add("late"))
        with pytest.raises(StorageUnavailable, match="not open"):
            await names(storage)
        with pytest.raises(StorageUnavailable, match="closed"):
            await storage._writer.issue(add("late"))
    async with Storage.open(storage_url, limits=PATIENT) as storage:
        assert await names(storage) == ["a", "b"]


async def test_closing_goes_on_although_it_is_cancelled(sqlite_url):
    storage = await Storage.open(sqlite_url)
    claim = await storage.claims.try_claim(1)
    async with Held(storage) as held:
        closing = asyncio.ensure_future(storage.close())
        await asyncio.sleep(0)
        closing.cancel()
        held.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await closing
    await asyncio.to_thread(storage._writer._thread.join)
    async with asyncio.timeout(60):
        while claim.is_held:  # noqa: ASYNC110 - given back in a thread, after the writer's
            await asyncio.sleep(0)


async def test_one_storage_serves_two_event_loops(storage):
    def other_loop():
        async def use():
            await storage.write(add("other"))
            return await names(storage)

        return asyncio.run(use())

    _, there = await asyncio.gather(storage.write(add("here")), asyncio.to_thread(other_loop))
    assert "other" in there
    assert sorted(await names(storage)) == ["here", "other"]


async def test_a_storage_is_opened_once(storage):
    with pytest.raises(Exception, match="open already"):
        await storage.__aenter__()


async def test_sqlite_waits_for_the_disk_where_somebody_is_told_of_what_is_written(sqlite_url):
    normal, full = 1, 2

    def level(connection):
        return connection.exec_driver_sql("PRAGMA synchronous").scalar_one()

    async with Storage.open(sqlite_url) as storage:
        assert [await storage.write(level, is_told=is_told) for is_told in (True, False, True)] == [full, normal, full]
        async with Held(storage):
            together = [storage.issue(level, is_told=is_told) for is_told in (False, True)]
        assert await asyncio.gather(*together) == [full, full]
