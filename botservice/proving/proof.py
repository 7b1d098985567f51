"""One run of the proof: everything is started, people write, processes are killed, and everybody is waited for."""

import asyncio
import contextlib
import random
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from botservice.proving.bot import TILL
from botservice.proving.checker import Findings, SimulationRecord, examine
from botservice.proving.platform import TOKEN, Platform
from botservice.proving.process import ServerProcess, check_writable, listening, migrate
from botservice.proving.queries import database_at, write_record
from botservice.proving.simulated_users import SimulatedChat, SimulatedUsers, settle

LAST_ANSWERS_SECONDS: Final = 60.0
"""After so long without any answer the rest counts as lost."""
_QUIET_SECONDS: Final = 2.0
_LOOK_SECONDS: Final = 0.1
_PROCESSES_ON_POSTGRES: Final = 2

Watch = Callable[[float, SimulationRecord], None]
"""Is told again and again for how many seconds people have written, and what was noted so far."""


@dataclass(frozen=True, slots=True)
class SimulationPlan:
    """What is to happen.

    Attributes:
        seed: What people write, and when a process is killed, is drawn from it.
        seconds: How long people write; the last answers come after that.
        kills: How many processes are killed in that time.
        database: The address of an empty Postgres; None for an SQLite file.
        record: Where to write what the service records of its transitions; None where it records nothing.
    """

    seed: int
    seconds: float = 120.0
    kills: int = 20
    database: str | None = None
    record: Path | None = None

    @property
    def processes(self) -> int:
        """How many processes run at once: an SQLite file is one process's."""
        return 1 if self.database is None else _PROCESSES_ON_POSTGRES


@dataclass(frozen=True, slots=True)
class Proof:
    """What came of it."""

    plan: SimulationPlan
    chats: Sequence[SimulatedChat]
    findings: Findings


async def prove(plan: SimulationPlan, watch: Watch) -> Proof:
    """Do what a plan says; no process and no file of it is left, however it ends.

    Raises:
        SettingsError: the database is no empty Postgres, or the record cannot be written.
        BotServiceError: the service does not start, or the database cannot be reached.
    """
    if plan.record is not None:
        check_writable(plan.record)
    record, chats = SimulationRecord(), settle()
    with (
        tempfile.TemporaryDirectory(prefix="botservice-prove-") as folder,
        database_at(plan.database, Path(folder)) as url,
    ):
        platform = Platform(chats, record, random.Random(f"{plan.seed} network"), time.monotonic)  # noqa: S311 - no secret
        town = SimulatedUsers(chats, record, platform.say, time.monotonic)
        async with _serving(plan, platform, record, Path(folder), url) as places:
            await _go_through(plan, places, town, record, watch)
            if plan.record is not None:
                await asyncio.to_thread(write_record, url, plan.record)
    return Proof(plan, chats, examine(record))


@contextlib.asynccontextmanager
async def _serving(
    plan: SimulationPlan, platform: Platform, record: SimulationRecord, folder: Path, url: str
) -> AsyncIterator[Sequence[ServerProcess]]:
    """Run the platform, and the service with all its processes, until the block is left."""
    try:
        async with listening(platform.app) as port, asyncio.TaskGroup() as group:
            settings = partial(_settings, url, port, plan.record is not None)
            await migrate(folder, settings("migration"))
            names = ("a", "b")[: plan.processes]
            places = [ServerProcess(each, folder, settings, record, platform.ports, time.monotonic) for each in names]
            tasks = [group.create_task(each.run()) for each in places]
            tasks.append(group.create_task(platform.deliver()))
            for place in places:
                await place.is_up.wait()
            yield places
            for task in tasks:
                task.cancel()
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors


def _settings(url: str, port: int, records: bool, process: str) -> Mapping[str, str]:  # noqa: FBT001 - bound
    """Return the settings of one process; the addresses that it calls name it."""
    return {
        "DATABASE_URL": url,
        "TELEGRAM_BOT_TOKEN": TOKEN,
        "TELEGRAM_API_URL": f"http://127.0.0.1:{port}/{process}",
        "PUBLIC_URL": "https://bot.example",  # the platform here finds every process by itself
        TILL: f"http://127.0.0.1:{port}/{process}/till",
        "HOST": "127.0.0.1",
        "RECORD_TRANSITIONS": "on" if records else "off",
    }


async def _go_through(
    plan: SimulationPlan, places: Sequence[ServerProcess], town: SimulatedUsers, record: SimulationRecord, watch: Watch
) -> None:
    """Have people write and processes killed; then wait for the last answers."""
    began = time.monotonic()
    writing = asyncio.create_task(town.write(str(plan.seed)))
    killing = asyncio.create_task(_kill(plan, places))
    try:
        while (passed := time.monotonic() - began) < plan.seconds:
            watch(passed, record)
            await asyncio.sleep(min(_LOOK_SECONDS, plan.seconds - passed))
    finally:
        for task in (writing, killing):
            task.cancel()
        await asyncio.wait([writing, killing])
    await _wait_for_answers(places, record, partial(watch, plan.seconds, record))


async def _kill(plan: SimulationPlan, places: Sequence[ServerProcess]) -> None:
    """Kill a process at moments that the seed gives, also while it starts."""
    chance = random.Random(f"{plan.seed} kills")  # noqa: S311 - no secret
    moments = sorted(chance.uniform(0, plan.seconds) for _ in range(plan.kills))
    began = time.monotonic()
    for moment in moments:
        await asyncio.sleep(max(0.0, began + moment - time.monotonic()))
        chance.choice(places).kill()


async def _wait_for_answers(
    places: Sequence[ServerProcess], record: SimulationRecord, watch: Callable[[], None]
) -> None:
    """Wait until all are answered and nothing more comes, or until nothing has come for too long."""
    seen, since = -1, time.monotonic()
    while True:
        if len(record.shown) != seen:
            seen, since = len(record.shown), time.monotonic()
        quiet = time.monotonic() - since
        is_done = record.waiting() == 0 and all(each.is_up.is_set() for each in places)
        if quiet > (_QUIET_SECONDS if is_done else LAST_ANSWERS_SECONDS):
            return
        watch()
        await asyncio.sleep(_LOOK_SECONDS)


def write_table(proof: Proof) -> str:
    """Return what was found, and how to see the same again."""
    plan, found = proof.plan, proof.findings
    people = len({person for chat in proof.chats for person in chat.people})
    where = "one process on SQLite" if plan.database is None else f"{plan.processes} processes on Postgres"
    command = f"botservice prove --seed {plan.seed} --seconds {plan.seconds:g} --kills {plan.kills}"
    command += "" if plan.database is None else " --database URL"
    lines = [f"{people} people in {len(proof.chats)} chats, {where}, seed {plan.seed}"]
    lines += [f"  {name:<24} {value:>7}  {why}".rstrip() for name, value, why in _rows(found)]
    return "\n".join([*lines, _verdict(found), f"Once more: {command}", "What this cannot show: docs/proof.md"])


def _rows(found: Findings) -> list[tuple[str, int | str, str]]:
    return [
        ("messages said", found.messages, ""),
        ("answered once", found.once, ""),
        ("answered again", found.again, "being sent when the process was killed: nobody can ask Telegram for it"),
        ("answered twice", found.twice, "without such a kill; must be 0"),
        ("lost", found.lost, "must be 0"),
        ("out of order", found.out_of_order, "must be 0"),
        ("answers to nothing", found.strange, "must be 0"),
        ("payments asked for", found.to_pay, ""),
        ("paid", found.paid, ""),
        ("paid twice", found.paid_twice, "must be 0"),
        ("in doubt, and said so", found.in_doubt, "cut off by a kill, and never tried again by itself"),
        ("told wrongly", found.told_wrongly, "must be 0"),
        ("processes killed", found.kills, "with SIGKILL"),
        ("ended by themselves", found.ended_alone, "must be 0"),
        ("longest wait", f"{found.longest_wait:.1f} s", ""),
    ]


def _verdict(found: Findings) -> str:
    if found.messages == 0:
        return "Nobody said anything in so short a time: this shows nothing."
    if found.faults:
        return f"{found.faults} things are not as they are promised. Please report them with these lines."
    return "Nothing was lost, paid twice or told wrongly, and every chat was answered in its order."
