"""Opening a database, and what is said where it cannot be."""

import asyncio
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import make_url
from storage.writing import add, names

from botservice import Storage
from botservice.core.errors import BotServiceError, SchemaMismatch, SettingsError, StorageUnavailable
from botservice.storage.sqlite_files import make_private
from botservice.storage.url import DatabaseUrl


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sqlite:///bot.db", f"sqlite:///{Path.cwd() / 'bot.db'}"),
        ("sqlite:////data/bot.db", "sqlite:////data/bot.db"),
        ("sqlite+aiosqlite:////data/my%20bot.db", "sqlite:////data/my bot.db"),
        ("postgres://me:secret@db.example:5433/bot", "postgresql://me:***@db.example:5433/bot"),
        ("postgresql+asyncpg://me:secret@db.example/bot?sslmode=require", "postgresql://me:***@db.example/bot"),
        ("postgresql://db.example/bot?user=me&password=secret", "postgresql://db.example/bot"),
    ],
)
def test_every_spelling_of_an_address_is_understood_and_no_password_shown(text, shown):
    assert DatabaseUrl.parse(text).name == shown


def test_the_folder_of_a_socket_stands_where_libpq_takes_it():
    by_query = DatabaseUrl.parse("postgresql://me@/bot?host=/run/postgres")
    assert DatabaseUrl.parse("postgresql://me@%2Frun%2Fpostgres/bot").url == by_query.url
    assert by_query.url.query["host"] == "/run/postgres"


@pytest.mark.parametrize("text", ["sqlite://", "sqlite:///:memory:"])
async def test_a_database_in_memory_lasts_as_long_as_its_storage(text):
    async with Storage.open(text) as storage:
        await storage.write(add("a"))
        assert await names(storage) == ["a"]
        folder = storage.where.path.parent
    assert not folder.exists()
    async with Storage.open(text) as storage:
        assert await names(storage) == []


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("", "must be sqlite:///file.db or postgresql://"),
        ("bot.db", "must be sqlite:///file.db"),
        ("mysql://me:hunter2@db/bot", "mysql is not supported"),
        ("sqlite://bot.db", "three"),
        ("postgres://me:hunter2@x@db/bot", "%40"),
        ("postgres://me:hunter2/x@db:port/bot", "must be"),
    ],
)
def test_a_wrong_address_is_refused_with_what_it_must_be(text, remedy):
    with pytest.raises(SettingsError, match=remedy) as caught:
        DatabaseUrl.parse(text)
    assert "hunter2" not in str(caught.value)


async def refusal(url, **options):
    with pytest.raises(BotServiceError) as caught:
        await Storage.open(url, **options)
    return caught.value


async def test_a_file_in_a_folder_that_does_not_exist_is_refused(tmp_path):
    error = await refusal(f"sqlite:///{tmp_path}/nowhere/bot.db")
    assert isinstance(error, StorageUnavailable)
    assert "its folder does not exist" in str(error)


async def test_a_folder_that_is_taken_for_a_database_stays_as_open_as_it_was(tmp_path):
    tmp_path.chmod(0o755)
    with pytest.raises(StorageUnavailable):
        await Storage.open(f"sqlite:///{tmp_path}")
    assert tmp_path.stat().st_mode & 0o777 == 0o755


async def test_a_folder_is_no_database(tmp_path):
    assert "cannot open the database" in str(await refusal(f"sqlite:///{tmp_path}"))


async def test_a_file_that_is_no_database_is_refused_and_left_as_it_is(tmp_path):
    file = tmp_path / "letter.txt"
    file.write_text("Dear Sir or Madam, " * 100)
    assert "not a database" in str(await refusal(f"sqlite:///{file}"))
    assert file.read_text() == "Dear Sir or Madam, " * 100


async def test_a_file_that_is_no_database_stays_as_open_as_it_was(tmp_path):
    file = tmp_path / "letter.txt"
    file.write_text("Dear Sir or Madam, " * 100)
    file.chmod(0o664)
    assert "not a database" in str(await refusal(f"sqlite:///{file}"))
    with pytest.raises(StorageUnavailable, match="not a database"):
        Storage.open(f"sqlite:///{file}").migrate()
    assert file.stat().st_mode & 0o777 == 0o664


def test_what_lies_beside_a_file_that_is_no_database_stays_as_open_as_it_was(tmp_path):
    files = [tmp_path / f"letter.txt{ending}" for ending in ("", "-wal", "-shm")]
    for file in files:
        file.write_text("Dear Sir or Madam, ")
        file.chmod(0o664)
    files[0].chmod(0o600)
    make_private(files[0])
    assert [file.stat().st_mode & 0o777 for file in files] == [0o600, 0o664, 0o664]


async def test_an_empty_file_becomes_a_database_that_its_owner_alone_reads(tmp_path):
    file = tmp_path / "bot.db"
    file.touch()
    file.chmod(0o664)
    async with Storage.open(f"sqlite:///{file}"):
        assert file.stat().st_mode & 0o777 == 0o600


def locks_on(file):
    """Return what is held locked of a file, as Linux lists it."""
    locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    return {tuple(lock[1:]) for lock in locks if lock[-3].endswith(f":{file.stat().st_ino}")}


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="only Linux lists locks")
async def test_closing_a_database_to_others_gives_up_no_lock_that_this_process_has_on_it(tmp_path):
    file = tmp_path / "bot.db"
    async with Storage.open(f"sqlite:///{file}"):
        held = locks_on(file)
        assert held
        file.chmod(0o664)
        async with Storage.open(f"sqlite:///{file}"):
            assert file.stat().st_mode & 0o777 == 0o600
        assert locks_on(file) == held


async def test_looking_at_a_file_that_does_not_exist_does_not_make_it(tmp_path):
    assert isinstance(await refusal(f"sqlite:///{tmp_path / 'bot.db'}", migrate=False), SchemaMismatch)
    assert list(tmp_path.iterdir()) == []


async def test_a_postgres_that_is_not_there_is_named_without_its_password():
    error = await refusal("postgresql://me:hunter2@127.0.0.1:1/bot?password=hunter2")
    assert isinstance(error, StorageUnavailable)
    assert "postgresql://me:***@127.0.0.1:1/bot" in str(error)
    assert "hunter2" not in str(error)


async def test_a_postgres_database_that_does_not_exist_is_named(postgres_uri):
    url = make_url(postgres_uri).set(database="nowhere").render_as_string(hide_password=False)
    assert 'database "nowhere" does not exist' in str(await refusal(url))


async def test_an_option_that_postgres_does_not_know_is_named(postgres_uri):
    url = make_url(postgres_uri).update_query_dict({"pgbouncer": "true"}).render_as_string(hide_password=False)
    error = await refusal(url)
    assert isinstance(error, StorageUnavailable)
    assert "pgbouncer" in str(error)


AS_NOBODY = """
import asyncio, os, sys
from botservice import Storage

async def open_it(url):
    async with Storage.open(url):
        pass

asyncio.run(open_it("sqlite://"))  # imports everything, also where another user may not read it
if os.geteuid() == 0:
    os.setgid(65534), os.setuid(65534)
try:
    asyncio.run(open_it(sys.argv[1]))
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""


@pytest.fixture
def public_folder(sqlite_template, tmp_path_factory):
    """A folder that every user may enter, with a database that only its owner may write."""
    folder = Path("/tmp") / f"botservice-readable-{os.getpid()}"
    folder.mkdir(mode=0o755)
    shutil.copyfile(sqlite_template, folder / "bot.db")
    (folder / "bot.db").chmod(0o444)
    folder.chmod(0o555)
    yield folder
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.slow
def test_a_database_that_cannot_be_written_is_refused_when_it_is_opened(public_folder):
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, f"sqlite:///{public_folder / 'bot.db'}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.startswith("StorageUnavailable: "), (done.stdout, done.stderr)
    assert "readonly" in done.stdout or "unable to open" in done.stdout


@pytest.mark.slow
def test_a_database_that_cannot_be_written_is_refused_also_where_files_may_be_made_beside_it(public_folder):
    public_folder.chmod(0o777)
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, f"sqlite:///{public_folder / 'bot.db'}"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "readonly" in done.stdout, (done.stdout, done.stderr)
    assert done.stdout.startswith("StorageUnavailable: cannot open the database sqlite:////tmp/botservice-readable")


@pytest.mark.slow
async def test_many_new_files_can_be_opened_at_the_same_moment(tmp_path):
    async def use(number):
        async with Storage.open(f"sqlite:///{tmp_path / str(number)}.db") as storage:
            await storage.ping()
            return storage.name

    assert len(set(await asyncio.gather(*map(use, range(6))))) == 6
