"""Writes that are committed together, and reads at the same moment: never at the price of a neighbour."""

import asyncio
import contextlib
import gc
import random
from datetime import UTC, datetime

import pytest
from sqlalchemy import bindparam, insert, select, text
from sqlalchemy.exc import DBAPIError
from standins.patience import PATIENT
from storage.writing import Held, issue, names

from botservice import Storage
from botservice.core.errors import StorageError
from botservice.storage.tables.conversations import contexts

INSERT = insert(contexts).returning(contexts.c.id)
PLAIN_INSERT = insert(contexts)
NAMES = select(contexts.c.key_hash).where(contexts.c.key_hash.in_(bindparam("names", expanding=True)))


def row(name):
    return {"key_hash": name, "context_keys": {}, "metadata": {}, "created_at": datetime.now(UTC)}


def store_well(connection, name):
    return name


def store_what_is_taken(connection, name):
    connection.execute(INSERT, row("taken")).scalar_one()


def store_what_is_taken_unseen(connection, name):
    connection.execute(PLAIN_INSERT, row("taken"))


def fail(connection, name):
    raise LookupError(name)


def fail_behind_a_bad_row(connection, name):
    connection.execute(PLAIN_INSERT, row("taken"))
    raise LookupError(name)


def ask_nonsense(connection, name):
    connection.execute(text("SELECT nonsense"))


FATES = {
    store_well: str,
    store_what_is_taken: StorageError,
    store_what_is_taken_unseen: StorageError,
    fail: LookupError,
    fail_behind_a_bad_row: (LookupError, StorageError),
    ask_nonsense: StorageError,
}


@pytest.mark.parametrize("seed", range(12))
async def test_what_fails_costs_its_neighbours_nothing(storage, seed):
    """Every operation is stored or told its own error, however the others of its commit fail."""
    dice = random.Random(seed)
    await storage.write(lambda connection: connection.execute(PLAIN_INSERT, [row("taken")]))
    fates = {f"{number:02}": dice.choice([store_well, *FATES]) for number in range(20)}

    def operation(name, end):
        def run(connection):
            new = connection.execute(INSERT, row(name))
            if int(name) % 2:
                new.scalar_one()
            return end(connection, name)

        return run

    async with Held(storage):
        tasks = []
        for name, end in fates.items():
            tasks += await issue(storage, [operation(name, end)], sort_key=(int(name) % 7,))
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for end, result in zip(fates.values(), results, strict=True):
        assert isinstance(result, FATES[end]), end
    stored = [name for name, end in fates.items() if end is store_well]
    assert sorted(await names(storage)) == sorted(["taken", *stored])
    assert storage._writer.connection.generation == 1  # nobody's error costs the connection, and with it every claim


async def test_of_many_short_reads_at_once_a_bad_one_fails_alone(storage):
    def find(connection):
        return [each.key_hash for each in connection.execute(NAMES, {"names": ["here"]}).all()]

    def fail(connection):
        connection.execute(text("SELECT nonsense"))

    await storage.write(lambda connection: connection.execute(PLAIN_INSERT, [row("here")]))
    queries = [fail if number % 5 == 0 else find for number in range(60)]
    results = await asyncio.gather(*(storage.read(query) for query in queries), return_exceptions=True)
    for query, result in zip(queries, results, strict=True):
        assert result == ["here"] if query is find else isinstance(result, Exception)


@pytest.mark.parametrize(
    "fail",
    [
        lambda connection: connection.execute(INSERT, row("new")).all(),
        lambda connection: connection.execute(PLAIN_INSERT, row("new")),
    ],
)
async def test_what_hides_an_error_of_the_database_is_not_told_that_it_is_stored(postgres_storage, fail):
    def hide(connection):
        connection.execute(PLAIN_INSERT, row("new"))
        with contextlib.suppress(DBAPIError):
            fail(connection)

    with pytest.raises(StorageError):
        await postgres_storage.write(hide)
    assert await names(postgres_storage) == []
    await postgres_storage.write(lambda connection: connection.execute(PLAIN_INSERT, row("new")))
    assert await names(postgres_storage) == ["new"]


async def test_an_unusual_error_of_a_read_ends_no_reader(storage):
    class PanicError(BaseException):
        """What foreign code may raise."""

    def panic(_):
        raise PanicError

    def find(connection):
        return connection.execute(NAMES, {"names": ["here"]}).all()

    queries = [panic if number % 3 == 0 else find for number in range(12)]
    results = await asyncio.gather(*(storage.read(query) for query in queries), return_exceptions=True)
    assert [isinstance(result, PanicError) for result in results] == [query is panic for query in queries]
    assert await asyncio.gather(*(storage.read(find) for _ in range(12))) == [[]] * 12


async def test_a_connection_that_ends_in_the_middle_says_nothing_to_the_log(postgres_url, caplog):
    async with Storage.open(postgres_url, limits=PATIENT) as storage:
        await storage.write(lambda connection: connection.execute(PLAIN_INSERT, row("new")))
        await storage.read(lambda connection: connection.execute(NAMES, {"names": []}).all())
    gc.collect()
    assert caplog.messages == []
