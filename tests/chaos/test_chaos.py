"""Whatever happens to processes, databases, clocks, models and platforms: nothing is lost.

A long run: CHAOS_SECONDS=3600 CHAOS_SEED=7 scripts/test tests/chaos -m "" -n 0 -s
"""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from chaos.database import Database, PostgresDatabase, SqliteDatabase
from chaos.faults import ON_POSTGRES, ON_SQLITE
from chaos.incidents import Chronicle
from chaos.run import Happening, Result, a_kill_every_second, anything, city_of, run
from chaos.town import Town
from model.conformance import RECORDS, check_record

from botservice.storage.transitions import read_record

pytestmark = [pytest.mark.slow, pytest.mark.timeout(7200)]

SECONDS = float(os.environ.get("CHAOS_SECONDS", "0"))
FAULTS = int(os.environ.get("CHAOS_FAULTS", "0"))  # 0: each once
KILLS = int(os.environ.get("CHAOS_KILLS", "4"))
CHATS = int(os.environ.get("CHAOS_CHATS", "6"))
MESSAGES = int(os.environ.get("CHAOS_MESSAGES", "0")) or None  # None: people write as long as anything happens
SEED = os.environ.get("CHAOS_SEED", "1")
CLOCKS_APART = 1000.0  # seconds


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    if request.param == "sqlite":
        yield SqliteDatabase(tmp_path / "bot.db")
    else:
        with PostgresDatabase.running() as server:
            yield server


def test_nothing_is_lost_whatever_happens(tmp_path: Path, database: Database) -> None:
    faults = ON_SQLITE if isinstance(database, SqliteDatabase) else ON_POSTGRES
    count = FAULTS or len(faults)
    # None: a fault that finds no work shows nothing.
    result = _run(tmp_path, database, "anything", anything(faults, count=count, seconds=SECONDS), None)
    _check(result)
    missing = {fault.name for fault in faults} - {*result.faults}
    assert count < len(faults) or not missing, result.story


def test_a_kill_every_second_loses_nothing(tmp_path: Path, database: Database) -> None:
    _check(_run(tmp_path, database, "kills", a_kill_every_second(KILLS), MESSAGES))


def _run(folder: Path, database: Database, name: str, happen: Happening, messages: int | None) -> Result:
    seed = random.Random(f"{SEED}-{name}-{database.kind}")
    replicas, clocks_apart = (1, 0.0) if isinstance(database, SqliteDatabase) else (3, CLOCKS_APART)
    title = f"{database.kind}, {replicas} processes, seed {SEED}"
    chronicle = Chronicle(title)
    more = {"replicas": replicas, "clocks_apart": clocks_apart, "more": RECORDS}
    with city_of(folder, database, chronicle, **more) as city:
        town = Town(city.api, chats=CHATS, messages=messages)
        result = run(city, town, seed, happen, folder / "tools.log")
    check_record(read_record(database.url))
    # Shown with -s: what docs/reliability.md reports.
    print(f"\n{title}, {result.seconds:.0f} s: {dict(sorted(result.faults.items()))}")  # noqa: T201
    print(result.findings)  # noqa: T201
    return result


def _check(result: Result) -> None:
    found = result.findings
    assert (found.lost, found.out_of_order, found.paid_twice) == (0, 0, 0), f"{found}\n{result.story}"
    assert (found.shown_without_cause, found.asked_without_cause) == (0, 0), f"{found}\n{result.story}"
    assert not result.ended_by_themselves, f"{result.ended_by_themselves}\n{result.story}"
