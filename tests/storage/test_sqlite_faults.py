"""SQLite under other programs that write, and on a disk that is full."""

import asyncio
import sqlite3

import pytest
from storage.writing import Held, add, issue, names, traced

from botservice import Storage
from botservice.core.errors import StorageError, StorageUnavailable
from botservice.storage.limits import StorageLimits

IMPATIENT = StorageLimits(lock=0.05)


@pytest.fixture
def foreign(sqlite_url):
    """Another program's connection to the same file."""
    connection = sqlite3.connect(sqlite_url.removeprefix("sqlite:///"), isolation_level=None)
    yield connection
    connection.close()


async def test_a_file_that_another_program_writes_to_is_waited_for_once_per_batch(sqlite_url, foreign):
    async with Storage.open(sqlite_url, limits=IMPATIENT) as storage:
        statements = traced(storage)
        async with Held(storage):
            tasks = await issue(storage, [add(f"c{number}") for number in range(50)])
        await asyncio.gather(*tasks)
        foreign.execute("BEGIN IMMEDIATE")
        statements.clear()
        blocked = await issue(storage, [add(f"d{number}") for number in range(50)])
        results = await asyncio.gather(*blocked, return_exceptions=True)
        assert {type(result) for result in results} == {StorageUnavailable}
        assert "database is locked" in str(results[0])
        assert 1 <= statements.count("BEGIN IMMEDIATE") <= 2, "each write of the batch has waited for itself"
        foreign.execute("COMMIT")
        await storage.write(add("after"))
        assert await names(storage) == [*(f"c{number}" for number in range(50)), "after"]


async def test_reading_goes_on_while_another_program_writes(sqlite_url, foreign):
    async with Storage.open(sqlite_url, limits=IMPATIENT) as storage:
        await storage.write(add("a"))
        foreign.execute("BEGIN IMMEDIATE")
        foreign.execute("DELETE FROM contexts")
        assert await names(storage) == ["a"]
        foreign.execute("ROLLBACK")


async def test_another_program_that_writes_for_a_moment_is_waited_for(sqlite_url, foreign):
    async with Storage.open(sqlite_url) as storage:
        foreign.execute("BEGIN IMMEDIATE")
        writing = asyncio.ensure_future(storage.write(add("a")))
        await asyncio.sleep(0)
        foreign.execute("COMMIT")
        await writing
        assert await names(storage) == ["a"]


async def set_size(storage, pages):
    """Let the file grow to so many pages at most; None for as many as it likes."""
    await storage._writer.issue(
        lambda connection: connection.exec_driver_sql(
            f"PRAGMA max_page_count={2**30 if pages is None else pages}"
        ).fetchall()
    )


async def test_a_full_disk_is_said_and_survived(sqlite_url):
    async with Storage.open(sqlite_url) as storage:
        await storage.write(add("before"))
        pages = await storage.read(lambda connection: connection.exec_driver_sql("PRAGMA page_count").scalar_one())
        await set_size(storage, pages + 2)
        large = "x" * 100_000
        async with Held(storage):
            tasks = await issue(storage, [add("small"), add(large), add("tiny")])
        small, failed, tiny = await asyncio.gather(*tasks, return_exceptions=True)
        assert small is not failed is not tiny
        assert isinstance(failed, StorageUnavailable)
        assert "full" in str(failed)
        assert not isinstance(small, Exception)
        assert not isinstance(tiny, Exception)
        await set_size(storage, None)
        await storage.write(add(large))
        assert await names(storage) == ["before", "small", "tiny", large]


async def test_a_commit_that_fails_leaves_no_transaction_open(sqlite_url):
    async with Storage.open(sqlite_url) as storage:
        await storage.write(add("before"))

        def refer_to_nothing(connection):
            connection.exec_driver_sql("PRAGMA defer_foreign_keys=ON")  # it is COMMIT that refuses it
            add("refused")(connection)
            connection.exec_driver_sql(
                "INSERT INTO blobs (context_id, sha256, data, is_encrypted) VALUES (9, '', '', 0)"
            )

        with pytest.raises(StorageError, match="FOREIGN KEY"):
            await storage.write(refer_to_nothing)
        await storage.write(add("after"))
        assert await names(storage) == ["before", "after"]


async def test_a_savepoint_that_went_with_its_transaction_holds_nobody_up(sqlite_url):
    async with Storage.open(sqlite_url) as storage:

        def lose_all(connection):
            with connection.begin_nested():
                add("lost")(connection)
                connection.exec_driver_sql("ROLLBACK")  # as SQLite does by itself where a disk is full

        def leave_open(connection):
            connection.begin_nested()
            add("left")(connection)
            raise LookupError("it has gone")

        for operation in (lose_all, leave_open):
            with pytest.raises((StorageError, LookupError)):
                await storage.write(operation)
            held = storage._writer.connection.held
            assert held is None or held.get_nested_transaction() is None
            await storage.write(add(operation.__name__))
        assert await names(storage) == ["lose_all", "leave_open"]


async def test_an_operation_that_commits_by_itself_costs_no_later_write(sqlite_url):
    async with Storage.open(sqlite_url) as storage:
        await storage.write(add("before"))
        together = (lambda connection: connection.commit(), add("after"), add("later"))
        await asyncio.gather(*(storage.write(each) for each in together))
        assert sorted(await names(storage)) == ["after", "before", "later"]
