"""What waits for Postgres together: in one go where that is allowed, and never at the price of a neighbour."""

import asyncio
import contextlib
import gc
import random
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import bindparam, insert, select, text
from sqlalchemy.exc import DBAPIError
from standins.patience import PATIENT
from storage.writing import Held, issue, names

from botservice import Storage
from botservice.core.errors import StorageError
from botservice.storage.statements import execute, execute_many, interleave, let_others_go_on
from botservice.storage.tables.conversations import contexts

INSERT = insert(contexts).returning(contexts.c.id)
PLAIN_INSERT = insert(contexts)
NAMES = select(contexts.c.key_hash).where(contexts.c.key_hash.in_(bindparam("names", expanding=True)))


def row(name):
    return {"key_hash": name, "context_keys": {}, "metadata": {}, "created_at": datetime.now(UTC)}


def test_functions_take_turns_where_they_would_wait():
    said = []

    def speak(name, times):
        for number in range(times):
            said.append(f"{name}{number}")
            let_others_go_on()
        return name

    assert interleave(lambda: speak("a", 2), lambda: speak("b", 3), lambda: speak("c", 1)) == ("a", "b", "c")
    assert said == ["a0", "b0", "c0", "a1", "b1", "b2"]


async def test_functions_on_sqlite_run_one_after_the_other(sqlite_storage):
    said = []

    def speak(connection, name):
        for number in range(2):
            execute(connection, NAMES, {"names": [name]}).all()
            said.append(f"{name}{number}")
            let_others_go_on()
        return name

    def both(connection):
        return interleave(lambda: speak(connection, "a"), lambda: speak(connection, "b"), connection=connection)

    assert await sqlite_storage.read(both) == ("a", "b")
    assert said == ["a0", "a1", "b0", "b1"]


def test_functions_that_are_interleaved_inside_others_let_those_go_on():
    said = []

    def speak(name):
        said.append(name)
        let_others_go_on()
        said.append(name.upper())

    interleave(lambda: interleave(lambda: speak("a"), lambda: speak("b")), lambda: speak("c"))
    assert said == ["a", "b", "c", "A", "B", "C"]


def test_one_error_ends_all_and_is_told():
    ended = []

    def wait():
        try:
            let_others_go_on()
        finally:
            ended.append(True)

    def fail():
        raise LookupError("no")

    with pytest.raises(LookupError, match="no"):
        interleave(wait, fail)
    assert ended == [True]


def test_outside_of_others_nothing_waits():
    let_others_go_on()
    assert interleave() == ()
    assert interleave(lambda: 7) == (7,)


def store_and_look(name, seen):
    """Return an operation that waits for the database twice, and says so each time."""

    def run(connection):
        execute(connection, INSERT, row(name)).scalar_one()
        seen.append(name)
        execute(connection, NAMES, {"names": []}).all()
        seen.append(name)

    return run


async def test_confined_operations_of_different_contexts_go_on_while_each_other_waits(postgres_storage):
    seen = []

    async with Held(postgres_storage):
        tasks = []
        for name, key in (("a", 1), ("b", 2), ("c", 1)):
            tasks += await issue(postgres_storage, [store_and_look(name, seen)], sort_key=(key,), is_confined=True)
    await asyncio.gather(*tasks)
    assert seen == ["a", "b", "a", "b", "c", "c"]


async def test_other_operations_are_never_interleaved(postgres_storage):
    seen = []

    async with Held(postgres_storage):
        tasks = []
        for name, is_confined in (("a", False), ("b", True), ("c", False)):
            tasks += await issue(
                postgres_storage, [store_and_look(name, seen)], sort_key=(name,), is_confined=is_confined
            )
    await asyncio.gather(*tasks)
    assert seen == ["b", "b", "a", "a", "c", "c"]


def store_well(connection, name):
    return name


def store_what_is_taken(connection, name):
    execute(connection, INSERT, row("taken")).scalar_one()


def store_what_is_taken_unseen(connection, name):
    execute(connection, PLAIN_INSERT, row("taken"))


def fail(connection, name):
    raise LookupError(name)


def fail_behind_a_bad_row(connection, name):
    execute(connection, PLAIN_INSERT, row("taken"))
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
    await storage.write(lambda connection: execute_many(connection, PLAIN_INSERT, [row("taken")]))
    fates = {f"{number:02}": dice.choice([store_well, *FATES]) for number in range(20)}

    def operation(name, end):
        def run(connection):
            new = execute(connection, INSERT, row(name))
            if int(name) % 2:
                new.scalar_one()
            return end(connection, name)

        return run

    async with Held(storage):
        tasks = []
        for name, end in fates.items():
            options = {"sort_key": (int(name) % 7,), "is_confined": dice.random() < 0.7}
            tasks += await issue(storage, [operation(name, end)], **options)
    results = await asyncio.gather(*tasks, return_exceptions=True)
    for end, result in zip(fates.values(), results, strict=True):
        assert isinstance(result, FATES[end]), end
    stored = [name for name, end in fates.items() if end is store_well]
    assert sorted(await names(storage)) == sorted(["taken", *stored])
    assert storage._writer.connection.generation == 1  # nobody's error costs the connection, and with it every claim


async def test_short_reads_that_wait_share_a_view_and_a_bad_one_fails_alone(storage):
    def find(connection):
        return [each.key_hash for each in execute(connection, NAMES, {"names": ["here"]}).all()]

    def fail(connection):
        connection.execute(text("SELECT nonsense"))

    await storage.write(lambda connection: execute_many(connection, PLAIN_INSERT, [row("here")]))
    queries = [fail if number % 5 == 0 else find for number in range(60)]
    results = await asyncio.gather(*(storage.read(query, is_short=True) for query in queries), return_exceptions=True)
    for query, result in zip(queries, results, strict=True):
        assert result == ["here"] if query is find else isinstance(result, Exception)


@given(st.lists(st.integers(0, 5), max_size=8))
def test_everything_ends_whatever_waits_how_often(waits):
    def wait(number):
        for _ in range(number):
            let_others_go_on()
        return number

    functions = [lambda number=number: wait(number) for number in waits]
    assert list(interleave(*functions)) == waits


@pytest.mark.parametrize(
    "fail",
    [
        lambda connection: execute(connection, INSERT, row("new")).all(),
        lambda connection: connection.execute(PLAIN_INSERT, row("new")),
    ],
)
async def test_what_hides_an_error_of_the_database_is_not_told_that_it_is_stored(postgres_storage, fail):
    def hide(connection):
        execute(connection, PLAIN_INSERT, row("new"))
        with contextlib.suppress(DBAPIError):
            fail(connection)

    with pytest.raises(StorageError):
        await postgres_storage.write(hide)
    assert await names(postgres_storage) == []
    await postgres_storage.write(lambda connection: execute(connection, PLAIN_INSERT, row("new")))
    assert await names(postgres_storage) == ["new"]


async def test_an_unusual_error_of_a_read_ends_no_reader(storage):
    class PanicError(BaseException):
        """What foreign code may raise."""

    def panic(_):
        raise PanicError

    def find(connection):
        return execute(connection, NAMES, {"names": ["here"]}).all()

    queries = [panic if number % 3 == 0 else find for number in range(12)]
    results = await asyncio.gather(*(storage.read(query, is_short=True) for query in queries), return_exceptions=True)
    assert [isinstance(result, PanicError) for result in results] == [query is panic for query in queries]
    assert await asyncio.gather(*(storage.read(find, is_short=True) for _ in range(12))) == [[]] * 12


async def test_a_connection_that_ends_in_the_middle_says_nothing_to_the_log(postgres_url, caplog):
    async with Storage.open(postgres_url, limits=PATIENT) as storage:
        await storage.write(lambda connection: execute(connection, PLAIN_INSERT, row("new")))
        await storage.read(lambda connection: execute(connection, NAMES, {"names": []}).all())
    gc.collect()
    assert caplog.messages == []
