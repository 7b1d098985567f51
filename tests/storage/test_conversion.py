"""A database of 0.17.0 becomes one of this release: once, whole, and with the old processes stopped."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest
from sqlalchemy import create_engine, func, select, text
from storage.old_database import engine_of, make_service, put_many

from botservice import AgentContext, Storage
from botservice.core.errors import DatabaseInUse, SchemaMismatch
from botservice.storage.conversion import OLD_VERSION
from botservice.storage.limits import StorageLimits
from botservice.storage.schema import SCHEMA_VERSION, migrate, read_version
from botservice.storage.tables.columns import metadata
from botservice.storage.tables.conversations import messages
from botservice.storage.tables.waiting import pending_calls
from botservice.storage.url import DatabaseUrl
from tests.storage.test_schema import catalogue

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

ARCHIVE = Path(__file__).parent.parent / "data" / "releases" / "0.17.0.tar.xz"
SCRIPT = Path(__file__).with_name("old_database.py")
# Python 3.11 knows it since 3.11.4.
SAFELY = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
MANY = 100_000
OLDER = '[in reply to you: "Rex is a dog"]\\nis he?'
KILLED = """
import os, sys
from botservice.storage import conversion
from botservice.storage.schema import migrate
from botservice.storage.url import DatabaseUrl
conversion.TURNS_AT_ONCE = 2
told = []
def progress(*_):
    told.append(1)
    if len(told) == int(sys.argv[2]):
        os._exit(9)
migrate(DatabaseUrl.parse(sys.argv[1]), progress=progress)
"""


@pytest.fixture(scope="module")
def old_release(tmp_path_factory):
    """The folder of 0.17.0's program."""
    folder = tmp_path_factory.mktemp("release")
    with tarfile.open(ARCHIVE) as opened:
        opened.extractall(folder, **SAFELY)
    return folder


@pytest.fixture(scope="module")
def old_file(old_release, tmp_path_factory):
    """An SQLite file that 0.17.0 has worked with."""
    path = tmp_path_factory.mktemp("old") / "bot.db"
    run(old_release, "fill", f"sqlite:///{path}")
    return path


@pytest.fixture(params=["sqlite", "postgres"])
def old_url(request, old_release, old_file, tmp_path):
    """The address of a database of 0.17.0 with something in every table."""
    if request.param == "sqlite":
        shutil.copyfile(old_file, tmp_path / "bot.db")
        return f"sqlite:///{tmp_path / 'bot.db'}"
    url = request.getfixturevalue("own_postgres_url")
    run(old_release, "fill", url)
    return url


def start(release, command, url, **options):
    place = {} if release is None else {"PYTHONPATH": str(release)}
    return subprocess.Popen([sys.executable, SCRIPT, command, url], text=True, env={**os.environ, **place}, **options)


def run(release, command, url):
    process = start(release, command, url, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    shown, told = process.communicate()
    assert process.returncode == 0, told
    return shown


def refusal(release, url):
    """Return why a release does not work on a database."""
    process = start(release, "show", url, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    told = process.communicate()[1]
    assert process.returncode != 0
    return told.splitlines()[-1]


def without_newer(shown):
    """Return an object of what is shown without the field that came after 1.1.0, which converted rows leave empty."""
    assert shown.get("unasked_by") is None
    return {name: value for name, value in shown.items() if name != "unasked_by"}


def see_the_same(before, after):
    """See that nothing but what was stored in one with a quote differs."""
    before, after = json.loads(before), json.loads(after, object_hook=without_newer)
    assert before["steps"] == after["steps"]
    assert sum(map(len, before["steps"])) == 29
    assert len(before["steps"][0][-1]["model_input_messages"]) > 5
    assert before["tables"].keys() <= after["tables"].keys()  # and those that came after it
    differing = {name for name, rows in before["tables"].items() if rows != after["tables"][name]}
    grown = {"reminders", "pending_calls"}  # which have a column more since 0102 and 0106
    assert differing == {"messages", "message_references"} | grown
    assert all(len(before["tables"][name]) == len(after["tables"][name]) for name in grown)
    [gone] = set(before["tables"]["messages"]) - set(after["tables"]["messages"])
    [new] = set(after["tables"]["messages"]) - set(before["tables"]["messages"])
    assert OLDER in gone
    assert "'is he?'" in new
    assert '"Rex is a dog"' in new
    assert len(after["tables"]["message_references"]) == len(before["tables"]["message_references"]) + 1


def test_it_is_converted_whole(old_release, old_url, tmp_path):
    before = run(old_release, "show", old_url)
    assert migrate(DatabaseUrl.parse(old_url)) == SCHEMA_VERSION
    see_the_same(before, run(None, "show", old_url))
    assert "newer than 0028" in refusal(old_release, old_url)
    converted, created = engine_of(old_url), create_engine(f"sqlite:///{tmp_path / 'created.db'}")
    if converted.dialect.name == "sqlite":
        metadata.create_all(created)
        expected = catalogue(created)
        found = {key: sql for key, sql in catalogue(converted).items() if "alembic" not in str(key)}
        assert found == expected
    with converted.connect() as connection:
        assert connection.execute(text("SELECT version_num FROM botservice_version")).scalars().all() == [
            SCHEMA_VERSION
        ]
    converted.dispose()
    created.dispose()


def test_a_hundred_thousand_messages_are_converted_with_what_waits(old_url):
    engine = engine_of(old_url)
    with engine.begin() as connection:
        put_many(connection, MANY)
    assert migrate(DatabaseUrl.parse(old_url)) == SCHEMA_VERSION
    with engine.connect() as connection:
        of_many = messages.c.author_name == "Alice", messages.c.position > 0, messages.c.text.contains("and ")
        count = select(func.count()).select_from(messages)
        assert connection.execute(count).scalar_one() > MANY
        quoting = select(messages.c.text, messages.c.said_by_others).where(*of_many, messages.c.text.contains("?"))
        told = [row for row in connection.execute(quoting) if row.text.startswith("and ")]
        assert len(told) >= MANY // 100
        assert all("word " in row.said_by_others for row in told if row.text != "and is he?")
        assert connection.execute(count.where(messages.c.text.startswith("[in reply"))).scalar_one() == 0
        assert connection.execute(select(func.count()).select_from(pending_calls)).scalar_one() == 1
    engine.dispose()


async def test_a_call_that_waits_there_is_allowed_and_made_here(old_url):
    async with Storage.open(old_url, migrate=True) as storage:
        context = await AgentContext.get_or_create(storage, {"transport": "test", "chat_id": "3"})
        service = make_service(storage, ["Anna is paid"])
        number = await storage.read(lambda c: c.execute(select(pending_calls.c.id)).scalar_one())
        assert await service.decide(context, number, allow=True)
        run = await service.resume(context)
        assert (await run.finish()).text == "Anna is paid"
        alone = await AgentContext.get_or_create(storage, {"transport": "test", "chat_id": "1"})
        service = make_service(storage, ["he is in the park"])
        assert (await service.prompt(alone, "and now, where is Rex?", author="1")).text == "he is in the park"


def test_where_it_is_killed_it_is_refused_by_both_releases_and_goes_on_when_asked_again(old_release, old_url):
    before = run(old_release, "show", old_url)
    for number in (1, 3, 2):
        killed = subprocess.run([sys.executable, "-c", KILLED, old_url, str(number)], check=False)
        assert killed.returncode == 9
    engine = engine_of(old_url)
    with engine.connect() as connection:
        assert read_version(connection) == OLD_VERSION
    engine.dispose()
    assert "newer than 0028" in refusal(old_release, old_url)
    assert "run `botservice migrate`" in refusal(None, old_url)
    assert migrate(DatabaseUrl.parse(old_url)) == SCHEMA_VERSION
    see_the_same(before, run(None, "show", old_url))


def test_it_is_refused_while_a_process_of_0_17_0_works_there(old_release, old_url):
    with start(old_release, "hold", old_url, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holding:
        assert holding.stdout.readline() == "holds\n"
        with pytest.raises(DatabaseInUse, match=r"another process|stop every process of it"):
            migrate(DatabaseUrl.parse(old_url), StorageLimits(migration=0.0))
        engine = engine_of(old_url)
        with engine.connect() as connection:
            assert connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all() == [OLD_VERSION]
        engine.dispose()
        holding.stdin.close()
    assert migrate(DatabaseUrl.parse(old_url)) == SCHEMA_VERSION


def test_an_older_one_is_told_to_go_through_0_17_0(old_url):
    engine = engine_of(old_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '0027'"))
    engine.dispose()
    told = r"0027, of a release before 0\.17\.0: install botservice 0\.17\.0, run `botservice migrate` with it, then"
    with pytest.raises(SchemaMismatch, match=told):
        migrate(DatabaseUrl.parse(old_url))
    with pytest.raises(SchemaMismatch, match=told):
        asyncio.run(open_and_close(old_url))


async def open_and_close(url):
    async with Storage.open(url, migrate=False):
        pass
