"""What a turn leaves behind: bytes of the database per turn, before and after compaction, and whether space comes back.

    python benchmarks/sizes.py [--url sqlite:///bench.db | postgresql://…] [--turns 2000] [--chats 20]

Each turn has a question of some sentences, one tool call, an answer, and ten messages of window in its prompts.
"""

import argparse
import asyncio
import collections
import random
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import create_engine, text

from botservice import FunctionsBasedAgent, InboundMessage, MessageWindowMessageSelector, Storage, ToolCall, tool
from botservice.background.maintenance import Maintenance
from botservice.conversation.callbacks import StepCallbacks
from botservice.llm.chat import ChatResponse
from botservice.turns.inbox import Inbox
from botservice.turns.run_options import RunOptions
from botservice.turns.turn import InboundEvent
from botservice.turns.worker import Worker

_WORDS = ["table", "river", "seven", "between", "yellow", "answer", "market", "winter", "letter", "garden"]
_SQLITE = {
    "file": "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()",
    "used": "SELECT (page_count - freelist_count) * page_size "
    "FROM pragma_page_count(), pragma_freelist_count(), pragma_page_size()",
}
_POSTGRES = {"file": "SELECT pg_database_size(current_database())"}


@tool
async def look_up(topic: str) -> str:
    """Look something up."""
    return f"{topic}: {sentence(random.Random(topic), 40)}"


def sentence(source, words):
    return " ".join(source.choices(_WORDS, k=words))


class Model:
    model = "growth"

    async def chat(self, messages, tools=(), *, on_text=None):
        if messages[-1]["role"] == "tool":
            return ChatResponse(f"I found this: {messages[-1]['content'][:150]}")
        topic = messages[-1]["content"][:20]
        return ChatResponse("", (ToolCall("call", "look_up", {"topic": topic}),))


class Platform:
    name = "bench"

    def __init__(self):
        self.answered = collections.defaultdict(asyncio.Event)

    async def read(self, event):
        return InboundMessage(event.raw.decode().partition("#")[0])

    def plan(self, answer, events):
        return [{"text": answer.text}]

    async def send(self, context_keys, delivery):
        self.answered[context_keys["chat_id"]].set()

    def live(self, context_keys, events, record):
        return None


async def write(inbox, platform, run, turns, chats):
    """Have so many messages answered; each event is as large as a platform's."""
    source = random.Random(run)

    async def chat(number):
        for place in range(turns // chats):
            raw = f"{sentence(source, 25)}#{'x' * 600}".encode()
            key = f"{run}:{number}:{place}"
            platform.answered[str(number)].clear()
            await inbox.accept("bench", [InboundEvent(key, {"chat_id": str(number)}, run * 10**9 + place, raw)])
            await platform.answered[str(number)].wait()

    await asyncio.gather(*map(chat, range(chats)))


async def size(storage):
    """Return the bytes of the database by kind; on Postgres after a VACUUM, as autovacuum does it."""
    queries = _SQLITE if storage.is_sqlite else _POSTGRES
    if storage.is_sqlite:
        await storage.scrub()
    else:
        engine = create_engine(storage.where.url, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.exec_driver_sql("VACUUM")
        engine.dispose()

    def read(connection):
        return {name: connection.execute(text(query)).scalar_one() for name, query in queries.items()}

    return await storage.read(read)


async def measure(url, turns, chats):
    turns -= turns % chats
    agent = FunctionsBasedAgent([look_up], Model(), message_selector=MessageWindowMessageSelector(10), search_k=0)
    platform = Platform()
    async with Storage.open(url, migrate=True) as storage:
        worker = Worker(storage, RunOptions(agent, StepCallbacks(None), 10), [platform])
        inbox = Inbox(storage, worker.wake)
        await worker.start()
        base = await size(storage)
        print(f"3 x {turns} turns with a tool call in {chats} chats, {url.partition(':')[0]}")
        for run in range(1, 4):
            await write(inbox, platform, run, turns, chats)
            full = await size(storage)
            show(f"round {run}, written", full, base, turns, run)
            later = datetime.now(UTC) + timedelta(days=31)
            started, cpu = time.perf_counter(), time.process_time()
            done = await Maintenance(
                storage, clock=lambda later=later: later, rest=lambda _: asyncio.sleep(0)
            ).run_once()
            seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
            show(f"round {run}, compacted", await size(storage), base, turns, run)
            print(f"    {done.turns} turns in {seconds:.2f} s, {cpu / max(1, done.turns) * 1000:.2f} ms of CPU a turn")
        await worker.stop()


def show(name, now, base, turns, rounds):
    kinds = "  ".join(
        f"{kind} {value / 2**20:7.2f} MiB ({(value - base[kind]) / turns / rounds:6.0f} bytes a turn)"
        for kind, value in now.items()
    )
    print(f"  {name:<20} {kinds}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url")
    parser.add_argument("--turns", type=int, default=2000)
    parser.add_argument("--chats", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = options.url or f"sqlite:///{Path(folder) / 'bench.db'}"
        asyncio.run(measure(url, options.turns, options.chats))


if __name__ == "__main__":
    main()
