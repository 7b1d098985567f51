"""One run of the chaos suite: a town writes, things go wrong, and the oracle looks at what is left."""

import contextlib
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from chaos.cluster import Cluster, Replica
from chaos.database import Database
from chaos.faults import City, Fault
from chaos.incidents import Chronicle, Harm
from chaos.oracle import Findings, examine
from chaos.relay import Relay
from chaos.telegram_api import TelegramApi
from chaos.town import Town, model
from crash.served import ROOT
from standins.openai_api import OpenAIApi, Reply, rate_limited, server_error

ANSWERED_SECONDS = 150

Answer = Callable[[dict[str, Any]], Reply]
Happening = Callable[[City, random.Random], Iterator[str]]
"""Lets things happen, and says which."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a run found, and what had happened to it.

    Attributes:
        ended_by_themselves: The processes that nobody had ended.
        story: What whoever reads a run that failed wants to know.
    """

    findings: Findings
    faults: Counter[str]
    ended_by_themselves: Sequence[str]
    seconds: float
    story: str


@contextlib.contextmanager
def city_of(
    folder: Path,
    database: Database,
    chronicle: Chronicle,
    *,
    replicas: int,
    clocks_apart: float = 0.0,
    answer: Answer = model,
    more: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[City]:
    """Run everything that a run needs.

    Args:
        answer: The model, when nothing is wrong with it.
        more: Settings of every process next to those of all runs.
        clocks_apart: How many seconds the clock of each machine is ahead of the one before.
    """
    (folder / "tools.log").touch()
    model_faults: list[str] = []
    with OpenAIApi.running(_failing(model_faults, answer)) as llm, TelegramApi.running() as api:
        settings = {
            "DATABASE_URL": database.url,
            "TELEGRAM_BOT_TOKEN": api.token,
            "TELEGRAM_API_URL": api.url,
            "OPENAI_BASE_URL": llm.base_url,
            "OPENAI_MODEL": "gpt-5.5",
            "CRASH_TOOL_LOG": str(folder / "tools.log"),
            "PYTHONPATH": os.pathsep.join(str(ROOT / each) for each in (".", "tests/crash", "tests/chaos")),
            "HOST": "127.0.0.1",
            **more,
        }
        cluster = Cluster(folder, replicas, settings)
        with Relay.running(cluster.ports) as relay:
            try:
                cluster.start(relay, clocks_apart=clocks_apart)
                yield City(cluster, database, api, llm, model_faults, chronicle)
            finally:
                cluster.close()


def run(city: City, town: Town, seed: random.Random, happen: Happening, tool_log: Path) -> Result:
    """Let people write while things happen; when they are over, wait until everybody is answered."""
    started = time.monotonic()
    is_over = threading.Event()
    writing = threading.Thread(target=_write, args=(town, random.Random(seed.random()), is_over), daemon=True)
    writing.start()
    try:
        faults = Counter(happen(city, seed))
    finally:
        is_over.set()
        writing.join()
    while not town.has_said_everything:
        town.write(seed)
        time.sleep(0.05)
    deadline = time.monotonic() + ANSWERED_SECONDS
    while unanswered := town.unanswered():
        assert time.monotonic() < deadline, (
            f"not answered: {unanswered[:20]}\n{city.chronicle}\n{city.cluster.log[-5000:]}"
        )
        time.sleep(0.1)
    findings, unexplained = examine(town, city.api, city.llm, city.database, tool_log, city.chronicle)
    city.cluster.close()
    ended_by_themselves = city.cluster.ended_by_themselves
    story = f"{city.chronicle}\nwithout a cause:\n{unexplained}"
    return Result(findings, faults, ended_by_themselves, time.monotonic() - started, story)


def _write(town: Town, seed: random.Random, is_over: threading.Event) -> None:
    while not is_over.wait(0.05):
        town.write(seed)


def anything(faults: Sequence[Fault], *, count: int, seconds: float) -> Happening:
    """Return what lets one fault after the other happen: so many at least, and for so long.

    None happens again before all of them have happened.
    """

    def happen(city: City, seed: random.Random) -> Iterator[str]:
        deadline = time.monotonic() + seconds
        done = 0
        while done < count or time.monotonic() < deadline:
            if not done % len(faults):
                order = seed.sample(faults, len(faults))
            fault = order[done % len(faults)]
            _wait_for_some_traffic(city, seed)
            fault.happen(city, seed)
            done += 1
            yield fault.name

    return happen


def a_kill_every_second(seconds: int) -> Happening:
    """Return what kills one process of those that run every second, and starts it again."""

    def happen(city: City, seed: random.Random) -> Iterator[str]:
        free = list(city.cluster.replicas)

        def start(replica: Replica) -> None:
            replica.start()
            free.append(replica)

        with ThreadPoolExecutor(len(free)) as pool:
            starts = []
            for _ in range(seconds):
                time.sleep(1.0)
                if not free:  # all of them are on their way up
                    continue
                replica = free.pop(seed.randrange(len(free)))
                with city.chronicle.during("kill", Harm.ENDS_PROCESS, replica.process):
                    replica.kill()
                starts.append(pool.submit(start, replica))
                yield "kill"
        for each in starts:
            each.result()

    return happen


def _wait_for_some_traffic(city: City, seed: random.Random) -> None:
    """Wait for a few model calls, where there are any to come: a moment that depends on the work."""
    left = seed.randrange(1, 20)

    def passed(_: Any) -> bool:
        nonlocal left
        left -= 1
        return left <= 0

    with contextlib.suppress(TimeoutError):
        city.llm.wait_for_call(passed, since=len(city.llm.journal), timeout=2)


def _failing(faults: list[str], answer: Answer) -> Callable[[dict[str, Any]], Any]:
    """Return a model that goes wrong in the ways that are listed, one after the other, and then works."""

    def reply(body: dict[str, Any]) -> Any:
        way = faults.pop(0) if faults else None
        match way:
            case None:
                return answer(body)
            case "error":
                return server_error(500)
            case "limit":
                return rate_limited(1)
            case "cut":
                return Reply(drop_after=0)
            case _:
                return Reply(text="never to be seen whole", drop_after=1)

    return reply
