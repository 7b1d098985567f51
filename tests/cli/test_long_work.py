"""Long commands say how far they are; Ctrl+C in the middle of one leaves nothing half."""

import asyncio
import os
import pty
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import typer
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.pool import NullPool

from botservice import AgentContext, Attachment, Author, Storage
from botservice.cli.console import LineProgress, long_work
from botservice.cli.database import compact_database
from botservice.config.settings import Settings
from botservice.core.progress import Progress
from botservice.privacy.exported_data import read_person
from botservice.storage.blobs import encrypt_files
from botservice.storage.sqlite_files import back_up, shrink, write_private

pytestmark = pytest.mark.slow

KEY = "a key of a test " * 3
FILES = 120
CHATS = 5


def ctrl_c_at(number: int, *, seen: list[tuple[float, float]] | None = None) -> Progress:
    """Return what presses Ctrl+C when it is told for the so many-th time how far something is."""
    told: list[tuple[float, float]] = [] if seen is None else seen

    def press(done: float, total: float, note: str = "") -> None:
        told.append((done, total))
        if len(told) == number:
            signal.raise_signal(signal.SIGINT)

    return press


def test_lines_come_every_five_seconds_and_say_how_long_it_may_take() -> None:
    now, said = 0.0, list[str]()
    lines = LineProgress("compact", said.append, lambda: now)
    for now in range(0, 21, 2):
        lines(now, 40, "turns")
    assert said == [
        "compact: 15%, about 34 s left, turns",
        "compact: 30%, about 28 s left, turns",
        "compact: 45%, about 22 s left, turns",
    ]
    now = 40
    lines(0, 0)
    assert said[-1] == "compact: 40 s"


def test_what_has_hardly_begun_is_not_estimated() -> None:
    now, said = 0.0, list[str]()
    lines = LineProgress("prove", said.append, lambda: now)
    now = 9
    lines(0.00005, 20)
    now = 18
    lines(2, 20)
    assert said == ["prove: 0%", "prove: 10%, about 162 s left"]


def test_ctrl_c_is_answered_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as end, long_work("count", left="All is as it was."):
        signal.raise_signal(signal.SIGINT)
    assert end.value.exit_code == 130
    assert capsys.readouterr().err == "botservice: stopped. All is as it was.\n"


@pytest.fixture
def large(sqlite_url: str, tmp_path: Path) -> Path:
    """A database of some 15 MB."""
    path = tmp_path / "bot.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE rows (id INTEGER PRIMARY KEY, data BLOB)")
        connection.executemany("INSERT INTO rows (data) VALUES (zeroblob(200))", (() for _ in range(60_000)))
        connection.commit()
    return path


def rows_in(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return int(connection.execute("SELECT count(*) FROM rows").fetchone()[0])


def test_a_backup_that_is_stopped_leaves_no_file(large: Path, tmp_path: Path) -> None:
    seen: list[tuple[float, float]] = []
    with pytest.raises(KeyboardInterrupt):
        back_up(large, tmp_path / "copy.db", ctrl_c_at(2, seen=seen))
    assert seen[-1][0] < seen[-1][1]
    assert list(tmp_path.glob("copy*")) == []
    assert rows_in(large) == 60_000


def test_a_backup_that_is_stopped_while_it_is_checked_leaves_no_file(large: Path, tmp_path: Path) -> None:
    def at_the_check(done: float, total: float, note: str = "") -> None:
        if note == "checked":
            signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        back_up(large, tmp_path / "copy.db", at_the_check)
    assert list(tmp_path.glob("copy*")) == []


def test_a_copy_does_not_begin_anew_when_somebody_writes_and_is_of_one_moment(large: Path, tmp_path: Path) -> None:
    seen: list[float] = []
    with closing(sqlite3.connect(large, isolation_level=None)) as writer:

        def write(done: float, total: float, note: str = "") -> None:
            if note == "copied":
                seen.append(done)
                writer.execute("DELETE FROM rows WHERE id IN (SELECT id FROM rows LIMIT 100)")

        back_up(large, tmp_path / "copy.db", write)
    assert len(seen) > 2
    assert seen == sorted(seen)
    assert rows_in(tmp_path / "copy.db") == 60_000


def test_making_a_file_smaller_can_be_stopped_and_leaves_it_as_it_was(large: Path) -> None:
    with closing(sqlite3.connect(large)) as connection:
        connection.execute("DELETE FROM rows WHERE id % 2")
        connection.commit()
    size = large.stat().st_size
    with pytest.raises(KeyboardInterrupt):
        shrink(large, progress=ctrl_c_at(1))
    assert rows_in(large) == 30_000
    assert large.stat().st_size == size
    before, after = shrink(large)
    assert (before, rows_in(large)) == (size, 30_000)
    assert after < before


def test_compaction_that_is_stopped_while_it_makes_the_file_smaller_leaves_it_whole(large: Path) -> None:
    def at_the_end(done: float, total: float, note: str = "") -> None:
        if note == "rewritten":
            os.kill(os.getpid(), signal.SIGINT)

    settings = Settings.load(None, database_url=f"sqlite:///{large}")
    with pytest.raises(KeyboardInterrupt):
        compact_database(settings, shrinks=True, progress=at_the_end)
    assert rows_in(large) == 60_000
    assert compact_database(settings, shrinks=True).startswith("0 turns")


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_a_migration_that_is_stopped_changes_nothing_and_can_be_done_again(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    if kind == "postgres":
        url = request.getfixturevalue("own_postgres_url")
    with pytest.raises(KeyboardInterrupt):
        Storage.open(url, migrate=True).migrate(ctrl_c_at(1))
    assert tables_of(url) == 0
    Storage.open(url, migrate=True).migrate(ctrl_c_at(0))
    assert tables_of(url) > 10


def tables_of(url: str) -> int:
    address = make_url(url)
    if address.drivername == "postgresql":
        query = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        address = address.set(drivername="postgresql+psycopg")
    else:
        query = "SELECT count(*) FROM sqlite_schema"
    with create_engine(address, poolclass=NullPool).connect() as connection:
        return int(connection.execute(text(query)).scalar_one())


async def put_files(url: str) -> None:
    async with Storage.open(url, migrate=False) as storage:
        for chat in range(CHATS):
            context = await AgentContext.get_or_create(storage, {"transport": "terminal", "chat_id": str(chat)})
            files = [
                Attachment("image/png", f"{number}.png", data=f"the bytes of picture {chat} {number}".encode())
                for number in range(FILES // CHATS)
            ]
            author = Author("terminal", "7", "Ann")
            await context.chat_history.append_user_message("look", attachments=files, author=author)


async def read_files(url: str) -> tuple[int, int]:
    """Return how many files can be read with the key, and how many of them are encrypted."""
    query = text("SELECT count(*) FROM blobs WHERE is_encrypted")
    async with Storage.open(url, migrate=False, encryption_key=KEY) as storage:
        found = 0
        for chat in range(CHATS):
            context = await AgentContext.get_or_create(storage, {"transport": "terminal", "chat_id": str(chat)})
            for message in await context.chat_history.messages():
                found += sum(b"the bytes of" in (each.data or b"") for each in message.attachments)
        return found, await storage.read(lambda connection: int(connection.execute(query).scalar_one()))


async def encrypt(url: str, progress: Progress) -> int:
    async with Storage.open(url, migrate=False, encryption_key=KEY) as storage:
        return await encrypt_files(storage, progress)


def test_encryption_that_is_stopped_leaves_every_file_readable_and_goes_on_later(storage_url: str) -> None:
    asyncio.run(put_files(storage_url))
    seen: list[tuple[float, float]] = []
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(encrypt(storage_url, ctrl_c_at(1, seen=seen)))
    assert seen[0][0] < seen[0][1]
    readable, encrypted = asyncio.run(read_files(storage_url))
    assert readable == FILES
    assert 0 < encrypted < FILES
    assert asyncio.run(encrypt(storage_url, ctrl_c_at(0))) == FILES
    assert asyncio.run(read_files(storage_url)) == (FILES, FILES)


def test_reading_what_is_a_persons_can_be_stopped(sqlite_url: str) -> None:
    asyncio.run(put_files(sqlite_url))

    async def read(progress: Progress) -> None:
        async with Storage.open(sqlite_url, migrate=False) as storage:
            await read_person(storage, Author("terminal", "7"), progress)

    seen: list[tuple[float, float]] = []
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(read(ctrl_c_at(2, seen=seen)))
    assert seen == [(1, CHATS), (2, CHATS)]


@pytest.fixture
def on_terminal(tmp_path: Path, sqlite_url: str) -> Callable[..., tuple[int, str]]:
    """What runs a command on a terminal, presses Ctrl+C after a second, then does more, and returns how it ended."""

    def run(*arguments: str, then: Callable[[], object]) -> tuple[int, str]:
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [sys.executable, "-m", "botservice", *arguments],
            cwd=tmp_path,
            env={**os.environ, "DATABASE_URL": sqlite_url, "ENCRYPTION_KEY": KEY, "TERM": "xterm"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=theirs,
        )
        os.close(theirs)
        said, is_stopped = b"", False
        while chunk := _read(ours):
            said += chunk
            if b"0:00:01" in said and not is_stopped:  # it waits for the lock that the test has
                is_stopped = True
                process.send_signal(signal.SIGINT)
                then()
        os.close(ours)
        return process.wait(timeout=60), said.decode()

    return run


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1000)
    except OSError:  # the other side is closed
        return b""


@pytest.mark.parametrize("command", ["encrypt", "compact"])
def test_a_command_on_a_terminal_shows_a_bar_and_ends_with_130(
    on_terminal: Callable[..., tuple[int, str]], tmp_path: Path, sqlite_url: str, command: str
) -> None:
    asyncio.run(put_files(sqlite_url))
    with closing(sqlite3.connect(tmp_path / "bot.db", isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")  # so that it cannot be done before Ctrl+C
        code, said = on_terminal(command, then=connection.rollback)
    assert code == 130, said
    assert "\u2501" in said, "a bar"
    assert said.count("botservice: stopped.") == 1
    assert "Traceback" not in said
    readable, encrypted = asyncio.run(read_files(sqlite_url))
    assert readable == FILES
    assert encrypted < FILES


def test_an_archive_takes_the_place_of_a_file_and_never_that_of_a_pipe(tmp_path: Path) -> None:
    file, link, pipe = (tmp_path / name for name in ("file", "link", "pipe"))
    file.write_bytes(b"older")
    link.symlink_to(file)
    write_private(link, b"newer")
    assert (link.is_symlink(), file.read_bytes()) == (True, b"newer")
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_private(pipe, b"through the pipe")
    assert os.read(reader, 100) == b"through the pipe"
    os.close(reader)
    assert pipe.is_fifo()
    assert list(tmp_path.glob("*.partial")) == []
