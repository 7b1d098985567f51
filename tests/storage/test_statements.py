"""Statements as this program uses them: with lists, with values for different columns, of any size."""

import asyncio
import contextlib
from datetime import UTC, datetime

import pytest
from sqlalchemy import Text, bindparam, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError
from standins.patience import PATIENT

from botservice import Storage
from botservice.core.errors import StorageError, StorageUnavailable
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


async def test_a_list_may_have_any_length(storage):
    await storage.write(lambda connection: connection.execute(INSERT, [row("one"), row("two")]))

    def find(connection):
        return [
            [each.key_hash for each in connection.execute(BY_HASH, {"hashes": hashes}).all()]
            for hashes in ([], ["one"], ["two", "one", "none"], ["two"])
        ]

    assert await storage.read(find) == [[], ["one"], ["one", "two"], ["two"]]


async def test_one_statement_takes_values_for_different_columns(storage):
    def write(connection):
        context = connection.execute(INSERT_RETURNING, row("one")).scalar_one()
        connection.execute(UPDATE, {"context": context, "metadata": {"b": 2}})
        connection.execute(UPDATE, {"context": context, "key_hash": "1"})
        connection.execute(COUNT_UP, {"context": context, "deletion_version": 5})
        connection.execute(UPDATE, {"context": 77, "key_hash": "1"})

    await storage.write(write)
    found = await storage.read(lambda connection: connection.execute(FIRST).one_or_none())
    assert (found.metadata, found.key_hash, found.last_position, found.deletion_version) == ({"b": 2}, "1", 1, 5)


async def test_errors_are_those_of_sqlalchemy_without_anybodys_text(storage):
    def write_twice(connection):
        connection.execute(INSERT, row("secret"))
        with pytest.raises(IntegrityError) as told, connection.begin_nested():
            connection.execute(INSERT_RETURNING, row("secret")).all()
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
            await storage.write(lambda connection: connection.execute(FIRST).all())
        assert await storage.write(lambda connection: connection.execute(FIRST).all()) == []


@pytest.mark.parametrize("megabytes", [1, 10])
@pytest.mark.slow
async def test_what_is_larger_than_a_socket_takes_at_once_is_sent_to_its_end(storage, megabytes):
    def measure(connection):
        return [connection.execute(LENGTH, {"text": "x" * 1_000_000 * megabytes}) for _ in range(3)]

    def measure_all(connection):
        return [rows.scalar_one() for rows in measure(connection)]

    async with asyncio.timeout(PATIENCE_SECONDS):
        assert await storage.write(measure_all) == [1_000_000 * megabytes] * 3
        assert await storage.read(measure_all) == [1_000_000 * megabytes] * 3
        await storage.write(measure)  # nobody looks at the rows: the commit sends them


TOUCH = update(contexts).where(contexts.c.id.in_(bindparam("ids", expanding=True))).values(last_position=1)
HASHES = select(contexts.c.key_hash).order_by(contexts.c.key_hash)


async def hashes(storage):
    return await storage.read(lambda connection: [each.key_hash for each in connection.execute(HASHES).all()])


@pytest.mark.slow
async def test_nothing_of_a_transaction_is_kept_in_which_a_statement_could_not_even_be_sent(postgres_storage):
    def add(name):
        return lambda connection: connection.execute(INSERT, row(name)).all()

    def ask_too_much(connection):
        connection.execute(INSERT, row("one"))
        connection.execute(TOUCH, {"ids": list(range(70_000))})  # more parameters than there may be
        connection.execute(INSERT, row("two"))

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
        await postgres_storage.write(lambda connection: connection.execute(HASHES).all())

    def fail_quietly(connection):
        with contextlib.suppress(Exception):
            for name in ("one", "one"):
                connection.execute(INSERT, row(name))
            connection.execute(HASHES).all()

    with pytest.raises(StorageError):
        await postgres_storage.write(fail_quietly)
    assert await postgres_storage.write(lambda connection: connection.execute(HASHES).all()) == []
