"""No byte of what was deleted stays in an SQLite file, and nothing else of it changes."""

import asyncio
import contextlib
import random
import sqlite3
import threading

import pytest
from people.conversing import NOW
from sqlalchemy import insert, text

from botservice import Storage, StorageError
from botservice.storage import sqlite_gaps as gaps
from botservice.storage.claims import SharedFile
from botservice.storage.sqlite_gaps import GapSweep, find_gaps
from botservice.storage.sqlite_scrubbing import Scrubber
from botservice.storage.tables.conversations import contexts

_LONGEST_SECONDS = 60


def make_file(path, seed=2):
    """Make a database of which rows were deleted that its pages still hold; return the words of those."""
    chance = random.Random(seed)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
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


def sweep(path):
    """Go over a file at once."""
    shared = SharedFile.at(path)
    pass_ = GapSweep(path, shared.descriptor())
    while not pass_.is_done:
        assert pass_.step()


@pytest.mark.parametrize("seed", range(5))
def test_what_pages_still_hold_of_deleted_rows_is_overwritten_and_nothing_else(tmp_path, seed):
    path = tmp_path / "a.db"
    gone, kept = make_file(path, seed)
    assert left_of(gone, path), "secure_delete alone leaves copies"
    sweep(path)
    assert left_of(gone, path) == set()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert dict(connection.execute("SELECT id, words FROM said")) == kept


def test_others_write_meanwhile_and_lose_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(gaps, "_STEP_BYTES", 8192)  # many steps: others come in between
    path = tmp_path / "a.db"
    gone, kept = make_file(path)
    wanted, has_swept = dict(kept), threading.Event()

    def write():
        chance, older = random.Random(1), sorted(kept)
        with contextlib.closing(sqlite3.connect(path, timeout=_LONGEST_SECONDS, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous=OFF")
            for number in range(10_000, 15_000):
                wanted[number] = "new" * chance.randrange(200)
                connection.execute("INSERT INTO said VALUES (?, ?)", (number, wanted[number]))
                old = chance.choice(older)
                connection.execute("UPDATE said SET words = words || 'y' WHERE id = ?", (old,))
                wanted[old] += "y"
                if has_swept.wait(0.001):  # faster than it is cleaned, the file would grow for good
                    return

    thread = threading.Thread(target=write)
    thread.start()
    try:
        shared = SharedFile.at(path)
        for _ in range(3):
            pass_ = GapSweep(path, shared.descriptor())
            while not pass_.is_done:
                pass_.step()
    finally:
        has_swept.set()
        thread.join()
    sweep(path)
    assert left_of(gone, path) == set()
    with contextlib.closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert dict(connection.execute("SELECT id, words FROM said")) == wanted


def test_a_file_whose_pages_cannot_be_told_apart_is_left_alone(tmp_path):
    path = tmp_path / "a.db"
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA auto_vacuum=FULL")
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("CREATE TABLE said (words TEXT)")
    with pytest.raises(StorageError, match="VACUUM"):
        GapSweep(path, SharedFile.at(path).descriptor()).step()


def test_a_file_with_so_many_pages_that_their_numbers_look_like_trees_is_left_alone(tmp_path, monkeypatch):
    path = tmp_path / "a.db"
    gone, _ = make_file(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        (count,) = connection.execute("PRAGMA page_count").fetchone()
    monkeypatch.setattr(gaps, "_MOST_PAGES", count)  # a real one is of 128 GB
    with pytest.raises(StorageError, match=rf"{count} pages.*VACUUM"):
        GapSweep(path, SharedFile.at(path).descriptor()).step()
    assert left_of(gone, path)


@pytest.mark.parametrize("page", [b"\x0d" + b"\xff" * 4095, b"\x00" * 4096, b"\x0d\x00\x00\x00\x09\x00\x01" * 585])
def test_a_page_that_is_not_as_it_should_be_is_left_alone(page):
    assert list(find_gaps(page)) == []


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


async def test_what_nobody_waits_for_is_cleaned_all_the_same(tmp_path):
    path = tmp_path / "a.db"
    gone, _ = make_file(path)
    scrubber = Scrubber(path)
    async with asyncio.timeout(_LONGEST_SECONDS):
        await scrubber.soon()
    assert not scrubber.is_due
    assert left_of(gone, path) == set()


async def test_closing_waits_for_no_reader(tmp_path):
    path = tmp_path / "a.db"
    make_file(path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM said").fetchall()
        with contextlib.closing(sqlite3.connect(path)) as writer, writer:
            writer.execute("DELETE FROM said")
        scrubber = Scrubber(path)
        assert not await scrubber.scrub(patience_seconds=0.01)
        async with asyncio.timeout(_LONGEST_SECONDS):
            await scrubber.close()
        assert scrubber.is_due


async def test_postgres_is_never_said_to_be_clean(postgres_storage):
    assert not await postgres_storage.scrub()
    postgres_storage.scrub_soon()
    assert not postgres_storage.is_scrubbed
