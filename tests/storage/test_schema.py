"""The tables that the migrations make are the ones that the program knows, and they are made once."""

import asyncio
import contextlib
import re
import sqlite3
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import psutil
import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from crash.together import open_new, run_together
from sqlalchemy import create_engine, make_url, text

from botservice import AgentContext, Storage
from botservice.core.errors import DatabaseInUse, SchemaMismatch, StorageUnavailable
from botservice.storage.engines import create_writer_engine
from botservice.storage.limits import StorageLimits
from botservice.storage.postgres_replicas import LOCK_SPACE
from botservice.storage.schema import SCHEMA_VERSION, read_oldest_compatible
from botservice.storage.schema import migrate as migrate_tables
from botservice.storage.tables.columns import metadata
from botservice.storage.tables.conversations import schema_compatibility
from botservice.storage.url import DatabaseUrl

CATALOGUE = """
    SELECT 'column', table_name || '.' || column_name, concat_ws(' ', udt_name, is_nullable, column_default)
    FROM information_schema.columns WHERE table_schema = 'public'
    UNION ALL SELECT 'index', indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
    UNION ALL SELECT 'constraint', conrelid::regclass || '.' || conname, pg_get_constraintdef(oid)
    FROM pg_constraint WHERE connamespace = 'public'::regnamespace
"""


def engine_of(url):
    url = make_url(url)
    return create_engine(url.set(drivername="postgresql+psycopg") if url.drivername == "postgresql" else url)


def catalogue(engine):
    """Return every definition in a database, by its kind and name."""
    with engine.connect() as connection:
        if engine.dialect.name == "postgresql":
            return {
                (kind, name): definition
                for kind, name, definition in connection.execute(text(CATALOGUE))
                if "botservice_version" not in name
            }
        rows = connection.execute(text("SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"))
        return {(kind, name): _parts(sql) for kind, name, sql in rows if name != "botservice_version" and sql}


def _parts(sql):
    """Return the columns and constraints of a statement, in whatever order it names them."""
    flat = re.sub(r"\s+", " ", sql)
    return sorted(part.strip(" )") for part in re.split(r"[(,] (?=\"?\w+\"? [A-Z]|CONSTRAINT)|,", flat))


def test_the_migrations_make_the_tables_that_the_program_knows(storage_url):
    engine = engine_of(storage_url)
    with engine.connect() as connection:
        context = MigrationContext.configure(
            connection,
            opts={"compare_type": True, "compare_server_default": True, "version_table": "botservice_version"},
        )
        assert compare_metadata(context, metadata) == []
    engine.dispose()


def test_sqlite_has_the_same_defaults_keys_and_partial_indexes(sqlite_url, tmp_path):
    migrated, created = engine_of(sqlite_url), create_engine(f"sqlite:///{tmp_path / 'created.db'}")
    metadata.create_all(created)
    assert catalogue(migrated) == catalogue(created)
    migrated.dispose()
    created.dispose()


def test_postgres_has_the_same_defaults_keys_and_partial_indexes(postgres_url, own_postgres_url):
    migrated, created = engine_of(postgres_url), engine_of(own_postgres_url)
    metadata.create_all(created)
    found = catalogue(migrated)
    assert found == catalogue(created)
    assert sum("WHERE" in definition for definition in found.values()) >= 4
    migrated.dispose()
    created.dispose()


def test_the_version_that_the_program_names_is_the_newest_migration():
    from pathlib import Path

    from botservice.storage.migrations import versions

    files = sorted(Path(versions.__file__).parent.glob("[0-9]*.py"))
    assert files[-1].name.startswith(f"{SCHEMA_VERSION}_")


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.slow
async def test_processes_that_open_an_empty_database_at_once_migrate_it_once(kind, tmp_path, request):
    url = f"sqlite:///{tmp_path / 'new.db'}" if kind == "sqlite" else request.getfixturevalue("own_postgres_url")
    await run_together(2, open_new, url)
    with_tables = engine_of(url)
    with with_tables.connect() as connection:
        assert connection.execute(text("SELECT version_num FROM botservice_version")).scalars().all() == [
            SCHEMA_VERSION
        ]
        assert connection.execute(text("SELECT count(*) FROM contexts")).scalar_one() == 1
    with_tables.dispose()


def test_a_new_file_is_opened_where_another_process_is_about_to_write_to_it(tmp_path):
    path = tmp_path / "new.db"
    engine = create_writer_engine(DatabaseUrl.parse(f"sqlite:///{path}"), StorageLimits(lock=60))

    def open_it():
        with engine.connect() as connection:
            return connection.exec_driver_sql("PRAGMA journal_mode").scalar_one()

    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("CREATE TABLE first (id)")
        other.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor() as threads:
            opening = threads.submit(open_it)
            while sum(each.path == str(path) for each in psutil.Process().open_files()) < 2 and not opening.done():
                time.sleep(0.001)
            other.execute("COMMIT")
            assert opening.result(60) == "wal"
    engine.dispose()


@pytest.mark.slow
async def test_a_migration_waits_for_who_reads_a_table_for_long_and_holds_nobody_up_meanwhile(own_postgres_url):
    where, engine = DatabaseUrl.parse(own_postgres_url), engine_of(own_postgres_url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE botservice_version (version_num VARCHAR(32) NOT NULL)"))
        connection.execute(text("CREATE TABLE contexts (id bigint)"))  # in the way until the reader goes
    with engine.connect() as reader:
        reader.execute(text("LOCK TABLE botservice_version IN ACCESS EXCLUSIVE MODE"))
        migrating = asyncio.create_task(asyncio.to_thread(migrate_tables, where))
        with engine.connect() as watcher:
            waits = text(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            for is_waiting in (1, 0):  # it waits, and then lets those behind it pass
                async with asyncio.timeout(60):
                    while watcher.execute(waits).scalar_one() != is_waiting:
                        watcher.rollback()
                        await asyncio.sleep(0.01)
        reader.execute(text("DROP TABLE contexts"))
        reader.commit()
    assert await asyncio.wait_for(migrating, 60) == SCHEMA_VERSION
    engine.dispose()


def test_a_migration_that_is_held_up_says_by_whom_and_to_try_again(own_postgres_url):
    engine = engine_of(own_postgres_url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE botservice_version (version_num VARCHAR(32) NOT NULL)"))
    with engine.connect() as reader:
        reader.execute(text("SET application_name = 'nightly backup'"))
        reader.execute(text("LOCK TABLE botservice_version IN ACCESS EXCLUSIVE MODE"))
        session = reader.scalar(text("SELECT pg_backend_pid()"))
        told = rf"session {session} of postgres \(nightly backup\), idle in transaction.*botservice migrate` again"
        with pytest.raises(StorageUnavailable, match=told):
            migrate_tables(DatabaseUrl.parse(own_postgres_url), StorageLimits(blocked_migration=0.0))
    engine.dispose()


async def test_a_migration_waits_for_another_one_and_says_for_which_session(own_postgres_url):
    engine, notes = engine_of(own_postgres_url), asyncio.Queue()
    loop = asyncio.get_running_loop()

    def progress(_done, _total, note=""):
        loop.call_soon_threadsafe(notes.put_nowait, note)

    with engine.connect() as other:
        session = other.scalar(text(f"SELECT pg_backend_pid() FROM pg_advisory_xact_lock({LOCK_SPACE}, 1)"))
        where = DatabaseUrl.parse(own_postgres_url)
        migrating = asyncio.create_task(asyncio.to_thread(migrate_tables, where, StorageLimits(), progress))
        assert f"waits for session {session} of postgres" in await asyncio.wait_for(notes.get(), 60)
    assert await asyncio.wait_for(migrating, 60) == SCHEMA_VERSION
    engine.dispose()


async def test_an_index_is_built_while_others_write(own_postgres_url):
    """Who waits to build it lets those behind it pass, however long another person has been writing."""
    where, engine = DatabaseUrl.parse(own_postgres_url), engine_of(own_postgres_url)
    await asyncio.to_thread(migrate_tables, where)
    insert_chat = text(
        "INSERT INTO contexts (key_hash, context_keys, metadata, created_at) VALUES (:name, '{}', '{}', 0)"
    )
    building = text(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock' "
        "AND query LIKE 'CREATE INDEX%'"
    )
    is_whole = text("SELECT indisvalid FROM pg_index WHERE indexrelid = 'ix_contexts_last_message_id'::regclass")
    with engine.begin() as connection:
        connection.execute(text("DROP INDEX ix_contexts_last_message_id"))
    with engine.connect() as writer, engine.connect() as other:
        writer.execute(insert_chat, {"name": "long"})
        migrating = asyncio.create_task(asyncio.to_thread(migrate_tables, where))
        async with asyncio.timeout(60):
            while not other.execute(building).scalar_one():
                other.rollback()
                await asyncio.sleep(0.01)
        other.rollback()
        other.execute(text("SET LOCAL lock_timeout = '5s'"))
        other.execute(insert_chat, {"name": "meanwhile"})
        other.commit()
        writer.commit()
        await asyncio.wait_for(migrating, 60)
        assert other.execute(is_whole).scalar_one()
    engine.dispose()


def set_version(url, version, oldest_compatible=None):
    engine = engine_of(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE botservice_version SET version_num = :version"), {"version": version})
        if oldest_compatible is not None:
            connection.execute(text("DELETE FROM schema_compatibility"))
            connection.execute(schema_compatibility.insert(), {"oldest_version": oldest_compatible})
    engine.dispose()


@pytest.mark.parametrize("migrate", [True, False])
async def test_a_database_that_is_too_new_is_refused_and_left_alone(storage_url, migrate):
    set_version(storage_url, "0999", oldest_compatible="0998")
    try:
        with pytest.raises(SchemaMismatch, match=r"0999, newer than .*install the newer botservice"):
            await Storage.open(storage_url, migrate=migrate)
    finally:
        set_version(storage_url, SCHEMA_VERSION, oldest_compatible="0100")


@pytest.mark.parametrize("migrate", [True, False])
async def test_a_newer_database_that_was_only_added_to_is_worked_on(storage_url, migrate):
    """A replica of this release may start again while the next one runs next to it, or after going back to this one."""
    set_version(storage_url, "0999", oldest_compatible=SCHEMA_VERSION)
    try:
        async with Storage.open(storage_url, migrate=migrate) as storage:
            context = await AgentContext.get_or_create(storage, {"chat_id": "1"})
            assert context.id == 1
        assert migrate_tables(DatabaseUrl.parse(storage_url)) == "0999", "nothing is taken back"
    finally:
        set_version(storage_url, SCHEMA_VERSION, oldest_compatible="0100")


async def test_the_tables_say_which_programs_work_on_them(own_postgres_url):
    async with Storage.open(own_postgres_url, migrate=True) as storage:
        assert await storage.read(read_oldest_compatible) == "0100"


async def test_a_reader_of_an_older_database_is_told_to_migrate_it(storage_url):
    set_version(storage_url, "0099")
    try:
        with pytest.raises(SchemaMismatch, match=r"0099, older than .*botservice migrate"):
            await Storage.open(storage_url, migrate=False)
    finally:
        set_version(storage_url, SCHEMA_VERSION)


async def test_an_empty_postgres_is_not_migrated_unasked(own_postgres_url):
    with pytest.raises(SchemaMismatch, match="no tables yet: run `botservice migrate`"):
        await Storage.open(own_postgres_url)


@pytest.mark.slow
async def test_an_older_file_is_not_migrated_under_a_worker(sqlite_url):
    limits = StorageLimits(migration=0.0)
    async with Storage.open(sqlite_url) as storage:
        with storage.claims.working():
            set_version(sqlite_url, "0099")
            code = (
                "import asyncio, sys; from botservice import Storage\n"
                "from botservice.storage.limits import StorageLimits\n"
                "async def main(): await Storage.open(sys.argv[1], limits=StorageLimits(migration=0.0))\n"
                "asyncio.run(main())"
            )
            other = await asyncio.create_subprocess_exec(
                sys.executable, "-c", code, sqlite_url, stderr=asyncio.subprocess.PIPE
            )
            _, told = await other.communicate()
    assert limits.migration == 0
    assert DatabaseInUse.__name__.encode() in told
    with sqlite3.connect(sqlite_url.removeprefix("sqlite:///")) as connection:
        assert connection.execute("SELECT version_num FROM botservice_version").fetchall() == [("0099",)]
    connection.close()
