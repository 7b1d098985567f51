"""Whether anybody waits for others: 2,000 chats that cannot be delivered to, 300 turns that were cut off before.

    python benchmarks/crowded.py [--url sqlite:///bench.db | postgresql://…] [--undeliverable 2000] [--suspects 300]

Each of those chats owes a message that its platform does not take and has a question waiting behind it; each of the
suspects was begun four times without getting further, and takes as long as it likes. Then other people ask, one after
the other: how long from the accept of a question to its beginning? Then nobody asks: what do the others cost? Figures
without them stand next to, from the same process. CPU time is this process's alone, and says most where others use the
machine as well; of Postgres, its server's is added where it runs on this machine.
"""

import argparse
import asyncio
import logging
import os
import statistics
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from sqlalchemy import insert, text

from botservice import FunctionsBasedAgent, InboundMessage, NoMessages, Storage
from botservice.conversation.callbacks import StepCallbacks
from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import find_or_insert_context
from botservice.core.errors import DeliveryError
from botservice.core.states import TurnStatus
from botservice.llm.chat import ChatResponse
from botservice.storage.tables.conversations import deliveries
from botservice.turns.backlog_queries import put_off
from botservice.turns.event_queries import insert_event
from botservice.turns.inbox import Inbox
from botservice.turns.queries import insert_turn
from botservice.turns.retry_policies import DELIVERY_RETRIES
from botservice.turns.run_options import RunOptions
from botservice.turns.turn import InboundEvent
from botservice.turns.worker import Worker


class Model:
    """Answers at once; a suspect's question, never."""

    model = "quick"

    def __init__(self):
        self.began = {}

    async def chat(self, messages, tools=(), *, on_text=None):
        said = messages[-1]["content"]
        self.began[said] = time.perf_counter()
        if said.startswith("suspect"):
            await asyncio.Event().wait()
        return ChatResponse(f"re: {said}")


class Platform:
    name = "bench"

    def __init__(self):
        self.seen = asyncio.Queue()

    async def read(self, event):
        return InboundMessage(event.raw.decode())

    def plan(self, answer, events):
        return [{"text": answer.text}]

    async def send(self, context_keys, delivery):
        if context_keys["chat_id"].startswith("dead"):
            raise DeliveryError("the chat cannot be reached")
        self.seen.put_nowait(delivery)

    def live(self, context_keys, events, record):
        return None


def fill(connection, now, undeliverable, suspects):
    """Store chats that owe what cannot be sent, in the middle of their tries, and turns that were cut off."""
    for number in range(undeliverable):
        keys = ContextKeys.of({"transport": "bench", "chat_id": f"dead-{number}"})
        context_id = find_or_insert_context(connection, keys, now)
        turn_id = insert_turn(connection, context_id, "bench", now, status=TurnStatus.DONE)
        due_at = now + timedelta(seconds=DELIVERY_RETRIES.max_delay_seconds * number / undeliverable)
        row = {"context_id": context_id, "turn_id": turn_id, "transport": "bench", "kind": "message"}
        row |= {"status": "pending", "attempts": 12, "due_at": due_at, "due_set_at": now, "created_at": now}
        connection.execute(insert(deliveries), [{**row, "payload": {"text": f"part {part}"}} for part in range(3)])
        event = InboundEvent(f"dead:{number}", keys.values, 2, b"and?")
        insert_event(connection, "bench", keys, event, now)
        put_off(connection, context_id, due_at, now)
    for number in range(suspects):
        keys = ContextKeys.of({"transport": "bench", "chat_id": f"suspect-{number}"})
        insert_event(connection, "bench", keys, InboundEvent(f"suspect:{number}", keys.values, 1, b"suspect"), now)
    connection.execute(
        text("UPDATE turns SET attempts = 4 WHERE status = 'queued' AND context_id > :first"), {"first": undeliverable}
    )


async def ask(inbox, platform, model, run, count):
    """Return how long each of some questions, in chats of their own, waited for its beginning."""
    waits = []
    for number in range(count):
        said = f"{run} question {number}"
        event = InboundEvent(said, {"transport": "bench", "chat_id": f"{run}-{number % 50}"}, number, said.encode())
        asked = time.perf_counter()
        await inbox.accept("bench", [event])
        await platform.seen.get()
        waits.append(model.began[said] - asked)
        await asyncio.sleep(0.02)
    return sorted(waits)


def server_seconds(pids):
    """Return the CPU time of processes of this machine."""
    ticks = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


async def measure(storage, options, run):
    """Return the waits of questions, and the share of a core that an idle process and its server take."""
    model, platform = Model(), Platform()
    agent = FunctionsBasedAgent(llm=model, message_selector=NoMessages(), search_k=0)
    worker = Worker(storage, RunOptions(agent, StepCallbacks(None), 10), [platform], max_turns=options.max_turns)
    inbox = Inbox(storage, worker.wake)
    await worker.start()
    await asyncio.sleep(options.settle_seconds)
    waits = await ask(inbox, platform, model, run, options.questions)
    pids = [] if storage.is_sqlite else await storage.read(_backends)
    own, server = time.process_time(), server_seconds(pids)
    await asyncio.sleep(options.idle_seconds)
    idle = (time.process_time() - own + server_seconds(pids) - server) / options.idle_seconds
    await worker.stop()
    return waits, idle


def _backends(connection):
    query = text(
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'"
    )
    pids = list(connection.execute(query).scalars())
    return [pid for pid in pids if Path(f"/proc/{pid}/stat").exists()]


async def run(url, options):
    async with Storage.open(url, migrate=True) as storage:
        before = await measure(storage, options, "before")
        await storage.write(lambda connection: fill(connection, storage.now(), options.undeliverable, options.suspects))
        await storage.write(lambda connection: connection.execute(text("ANALYZE")))  # as autovacuum soon does
        return before, await measure(storage, options, "crowded")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url")
    parser.add_argument("--undeliverable", type=int, default=2000)
    parser.add_argument("--suspects", type=int, default=300)
    parser.add_argument("--questions", type=int, default=200)
    parser.add_argument("--max-turns", type=int, default=256)
    parser.add_argument("--settle-seconds", type=float, default=10)
    parser.add_argument("--idle-seconds", type=float, default=20)
    options = parser.parse_args()
    logging.disable()  # a line for each try, which a service writes to its log as well
    with tempfile.TemporaryDirectory() as folder:
        url = options.url or f"sqlite:///{Path(folder) / 'bench.db'}"
        found = asyncio.run(run(url, options))
    kind = url.partition(":")[0]
    print(f"{kind}: {options.undeliverable} chats that cannot be delivered to, {options.suspects} suspects")
    for name, (waits, idle) in zip(("without them", "with them"), found, strict=True):
        middle, late = statistics.median(waits) * 1000, waits[int(len(waits) * 0.95)] * 1000
        print(f"  {name:<12}  accept to start {middle:6.1f} ms p50 {late:6.1f} ms p95", end="")
        print(f"   idle {idle * 100:5.2f} % of a core")


if __name__ == "__main__":
    main()
