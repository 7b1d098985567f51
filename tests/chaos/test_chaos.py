"""Whatever happens to processes, databases, clocks, models and platforms: nothing is lost.

A long run: CHAOS_SECONDS=3600 CHAOS_SEED=7 scripts/test tests/chaos -m "" -n 0 -s
"""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from chaos.database import Database, PostgresDatabase, SqliteDatabase
from chaos.faults import ON_POSTGRES, ON_SQLITE, Fault
from chaos.run import Result, a_kill_every_second, anything, city_of, run
from chaos.town import Town

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]

SECONDS = float(os.environ.get("CHAOS_SECONDS", "0"))
FAULTS = int(os.environ.get("CHAOS_FAULTS", "10"))
KILLS = int(os.environ.get("CHAOS_KILLS", "8"))
CHATS = int(os.environ.get("CHAOS_CHATS", "20"))
MESSAGES = int(os.environ.get("CHAOS_MESSAGES", "5"))
SEED = os.environ.get("CHAOS_SEED", "1")


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "sqlite":
        yield SqliteDatabase(tmp_path / "bot.db")
    else:
        with PostgresDatabase.running() as server:
            yield server


def test_nothing_is_lost_whatever_happens(tmp_path: Path, database: Database) -> None:
    faults: tuple[Fault, ...] = tuple(ON_SQLITE if isinstance(database, SqliteDatabase) else ON_POSTGRES)
    messages = None if SECONDS else MESSAGES  # a long run needs people who do not fall silent
    result = _run(tmp_path, database, "anything", anything(faults, count=FAULTS, seconds=SECONDS), messages)
    _check(result)


def test_a_kill_every_second_loses_nothing(tmp_path: Path, database: Database) -> None:
    _check(_run(tmp_path, database, "kills", a_kill_every_second(KILLS), MESSAGES))


def _run(folder: Path, database: Database, name: str, happen, messages: int) -> Result:
    seed = random.Random(f"{SEED}-{name}-{database.kind}")
    replicas = 1 if isinstance(database, SqliteDatabase) else 3
    with city_of(folder, database, replicas=replicas) as city:
        town = Town(city.api, chats=CHATS, messages=messages)
        result = run(city, town, seed, happen, folder / "tools.log")
    # Shown with -s: what docs/reliability.md reports.
    faults = dict(sorted(result.faults.items()))
    print(f"\n{database.kind}, {replicas} processes, seed {SEED}, {result.seconds:.0f} s: {faults}")  # noqa: T201
    print(result.findings)  # noqa: T201
    return result


def _check(result: Result) -> None:
    found = result.findings
    assert (found.lost, found.out_of_order, found.paid_twice) == (0, 0, 0), found
    # Each time that something happens, a message in flight may be shown, and a question asked, once more.
    assert found.most_shown <= 1 + result.disruptions, found
    assert found.most_asked <= 2 + 6 * result.disruptions, found
