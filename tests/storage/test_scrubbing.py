"""No byte of what was deleted stays in an SQLite file, and nothing else of it changes."""

import asyncio
import contextlib
import random
import sqlite3
from functools import partial

import pytest
from people.conversing import NOW
from sqlalchemy import insert, text

from botservice import Storage
from botservice.storage import sqlite_scrubbing
from botservice.storage.limits import StorageLimits
from botservice.storage.sqlite_scrubbing import Scrubber, vacuum_file
from botservice.storage.tables.conversations import contexts

_LONGEST_SECONDS = 60


def make_file(path, seed=2, auto_vacuum="NONE"):
    """Make a database of which rows were deleted that its pages still hold; return the words of those."""
    chance = random.Random(seed)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA auto_vacuum={auto_vacuum}")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA secure_delete=ON")
        connection.execute("PRAGMA synchronous=OFF")
        connection.execute("CREATE TABLE said (id INTEGER PRIMARY KEY, words TEXT)")
        connection.execute("CREATE INDEX by_words ON said (words)")
        names = {}
        for number in chance.sample(range(2000), 600):
            names[number] = f"mark{number:04}x" + "w" * chance.randrange(300)
            connection.execute("INSERT INTO said VALUES (?, ?)", (number, names[number]))
        gone = chance.sample(sorted(names), 400)
        for number in gone:
            connection.execute("DELETE FROM said WHERE id = ?", (number,))
    return {names.pop(number)[:9] for number in gone}, names


def left_of(words, path):
    """Return which words are in a file or its log."""
    data = b"".join(each.read_bytes() for each in path.parent.glob(f"{path.name}*"))
    return {each for each in words if each.encode() in data}


def read_kept(path):
    """Return the words that are in a file, which is as it should be."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return dict(connection.execute("SELECT id, words FROM said"))


async def is_clean(storage):
    while not storage.is_scrubbed:  # noqa: ASYNC110 - a thread cleans it, by and by
        await asyncio.sleep(0.01)


async def cleaned(path):
    """Clean a file as a storage does."""
    async with Storage.open(f"sqlite:///{path}") as storage:
        assert await storage.scrub(patience_seconds=_LONGEST_SECONDS)


@pytest.mark.parametrize("seed", range(5))
async def test_what_pages_still_hold_of_deleted_rows_is_gone_and_nothing_else(tmp_path, seed):
    path = tmp_path / "a.db"
    gone, kept = make_file(path, seed)
    assert left_of(gone, path), "secure_delete alone leaves copies"
    await cleaned(path)
    assert left_of(gone, path) == set()
    assert read_kept(path) == kept


@pytest.mark.parametrize("mode", ["FULL", "INCREMENTAL"])
async def test_a_file_with_auto_vacuum_is_cleaned_like_any_other(tmp_path, mode):
    path = tmp_path / "a.db"
    gone, kept = make_file(path, auto_vacuum=mode)
    await cleaned(path)
    assert left_of(gone, path) == set()
    assert read_kept(path) == kept


async def test_writes_of_the_same_process_wait_and_lose_nothing(tmp_path):
    path = tmp_path / "a.db"
    gone, kept = make_file(path)
    insert_one = text("INSERT INTO said VALUES (:id, :words)")
    async with Storage.open(f"sqlite:///{path}") as storage:
        rows = [{"id": number, "words": f"new{number}"} for number in range(10_000, 10_300)]
        cleaning = asyncio.ensure_future(storage.scrub(patience_seconds=_LONGEST_SECONDS))
        for row in rows:
            await storage.write(lambda connection, row=row: connection.execute(insert_one, row))
        assert await cleaning
        assert storage.is_scrubbed
    assert left_of(gone, path) == set()
    assert read_kept(path) == {**kept, **{row["id"]: row["words"] for row in rows}}


async def test_a_write_of_another_process_has_it_done_later(tmp_path, caplog):
    path = tmp_path / "a.db"
    gone, kept = make_file(path)
    async with Storage.open(f"sqlite:///{path}", limits=StorageLimits(lock=0.05)) as storage:
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            assert not await storage.scrub(patience_seconds=_LONGEST_SECONDS)
            assert "storage.not_scrubbed" in caplog.text
            assert not storage.is_scrubbed
        assert await storage.scrub(patience_seconds=_LONGEST_SECONDS)
        assert storage.is_scrubbed
    assert left_of(gone, path) == set()
    assert read_kept(path) == kept


async def test_a_file_whose_writing_is_broken_off_is_as_it_was_and_written_to(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_scrubbing, "STEPS_AT_ONCE", 1)
    path = tmp_path / "a.db"
    _, kept = make_file(path)
    async with Storage.open(f"sqlite:///{path}") as storage:
        error = await storage.write(partial(vacuum_file, is_unwanted=lambda: True))
        assert str(error) == "interrupted"
        await storage.check_writes(is_doubted=True)
    assert read_kept(path) == kept


async def test_a_storage_says_whether_its_file_is_clean_and_cleans_it_when_nobody_reads_it_any_more(sqlite_url):
    async with Storage.open(sqlite_url) as storage:
        path = storage.where.path

        def plant(connection):
            values = {"key_hash": "h", "context_keys": {"name": "planted-word"}, "metadata": {}, "created_at": NOW}
            connection.execute(insert(contexts).values(values))

        await storage.write(plant)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM contexts").fetchall()
            await storage.write(lambda connection: connection.execute(contexts.delete()))
            assert not await storage.scrub(patience_seconds=0.1)
            assert not storage.is_scrubbed
            assert left_of({"planted-word"}, path)
        assert await storage.scrub(patience_seconds=_LONGEST_SECONDS)
        assert storage.is_scrubbed
        assert left_of({"planted-word"}, path) == set()
        assert await storage.read(lambda connection: connection.execute(text("SELECT 1")).scalar_one()) == 1


async def test_what_nobody_waits_for_is_cleaned_at_a_quiet_moment(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_scrubbing, "_GATHERING_SECONDS", 0)
    monkeypatch.setattr(sqlite_scrubbing, "_LOOK_SECONDS", 0)
    moments = [True, False, False]

    async def vacuum(_is_unwanted):
        assert moments == []

    scrubber = Scrubber(tmp_path / "a.db", vacuum, is_quiet=moments.pop)
    make_file(tmp_path / "a.db")
    await asyncio.wait_for(scrubber.soon(), _LONGEST_SECONDS)
    assert not scrubber.is_due


async def test_it_is_not_quiet_while_a_turn_runs(tmp_path):
    path = tmp_path / "a.db"
    gone, _ = make_file(path)
    async with Storage.open(f"sqlite:///{path}") as storage:
        claim = await storage.claims.try_claim(1)
        assert not storage.is_quiet
        await storage.claims.release(claim)
        assert storage.is_quiet
        storage.scrub_soon()
        await asyncio.wait_for(is_clean(storage), _LONGEST_SECONDS)
    assert left_of(gone, path) == set()


async def test_a_large_file_is_not_written_again_and_again(tmp_path, monkeypatch):
    monkeypatch.setattr(sqlite_scrubbing, "_UNNOTICED_BYTES", 1)
    monkeypatch.setattr(sqlite_scrubbing, "_REST_SECONDS_PER_BYTE", 1)
    path = tmp_path / "a.db"
    make_file(path)
    async with Storage.open(f"sqlite:///{path}") as storage:
        assert await storage.scrub(patience_seconds=_LONGEST_SECONDS)
        assert not await storage.scrub(patience_seconds=0.01)


async def test_closing_waits_for_no_reader(tmp_path):
    path = tmp_path / "a.db"
    gone, _ = make_file(path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM said").fetchall()
        async with asyncio.timeout(_LONGEST_SECONDS), Storage.open(f"sqlite:///{path}") as storage:
            await storage.write(lambda connection: connection.execute(text("DELETE FROM said")))
            assert not await storage.scrub(patience_seconds=0.01)
        assert not storage.is_scrubbed
    await cleaned(path)
    assert left_of(gone, path) == set()


async def test_postgres_is_never_said_to_be_clean(postgres_storage):
    assert not await postgres_storage.scrub()
    postgres_storage.scrub_soon()
    assert not postgres_storage.is_scrubbed
