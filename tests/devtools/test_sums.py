"""Sums over time: right by hour and day, and with as little work however much there is."""

from datetime import UTC, datetime, timedelta

import pytest
from devtools.many_turns import analyze, make_many, rows_read
from sqlalchemy import insert

from botservice.devtools.turn_queries import read_sums
from botservice.storage.tables.conversations import contexts, messages, turn_figures, turns
from botservice.storage.tables.services import feedback

HOUR = timedelta(hours=1)
NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def add_turn(connection, number, at, *, outcome="answered", platform="telegram", model="m", verdict=None, **figures):
    took = timedelta(seconds=2)
    values = {"status": "done", "transport": platform, "order_key": 0, "due_at": at, "created_at": at}
    connection.execute(
        insert(turns).values(id=number, context_id=1, outcome=outcome, started_at=at, finished_at=at + took, **values)
    )
    said = {"position": number, "role": "assistant", "text": "x", "created_at": at, "answers_turn_id": number}
    connection.execute(insert(messages).values(context_id=1, **said))
    if model is not None:
        given = {"calls": 1, "input_tokens": 100, "cached_tokens": 40, "cost": 7, "tools": "", **figures}
        connection.execute(insert(turn_figures).values(turn_id=number, model=model, **given))
    if verdict is not None:
        row = {"turn_id": number, "platform": "slack", "person_id": "1", "verdict": verdict, "created_at": at}
        connection.execute(insert(feedback).values(**row))


@pytest.fixture
async def filled(storage):
    """A storage with turns around noon."""

    def write(connection):
        keys = {"key_hash": "1", "context_keys": {"a": "b"}, "metadata": {}}
        connection.execute(insert(contexts).values(id=1, created_at=NOON, **keys))
        add_turn(connection, 1, NOON - timedelta(microseconds=1))
        add_turn(connection, 2, NOON, verdict="good", first_token_ms=300)
        add_turn(connection, 3, NOON + HOUR - timedelta(microseconds=1), outcome="failed", failed_calls=3)
        add_turn(connection, 4, NOON + timedelta(minutes=5), platform="web", verdict="bad")
        add_turn(connection, 5, NOON + HOUR, model="n")
        add_turn(connection, 6, NOON + HOUR, outcome="listened", model=None)

    await storage.write(write)
    return storage


async def test_turns_are_summed_up_by_the_hour_in_which_they_began(filled):
    summary = await filled.read(lambda c: read_sums(c, NOON, NOON + 2 * HOUR, every=HOUR))
    told = {(each.at.hour, each.platform, each.model): each for each in summary.sums}
    assert set(told) == {(12, "telegram", "m"), (12, "web", "m"), (13, "telegram", "n")}
    noon = told[12, "telegram", "m"]
    assert (noon.turns, noon.answered, noon.failed, noon.failed_calls) == (2, 1, 1, 3)
    assert (noon.waited_seconds, noon.first_tokens, noon.first_token_ms) == (2.0, 1, 300)
    assert (noon.input_tokens, noon.cached_tokens, noon.cost, noon.good, noon.bad) == (200, 80, 14, 1, 0)
    assert (told[12, "web", "m"].good, told[12, "web", "m"].bad) == (0, 1)
    assert not summary.is_cut


async def test_a_day_holds_what_its_hours_hold(filled):
    summary = await filled.read(lambda c: read_sums(c, NOON - 12 * HOUR, NOON + 12 * HOUR, every=24 * HOUR))
    assert {each.at for each in summary.sums} == {NOON - 12 * HOUR}
    assert sum(each.turns for each in summary.sums) == 5


async def test_sums_say_when_they_leave_something_out(filled):
    summary = await filled.read(lambda c: read_sums(c, NOON, NOON + 2 * HOUR, every=HOUR, looks_at=3))
    assert summary.is_cut
    assert sum(each.turns for each in summary.sums) == 2  # of the newest three, one was only heard


async def test_charts_of_very_many_turns_look_at_the_newest_alone(storage):
    await storage.write(lambda connection: make_many(connection, 10_000))
    await storage.write(analyze)
    epoch = datetime(1970, 1, 1, tzinfo=UTC)

    def read(connection):
        return rows_read(connection, lambda each: read_sums(each, epoch, NOON, every=HOUR, looks_at=1_000))

    summary, effort = await storage.read(read)
    assert sum(each.turns for each in summary.sums) == 1_000
    assert effort < (250_000 if storage.where.is_sqlite else 25_000), "a fifth of what going through all takes"
