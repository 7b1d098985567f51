"""A whole database is copied to the other kind, is the same there, and the bot goes on."""

import asyncio
import sqlite3
import subprocess
import sys
from datetime import UTC, datetime

import pytest
from sqlalchemy import create_engine, inspect, text

from botservice import (
    AgentContext,
    AgentService,
    ApprovalPending,
    Attachment,
    Author,
    FunctionsBasedAgent,
    ScriptedChatLLM,
    Storage,
    ToolCall,
    tool,
)
from botservice.background.queries import ensure_state
from botservice.core.errors import DatabaseInUse, SchemaMismatch, SettingsError, StorageError
from botservice.history.note_queries import insert_notes
from botservice.history.notes import Note, StoredNote
from botservice.people.fact_keeping import keep_fact
from botservice.storage.copying import copy_database
from botservice.storage.schema import migrate
from botservice.storage.url import DatabaseUrl

NOW = datetime(2026, 3, 1, tzinfo=UTC)
KEY = "a key of a test " * 3
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20
KEYS = {"transport": "test", "chat_id": "1"}
ran = []


@tool(needs_approval=True)
async def pay(amount: int) -> str:
    """Pay."""
    ran.append(amount)
    return "paid"


def service_of(storage, *replies):
    return AgentService(FunctionsBasedAgent(tools=[pay], llm=ScriptedChatLLM(list(replies))), storage)


def note(connection, context_id, author):
    """Keep a fact about a person, and a note of their chat."""
    assert keep_fact(connection, context_id, author, "asked", "Question", NOW).source_message_id
    ensure_state(connection, context_id)
    insert_notes(connection, context_id, [StoredNote(Note("Ann asked.", NOW, (1,)), 1, 2, 4, 0, 1)])


async def fill(url, chats=3):
    async with Storage.open(url, encryption_key=KEY) as storage:
        for number in range(chats):
            context = await AgentContext.get_or_create(storage, {"transport": "test", "chat_id": str(number)})
            context.metadata["lone"] = "\ud800 \0 ü"
            files = [Attachment("image/png", "p.png", data=PICTURE + str(number).encode())]
            author = Author("telegram", str(number), "Ann")
            await service_of(storage, f"Answer {number}").prompt(
                context, f"Question {number} 漢字 \0", author=author, attachments=files
            )
            await storage.write(lambda connection, who=author, where=context.id: note(connection, where, who))
        context = await AgentContext.get_or_create(storage, KEYS)
        with pytest.raises(ApprovalPending):
            await service_of(storage, ToolCall("", "pay", {"amount": 5})).prompt(context, "Pay 5")


@pytest.fixture(params=["sqlite", "postgres"])
def source(request, sqlite_url, postgres_url):
    return {"sqlite": sqlite_url, "postgres": postgres_url}[request.param]


@pytest.fixture
def target(source, own_postgres_url, tmp_path):
    return f"sqlite:///{tmp_path}/copy.db" if source.startswith("postgres") else own_postgres_url


async def test_everything_is_there_and_the_bot_goes_on_where_it_was(source, target):
    await fill(source)
    copied = copy_database(source, target)
    assert copied.rows["messages"] == 7
    assert copied.rows["pending_calls"] == 1
    assert (copied.rows["facts"], copied.rows["notes"]) == (3, 3)
    ran.clear()
    async with Storage.open(target, encryption_key=KEY) as storage:
        context = await AgentContext.get_or_create(storage, KEYS)
        first = (await context.chat_history.messages())[0]
        assert first.text.startswith("Question 1 漢字")
        assert first.attachments[0].data == PICTURE + b"1"
        assert context.metadata == {"lone": "\ud800 \0 ü"}
        service = service_of(storage, "Done.", "Next.")
        await service.decide(context, 1)
        assert (await (await service.resume(context)).finish()).text == "Done."
        assert ran == [5]
        assert (await service.prompt(context, "And?")).text == "Next."
        fresh = await AgentContext.get_or_create(storage, {"chat_id": "new"})
        assert fresh.id == 4
        counts = await storage.read(
            lambda c: c.execute(text("SELECT id, message_count FROM contexts ORDER BY id")).all()
        )
    assert [tuple(row) for row in counts] == [(1, 2), (2, 6), (3, 2), (4, 0)]


async def test_there_and_back_again_is_the_same(sqlite_url, own_postgres_url, tmp_path):
    await fill(sqlite_url)
    copy_database(sqlite_url, own_postgres_url)
    back = f"sqlite:///{tmp_path}/back.db"
    copied = copy_database(own_postgres_url, back)
    assert copied.rows == copy_database(sqlite_url, f"sqlite:///{tmp_path}/beside.db").rows


class Cut(Exception):
    pass


async def test_a_copy_that_was_cut_off_goes_on(source, target):
    await fill(source, chats=5)
    for after in ("messages", "turns", "steps"):

        def cut(done, total, note, after=after):
            if note == after:
                raise Cut

        with pytest.raises(Cut):
            copy_database(source, target, cut)
    assert copy_database(source, target).rows["messages"] == 11
    with pytest.raises(StorageError, match="the target is not empty"):
        copy_database(source, target)


async def test_nothing_works_on_a_part_of_a_copy(source, target, tmp_path):
    await fill(source, chats=2)

    def cut(_done, _total, note):
        if note == "messages":
            raise Cut

    with pytest.raises(Cut):
        copy_database(source, target, cut)
    for migrates in (True, False):
        with pytest.raises(SchemaMismatch, match="part of a copy: run the same `botservice copy` again"):
            async with Storage.open(target, migrate=migrates):
                pass
    with pytest.raises(SchemaMismatch, match="part of a copy"):
        copy_database(target, f"sqlite:///{tmp_path}/third.db")
    copy_database(source, target)
    async with Storage.open(target, encryption_key=KEY):
        pass


async def test_a_target_with_something_in_it_stays_as_it_is(source, target):
    await fill(source, chats=1)
    migrate(DatabaseUrl.parse(target))
    async with Storage.open(target) as storage:
        await AgentContext.get_or_create(storage, {"chat_id": "kept"})
    with pytest.raises(StorageError, match="not empty, there are rows in contexts"):
        copy_database(source, target)
    async with Storage.open(target) as storage:
        assert (await AgentContext.get_or_create(storage, {"chat_id": "kept"})).id == 1


WORKS = """
import asyncio, sys
from botservice import Storage

async def main():
    async with Storage.open(sys.argv[1]) as storage:
        with storage.claims.working():
            print("works", flush=True)
            await asyncio.to_thread(sys.stdin.read)

asyncio.run(main())
"""


def test_nothing_is_copied_while_a_service_is_there(source, target):
    asyncio.run(fill(source, chats=1))
    command = [sys.executable, "-c", WORKS, source]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as working:
        assert working.stdout.readline() == "works\n"
        with pytest.raises(DatabaseInUse):
            copy_database(source, target)
        working.stdin.close()
    assert copy_database(source, target).rows["messages"] == 3


def say_more(url, messages):
    """Have the people of all chats say as many more messages."""
    with sqlite3.connect(DatabaseUrl.parse(url).path) as database:
        database.execute(
            "WITH RECURSIVE numbers (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM numbers WHERE n < ? - 1) "
            "INSERT INTO messages "
            "(context_id, position, role, text, created_at, author_platform, author_id, is_all_own) "
            "SELECT n % chats + 1, 1000 + n, 'user', 'Message ' || n || ' äöü', n, 'telegram', n % chats, n % 2 "
            "FROM numbers, (SELECT count(*) AS chats FROM contexts)",
            (messages,),
        )
    database.close()


def find_differences(url, other):
    """Return in which tables two files differ, compared by SQLite itself."""
    with sqlite3.connect(DatabaseUrl.parse(url).path) as database:
        database.execute("ATTACH ? AS other", (str(DatabaseUrl.parse(other).path),))
        found = database.execute(
            "SELECT name FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
        )
        tables = [name for (name,) in found]
        rows = {
            table: [
                database.execute(f"SELECT count(*) FROM (SELECT * FROM {one} EXCEPT SELECT * FROM {two})").fetchone()[0]
                for one, two in ((f"main.{table}", f"other.{table}"), (f"other.{table}", f"main.{table}"))
            ]
            for table in tables
        }
    database.close()
    assert len(tables) > 50
    return {table for table, counts in rows.items() if any(counts)}


def run_copy(source, target):
    return subprocess.run(
        [sys.executable, "-m", "botservice", "copy", source, target],
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_hundred_thousand_messages_go_there_and_back_although_the_copy_is_killed(
    sqlite_url, own_postgres_url, tmp_path
):
    asyncio.run(fill(sqlite_url, chats=50))
    say_more(sqlite_url, 100_000)
    engine = create_engine(DatabaseUrl.parse(own_postgres_url).url)
    command = [sys.executable, "-m", "botservice", "copy", sqlite_url, own_postgres_url]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as copying:
        while copying.poll() is None:
            with engine.connect() as connection:
                if inspect(connection).has_table("messages") and connection.scalar(
                    text("SELECT 1 FROM messages LIMIT 1")
                ):
                    copying.kill()
    with engine.connect() as connection:
        assert inspect(connection).has_table("botservice_copy"), "it was cut off in the middle"
    engine.dispose()
    back = f"sqlite:///{tmp_path}/back.db"
    for source, target in ((sqlite_url, own_postgres_url), (own_postgres_url, back)):
        done = run_copy(source, target)
        assert done.returncode == 0, done.stderr
        assert "100,101 messages, 101 files" in done.stdout
        assert "nothing differs" in done.stdout
    assert find_differences(sqlite_url, back) == set()


async def test_what_changed_meanwhile_is_noticed(source, target):
    await fill(source)
    where = DatabaseUrl.parse(source)

    def meddle(done, total, note):
        if note == "comparing access_invitations":
            engine = create_engine(where.url)
            with engine.begin() as connection:
                connection.execute(text("UPDATE messages SET text = 'other' WHERE id = 1"))
            engine.dispose()

    with pytest.raises(StorageError, match="messages differs"):
        copy_database(source, target, meddle)


def test_wrong_addresses_are_named(tmp_path):
    with pytest.raises(SettingsError, match="the same database"):
        copy_database(f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/a.db")
    with pytest.raises(SettingsError, match="there is no database at"):
        copy_database(f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db")
    with pytest.raises(SettingsError, match="in memory"):
        copy_database("sqlite://", f"sqlite:///{tmp_path}/b.db")
    (tmp_path / "a.db").touch()
    with pytest.raises(SchemaMismatch, match="no tables yet"):
        copy_database(f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db")
