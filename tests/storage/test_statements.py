"""Statements that are compiled once: what they give is what SQLAlchemy gives."""

import asyncio
import contextlib
from datetime import UTC, datetime

import pytest
from sqlalchemy import Text, bindparam, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError
from standins.patience import PATIENT

from botservice import Storage
from botservice.core.errors import StorageError, StorageUnavailable
from botservice.storage.postgres_pipelines import queue_of
from botservice.storage.statements import _prepare, execute, execute_many
from botservice.storage.tables.conversations import contexts

NOW = datetime(2024, 5, 17, 12, 30, 15, 123456, tzinfo=UTC)
INSERT = insert(contexts)
INSERT_RETURNING = insert(contexts).returning(contexts.c.id, contexts.c.created_at)
UPDATE = update(contexts).where(contexts.c.id == bindparam("context"))
COUNT_UP = UPDATE.values(last_position=contexts.c.last_position + 1)
DELETE = delete(contexts).where(contexts.c.key_hash.in_(bindparam("hashes", expanding=True)))
BY_HASH = select(contexts).where(contexts.c.key_hash.in_(bindparam("hashes", expanding=True))).order_by(contexts.c.id)
LENGTH = select(func.length(bindparam("text", type_=Text)))
PATIENCE_SECONDS = 60
FIRST = select(contexts).where(contexts.c.last_position >= 0).order_by(contexts.c.id).limit(1)


def row(name):
    return {"key_hash": name, "context_keys": {"chat": name}, "metadata": {"a": [1, None]}, "created_at": NOW}


async def test_rows_are_the_ones_that_sqlalchemy_gives(storage):
    def write(connection):
        execute_many(connection, INSERT, [row("one"), row("two")])
        new = execute(connection, INSERT_RETURNING, row("three")).all()
        assert [(each.id, each.created_at) for each in new] == [(3, NOW)]

    await storage.write(write)

    def compare(connection):
        sought = {"hashes": ["three", "one"]}
        rows = execute(connection, BY_HASH, sought).all()
        assert [each._asdict() for each in rows] == [
            dict(each._mapping) for each in connection.execute(BY_HASH, sought)
        ]
        assert execute(connection, FIRST, {}).one_or_none().context_keys == {"chat": "one"}
        return rows

    assert [each.key_hash for each in await storage.read(compare)] == ["one", "three"]


async def test_a_list_may_have_any_length(storage):
    await storage.write(lambda connection: execute_many(connection, INSERT, [row("one"), row("two")]))

    def find(connection):
        return [
            [each.key_hash for each in execute(connection, BY_HASH, {"hashes": hashes}).all()]
            for hashes in ([], ["one"], ["two", "one", "none"], ["two"])
        ]

    assert await storage.read(find) == [[], ["one"], ["one", "two"], ["two"]]


async def test_lists_of_many_lengths_share_a_few_compiled_statements(sqlite_storage):
    statement = select(contexts.c.key_hash).where(contexts.c.key_hash.in_(bindparam("hashes", expanding=True)))
    await sqlite_storage.write(lambda connection: execute(connection, INSERT, row("h7")))
    texts = set()

    def find(connection):
        for length in range(1, 101):
            texts.add(_prepare(statement, connection.dialect).compiled({"hashes": [""] * length}).text)
            found = execute(connection, statement, {"hashes": [f"h{number}" for number in range(length)]}).all()
            assert [each.key_hash for each in found] == (["h7"] if length > 7 else [])

    await sqlite_storage.read(find)
    assert len(texts) == 8


async def test_one_statement_takes_values_for_different_columns(storage):
    def write(connection):
        context = execute(connection, INSERT_RETURNING, row("one")).scalar_one()
        execute(connection, UPDATE, {"context": context, "metadata": {"b": 2}})
        execute(connection, UPDATE, {"context": context, "key_hash": "1"})
        execute(connection, COUNT_UP, {"context": context, "deletion_version": 5})
        execute(connection, UPDATE, {"context": 77, "key_hash": "1"})

    await storage.write(write)
    found = await storage.read(lambda connection: execute(connection, FIRST, {}).one_or_none())
    assert (found.metadata, found.key_hash, found.last_position, found.deletion_version) == ({"b": 2}, "1", 1, 5)


async def test_nothing_found_is_none(storage):
    def find(connection):
        return [execute(connection, FIRST, {}).one_or_none(), execute(connection, FIRST, {}).scalar_one_or_none()]

    assert await storage.read(find) == [None, None]
    assert await storage.write(lambda connection: execute(connection, DELETE, {"hashes": ["a"]}).all()) == []


async def test_errors_are_those_of_sqlalchemy_without_anybodys_text(storage):
    def write_twice(connection):
        execute(connection, INSERT, row("secret"))
        with pytest.raises(IntegrityError) as told, connection.begin_nested():
            execute(connection, INSERT_RETURNING, row("secret")).all()
        return told.value

    error = await storage.write(write_twice)
    assert not error.connection_invalidated
    assert "chat" not in str(error)


async def test_a_connection_that_is_gone_counts_as_gone(postgres_database, postgres_url):
    _, engine = postgres_database
    async with Storage.open(postgres_url, limits=PATIENT) as storage:
        pid = await storage.write(lambda connection: connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())
        with engine.connect() as other:
            other.exec_driver_sql(f"SELECT pg_terminate_backend({int(pid)})")
        with pytest.raises(StorageUnavailable):
            await storage.write(lambda connection: execute(connection, FIRST, {}).all())
        assert await storage.write(lambda connection: execute(connection, FIRST, {}).all()) == []


@pytest.mark.parametrize("megabytes", [1, 10])
@pytest.mark.slow
async def test_what_is_larger_than_a_socket_takes_at_once_is_sent_to_its_end(storage, megabytes):
    def measure(connection):
        return [execute(connection, LENGTH, {"text": "x" * 1_000_000 * megabytes}) for _ in range(3)]

    def measure_all(connection):
        return [rows.scalar_one() for rows in measure(connection)]

    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await storage.write(measure_all) == [1_000_000 * megabytes] * 3
        assert await storage.read(measure_all) == [1_000_000 * megabytes] * 3
        await storage.write(measure)  # nobody looks at the rows: the commit sends them


TOUCH = update(contexts).where(contexts.c.id.in_(bindparam("ids", expanding=True))).values(last_position=1)
HASHES = select(contexts.c.key_hash).order_by(contexts.c.key_hash)


async def hashes(storage):
    return await storage.read(lambda connection: [each.key_hash for each in execute(connection, HASHES, {}).all()])


async def test_a_connection_keeps_nothing_of_the_rows_that_were_read(postgres_storage):
    def read(connection):
        assert execute(connection, LENGTH, {"text": "a" * 1_000_000}).scalar_one() == 1_000_000
        assert queue_of(connection)._transformer.pgresult is None
        assert execute(connection, LENGTH, {"text": "b"}).scalar_one() == 1

    await postgres_storage.read(read)


@pytest.mark.slow
async def test_nothing_of_a_transaction_is_kept_in_which_a_statement_could_not_even_be_sent(postgres_storage):
    def add(name):
        return lambda connection: execute(connection, INSERT, row(name)).all()

    def ask_too_much(connection):
        execute(connection, INSERT, row("one"))
        execute(connection, TOUCH, {"ids": list(range(70_000))})  # more parameters than there may be
        execute(connection, INSERT, row("two"))

    good, bad, late = await asyncio.gather(
        postgres_storage.write(add("good")),
        postgres_storage.write(ask_too_much),
        postgres_storage.write(add("late")),
        return_exceptions=True,
    )
    assert (good, late) == ([], [])
    assert isinstance(bad, StorageError)
    assert await hashes(postgres_storage) == ["good", "late"]


async def test_what_was_to_be_prepared_in_a_transaction_that_failed_is_not_taken_for_prepared(postgres_storage):
    for _ in range(5):  # with the next one it is prepared
        await postgres_storage.write(lambda connection: execute(connection, HASHES, {}).all())

    def fail_quietly(connection):
        with contextlib.suppress(Exception):
            for name in ("one", "one"):
                execute(connection, INSERT, row(name))
            execute(connection, HASHES, {}).all()

    with pytest.raises(StorageError):
        await postgres_storage.write(fail_quietly)
    assert await postgres_storage.write(lambda connection: execute(connection, HASHES, {}).all()) == []
