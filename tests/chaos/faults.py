"""What may go wrong. Each fault does its harm, and mends it before it returns or when it is over."""

import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from chaos.cluster import Cluster, Replica
from chaos.database import Database, PostgresDatabase, SqliteDatabase
from standins.bot_api import BotApi, Drop, LoseAnswer, flood, server_error
from standins.openai_api import OpenAIApi


@dataclass(frozen=True, slots=True)
class City:
    """Everything that something can happen to."""

    cluster: Cluster
    database: Database
    api: BotApi
    llm: OpenAIApi
    clock: Path
    model_faults: list[str]


Fault = Callable[[City, random.Random], None]


def kill(city: City, seed: random.Random) -> None:
    """End a process without a word, and start another one."""
    replica = _pick(city, seed)
    replica.kill()
    replica.start()


def replace(city: City, seed: random.Random) -> None:
    """End a process as a deploy does, and start another one."""
    replica = _pick(city, seed)
    replica.kill(signal.SIGTERM)
    replica.start()


def hang(city: City, seed: random.Random) -> None:
    """Stop a process for so long that its chats are taken over, and let it wake up."""
    replica = _pick(city, seed)
    replica.stop()
    time.sleep(seed.uniform(4.5, 7.0))
    replica.go_on()


def blink(city: City, seed: random.Random) -> None:
    """Stop a process for a moment."""
    replica = _pick(city, seed)
    replica.stop()
    time.sleep(seed.uniform(0.2, 1.5))
    replica.go_on()


def crash_postgres(city: City, seed: random.Random) -> None:
    """End the database server as a power cut does."""
    assert isinstance(city.database, PostgresDatabase)
    city.database.crash()


def end_sessions(city: City, seed: random.Random) -> None:
    """Have the database server end every session."""
    assert isinstance(city.database, PostgresDatabase)
    city.database.end_sessions()


def cut_database(city: City, seed: random.Random) -> None:
    """Cut every connection to the database, and let nobody connect for a while."""
    assert isinstance(city.database, PostgresDatabase)
    city.database.relay.is_deaf = True
    city.database.relay.cut()
    time.sleep(seed.uniform(0.1, 3.0))
    city.database.relay.is_deaf = False


def slow_database(city: City, seed: random.Random) -> None:
    """Make the way to the database slow."""
    assert isinstance(city.database, PostgresDatabase)
    city.database.relay.delay_seconds = seed.uniform(0.01, 0.1)
    time.sleep(seed.uniform(0.5, 2.0))
    city.database.relay.delay_seconds = 0.0


def stall_file(city: City, seed: random.Random) -> None:
    """Hold the database file's lock, as a slow disk does."""
    assert isinstance(city.database, SqliteDatabase)
    city.database.stall(seed.uniform(0.5, 3.0))


def fill_disk(city: City, seed: random.Random) -> None:
    """Let no file grow for a while."""
    assert isinstance(city.database, SqliteDatabase)
    replica = _pick(city, seed)
    replica.limit_files(city.database.path.stat().st_size // 2)
    time.sleep(seed.uniform(0.5, 2.0))
    replica.limit_files(-1)


def jump_clock(city: City, seed: random.Random) -> None:
    """Set the clock wrong by up to an hour, for a while."""
    city.clock.write_text(str(seed.uniform(-3600, 3600)))
    time.sleep(seed.uniform(0.2, 1.0))
    city.clock.write_text("0")


def fail_model(city: City, seed: random.Random) -> None:
    """Let the next model calls fail, each in its way."""
    ways = ["error", "limit", "cut", "cut_stream", "nonsense"]
    city.model_faults.extend(seed.choices(ways, k=seed.randrange(1, 6)))


def fail_platform(city: City, seed: random.Random) -> None:
    """Let the next sends fail, or arrive without an answer."""
    for fault in seed.choices([server_error(500), server_error(502, html=True), flood(1), Drop(), LoseAnswer()], k=4):
        city.api.order(fault, "sendMessage")


def _pick(city: City, seed: random.Random) -> Replica:
    return seed.choice(city.cluster.replicas)


ANYWHERE: Sequence[Fault] = (kill, kill, replace, blink, jump_clock, fail_model, fail_platform)
ON_POSTGRES: Sequence[Fault] = (*ANYWHERE, hang, crash_postgres, end_sessions, cut_database, slow_database)
ON_SQLITE: Sequence[Fault] = (*ANYWHERE, stall_file, fill_disk)
