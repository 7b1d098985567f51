"""What may go wrong. Each fault does its harm, and mends it before it returns or when it is over."""

import random
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from attacks.hostile_files import endless_memory, endless_work
from chaos.cluster import Cluster, Replica
from chaos.database import Database, PostgresDatabase, SqliteDatabase
from chaos.incidents import Chronicle, Harm
from chaos.telegram_api import TelegramApi
from standins.bot_api import Call, Drop, LoseAnswer, flood, server_error
from standins.openai_api import OpenAIApi


@dataclass(frozen=True, slots=True)
class City:
    """Everything that something can happen to."""

    cluster: Cluster
    database: Database
    api: TelegramApi
    llm: OpenAIApi
    model_faults: list[str]
    chronicle: Chronicle


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that goes wrong, and what it may do to the work that is under way.

    Attributes:
        do: Lets it happen to a replica, or to what all of them share.
    """

    do: Callable[[City, Replica, random.Random], None]
    harm: Harm

    @property
    def name(self) -> str:
        return self.do.__name__

    def happen(self, city: City, seed: random.Random) -> None:
        """Let it happen, to any replica."""
        replica = seed.choice(city.cluster.replicas)
        with city.chronicle.during(self.name, self.harm, replica.process):
            self.do(city, replica, seed)


def kill(city: City, replica: Replica, seed: random.Random) -> None:
    """End a process without a word, and start another one."""
    replica.kill()
    replica.start()


def replace(city: City, replica: Replica, seed: random.Random) -> None:
    """End a process as a deploy does, and start another one."""
    replica.kill(signal.SIGTERM)
    replica.start()


def hang(city: City, replica: Replica, seed: random.Random) -> None:
    """Stop a process for so long that its chats are taken over, and let it wake up."""
    replica.stop()
    time.sleep(seed.uniform(4.5, 7.0))
    replica.go_on()


def blink(city: City, replica: Replica, seed: random.Random) -> None:
    """Stop a process for a moment."""
    replica.stop()
    time.sleep(seed.uniform(0.2, 1.5))
    replica.go_on()


def crash_postgres(city: City, replica: Replica, seed: random.Random) -> None:
    """End the database server as a power cut does."""
    assert isinstance(city.database, PostgresDatabase)
    city.database.crash()


def end_sessions(city: City, replica: Replica, seed: random.Random) -> None:
    """Have the database server end every session."""
    assert isinstance(city.database, PostgresDatabase)
    city.database.end_sessions()


def cut_database(city: City, replica: Replica, seed: random.Random) -> None:
    """Cut every connection to the database, and let nobody connect for a while."""
    assert isinstance(city.database, PostgresDatabase)
    city.database.relay.is_deaf = True
    city.database.relay.cut()
    time.sleep(seed.uniform(0.1, 3.0))
    city.database.relay.is_deaf = False


def slow_database(city: City, replica: Replica, seed: random.Random) -> None:
    """Make the way to the database slow."""
    assert isinstance(city.database, PostgresDatabase)
    city.database.relay.delay_seconds = seed.uniform(0.01, 0.1)
    time.sleep(seed.uniform(0.5, 2.0))
    city.database.relay.delay_seconds = 0.0


def stall_file(city: City, replica: Replica, seed: random.Random) -> None:
    """Hold the database file's lock, as a slow disk does."""
    assert isinstance(city.database, SqliteDatabase)
    city.database.stall(seed.uniform(0.5, 3.0))


def fill_disk(city: City, replica: Replica, seed: random.Random) -> None:
    """Let no file grow for a while."""
    assert isinstance(city.database, SqliteDatabase)
    replica.limit_files(city.database.path.stat().st_size // 2)
    time.sleep(seed.uniform(0.5, 2.0))
    replica.limit_files(-1)


def jump_clock(city: City, replica: Replica, seed: random.Random) -> None:
    """Set a machine's clock wrong by up to an hour, for a while or for good."""
    _set_wrong(replica.set_clock, seed)


def jump_server_clock(city: City, replica: Replica, seed: random.Random) -> None:
    """Set the database server's clock wrong by up to an hour, for a while or for good."""
    assert isinstance(city.database, PostgresDatabase)
    _set_wrong(city.database.set_clock, seed)


def _set_wrong(set_clock: Callable[[float], None], seed: random.Random) -> None:
    set_clock(seed.uniform(-3600, 3600))
    time.sleep(seed.uniform(0.2, 2.0))
    if seed.random() < 0.5:
        set_clock(0.0)


def fill_server_disk(city: City, replica: Replica, seed: random.Random) -> None:
    """Let no file of the database server grow for a while."""
    assert isinstance(city.database, PostgresDatabase)
    city.database.fill_disk(seed.uniform(0.2, 1.0))


def fail_over(city: City, replica: Replica, seed: random.Random) -> None:
    """Have the database server take no writes for a while, as one whose place another has taken."""
    assert isinstance(city.database, PostgresDatabase)
    city.database.refuse_writes(seed.uniform(0.5, 3.0))


def fail_model(city: City, replica: Replica, seed: random.Random) -> None:
    """Let the next model calls fail, each in its way."""
    ways = ["error", "limit", "cut", "cut_stream", "nonsense"]
    city.model_faults.extend(seed.choices(ways, k=seed.randrange(1, 6)))


def fail_platform(city: City, replica: Replica, seed: random.Random) -> None:
    """Let the next sends fail, or arrive without an answer."""
    for fault in seed.choices([server_error(500), server_error(502, html=True), flood(1), Drop(), LoseAnswer()], k=4):
        city.api.order(fault, "sendMessage")


def shut_chats(city: City, replica: Replica, seed: random.Random) -> None:
    """Let nothing be sent to a part of the chats for a while: what is owed there waits, and all questions behind it."""
    parts = seed.randrange(2, 5)

    def is_shut(call: Call) -> bool:
        return not (call.chat_id or 0) % parts

    shut = city.api.order(server_error(502), "sendMessage", when=is_shut, times=None)
    time.sleep(seed.uniform(1.0, 6.0))
    shut.cancel()


def send_hostile_files(city: City, replica: Replica, seed: random.Random) -> None:
    """Have strangers send what takes long to read, or much memory."""
    for _ in range(seed.randrange(1, 3)):
        stranger = seed.randrange(10**6, 10**9)
        data = seed.choice([endless_work, endless_memory, lambda: b"%PDF-1.7 " + seed.randbytes(10_000)])()
        city.api.person_sends_document(data, chat_id=stranger, name="invoice.pdf", caption=f"{stranger}")


ANYWHERE: Sequence[Fault] = (
    Fault(kill, Harm.ENDS_PROCESS),
    Fault(replace, Harm.ENDS_PROCESS),
    Fault(blink, Harm.CUTS_PROCESS_OFF),
    Fault(jump_clock, Harm.NONE),
    Fault(fail_model, Harm.NONE),  # the calls that it fails are known one by one
    Fault(fail_platform, Harm.NONE),
    Fault(shut_chats, Harm.NONE),
    Fault(send_hostile_files, Harm.NONE),
)
ON_POSTGRES: Sequence[Fault] = (
    *ANYWHERE,
    Fault(hang, Harm.CUTS_PROCESS_OFF),
    Fault(crash_postgres, Harm.CUTS_ALL_OFF),
    Fault(end_sessions, Harm.CUTS_ALL_OFF),
    Fault(cut_database, Harm.CUTS_ALL_OFF),
    Fault(slow_database, Harm.CUTS_ALL_OFF),
    Fault(fail_over, Harm.CUTS_ALL_OFF),
    Fault(fill_server_disk, Harm.CUTS_ALL_OFF),
    Fault(jump_server_clock, Harm.NONE),
)
ON_SQLITE: Sequence[Fault] = (
    *ANYWHERE,
    Fault(stall_file, Harm.NONE),  # shorter than a write waits
    Fault(fill_disk, Harm.CUTS_PROCESS_OFF),
)
