"""What becomes slower as the database grows: each thing on a small database, and on one that has grown for years.

    python benchmarks/growth.py [--url sqlite:///new.db | postgresql://…/an_empty_database]
        [--contexts 100000] [--messages 1000000] [--turns 300000]

The large database is built in minutes, with rows as the service writes them: see `large_database.py`. A group of a
thousand people has a tenth of all turns. Forgetting is measured for a person with a chat of their own, and for one of
the people of that group. A mark stands where something takes more than 50 ms and half as long again as in a small one.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from large_database import GROUP, GROUP_PEOPLE, Plan, chat_keys, fill
from sqlalchemy import select

from botservice import AgentContext, Author, FunctionsBasedAgent, InboundMessage, SteadyWindowMessageSelector, Storage
from botservice.conversation.callbacks import StepCallbacks
from botservice.core.policies import Scope, parse_limits
from botservice.devtools.conversations import list_contexts, read_turns
from botservice.llm.chat import ChatResponse
from botservice.people.budgets import Budgets
from botservice.people.usage import Payer, UsageBy
from botservice.people.usage_queries import list_usage
from botservice.privacy.forgetting import forget_person
from botservice.storage.tables.conversations import turns
from botservice.turns.administration import list_turns
from botservice.turns.inbox import Inbox
from botservice.turns.run_options import RunOptions
from botservice.turns.turn import InboundEvent
from botservice.turns.worker import Worker
from transports.web.inspector_lists import PAGE, read_turn_lines

ROUNDS = 21
READERS = 20
SMALL = Plan(1_200, 12_000, 3_000)  # so many that the group's window and its page are full
MOST_MS, MOST_TIMES = 50, 1.5


class Model:
    model = "growth"

    async def chat(self, messages, tools=(), *, on_text=None):
        return ChatResponse("an answer")


class Platform:
    name = "bench"

    def __init__(self):
        self.sent = asyncio.Event()

    async def read(self, event):
        return InboundMessage(event.raw.decode(), author=Author("bench", "1", "Ann"))

    def plan(self, answer, events):
        return [{"text": answer.text}]

    async def send(self, context_keys, delivery):
        self.sent.set()

    def live(self, context_keys, events, record):
        return None


class Bench:
    """One database, served, and what is measured there."""

    def __init__(self, url, contexts):
        self.url, self.contexts = url, contexts
        self.platform = Platform()
        agent = FunctionsBasedAgent(llm=Model(), message_selector=SteadyWindowMessageSelector(4000), search_k=0)
        self.options = RunOptions(agent, StepCallbacks(None), 10)
        self.asked = self.forgotten = 0
        self.scrubbing = 0.0

    async def __aenter__(self):
        self.storage = await Storage.open(self.url)
        self.scrub, self.storage.scrub = self.storage.scrub, self._scrub
        self.worker = Worker(self.storage, self.options, [self.platform])
        self.inbox = Inbox(self.storage, self.worker.wake)
        await self.worker.start()
        self.group = (await AgentContext.get_or_create(self.storage, chat_keys(GROUP))).id
        await self._ask(GROUP)
        return self

    async def __aexit__(self, *_):
        await self.worker.stop()
        await self.storage.close()

    async def measures(self):
        """Return what is measured: functions by their names, and how often each is called."""
        storage, now = self.storage, datetime.now(UTC)
        newest = await storage.read(partial(newest_turn, context_id=self.group))
        budgets = Budgets({Scope.SERVICE: parse_limits("100000000000 tokens/month")})
        payer = Payer(self.group, "bench:1", "bench:1")

        def usage(by):
            return storage.read(lambda connection: list_usage(connection, by, now.replace(day=1)), is_long=True)

        def page(connection):
            return read_turn_lines(connection, self.group, limit=PAGE, offset=0)

        return {
            "accept to answer, a chat": (self._ask, ROUNDS),
            "accept to answer, the group": (partial(self._ask, GROUP), ROUNDS),
            "sweep": (lambda: storage.read(self.worker._look), ROUNDS),  # noqa: SLF001 - it has no other name
            "conversations, a page": (lambda: list_contexts(storage, limit=PAGE + 1), ROUNDS),
            "turns that wait": (lambda: list_turns(storage), ROUNDS),
            "turns of the group, a page": (lambda: storage.read(page, is_long=True), ROUNDS),
            "a turn of the group": (lambda: read_turns(storage, self.group, newest), ROUNDS),
            "usage in all": (lambda: usage(None), ROUNDS),
            "usage by model": (lambda: usage(UsageBy.MODEL), ROUNDS),
            "usage by day": (lambda: usage(UsageBy.DAY), ROUNDS),
            "reserving in BUDGET_SERVICE": (lambda: budgets.reserve(storage, newest, payer, "growth", 10, now), ROUNDS),
            f"accept to answer beside {READERS} readers": (self._ask_beside_readers, 3),
            "accept to answer beside forgetting one of the group": (self._ask_beside_forgetting, 3),
            "forgetting a person": (partial(self._forget, self.contexts - 10), 3),
            "its bytes leave the file": (self._took_to_scrub, 1),
            "forgetting one of the group": (partial(self._forget, 20), 3),
            "start": (self._start, 3),
        }

    async def _start(self):
        """Open the database again, until a worker runs there."""
        await self.worker.stop()
        async with Storage.open(self.url) as storage:
            worker = Worker(storage, self.options, [self.platform])
            await worker.start()
            await storage.read(worker._look)  # noqa: SLF001 - it has no other name
            await worker.stop()

    async def _ask(self, chat=None):
        self.asked += 1
        self.platform.sent.clear()
        number = chat or GROUP_PEOPLE + 2 + self.asked * 37 % (self.contexts - GROUP_PEOPLE - 20)
        event = InboundEvent(f"{time.time_ns()}", chat_keys(number), time.time_ns() // 1000, b"how are you?")
        await self.inbox.accept("bench", [event])
        await self.platform.sent.wait()

    async def _ask_beside_readers(self):
        async def look():
            while True:
                await list_contexts(self.storage, limit=PAGE + 1)

        looking = [asyncio.create_task(look()) for _ in range(READERS)]
        await asyncio.sleep(0)
        since = time.perf_counter()
        for _ in range(3):
            await self._ask()
        took = (time.perf_counter() - since) / 3
        for each in looking:
            each.cancel()
        await asyncio.wait(looking)
        return took

    async def _ask_beside_forgetting(self):
        """Ask once while a person is forgotten; what that takes is measured for itself."""
        forgetting = asyncio.create_task(self._forget(40))
        await asyncio.sleep(0.05)
        since = time.perf_counter()
        await self._ask()
        took = time.perf_counter() - since
        await forgetting
        return took

    async def _forget(self, first):
        """Return how long it takes, but for the pass over SQLite's file: an answer waits 3 s for that."""
        self.forgotten += 1
        started, self.scrubbing = time.perf_counter(), 0.0
        await forget_person(self.storage, Author("bench", str(first + self.forgotten)))
        return time.perf_counter() - started - self.scrubbing

    async def _scrub(self, **options):
        started = time.perf_counter()
        is_done = await self.scrub(**options)
        self.scrubbing = time.perf_counter() - started
        return is_done

    async def _took_to_scrub(self):
        return self.scrubbing


def newest_turn(connection, context_id):
    newest = select(turns.c.id).where(turns.c.context_id == context_id).order_by(turns.c.id.desc()).limit(1)
    return connection.execute(newest).scalar_one()


async def timed(work):
    """Return milliseconds: what the work itself has measured, or how long it took."""
    started = time.perf_counter()
    measured = await work()
    return (measured if isinstance(measured, float) else time.perf_counter() - started) * 1000


async def measure(small, large):
    """Print a line for each thing: measured on both in turns, whatever else the machine has to do."""
    print("| | small | grown | ratio |\n|---|---|---|---|")
    async with small, large:
        of_large = await large.measures()
        for name, (work, rounds) in (await small.measures()).items():
            took = [(await timed(work), await timed(of_large[name][0])) for _ in range(rounds)]
            before, now = map(statistics.median, zip(*took, strict=True))
            remark = " (!)" if now > MOST_MS and now > MOST_TIMES * before else ""
            print(f"| {name} | {before:.1f} | {now:.1f} | {now / before:.1f}{remark} |", flush=True)


async def make(url, plan):
    async with Storage.open(url, migrate=True):
        pass
    started = time.perf_counter()
    await asyncio.to_thread(fill, url, plan)
    return time.perf_counter() - started


async def run(options, url, small_url):
    await make(small_url, SMALL)
    plan = Plan(options.contexts, options.messages, options.turns)
    seconds = await make(url, plan)
    sizes = f"{options.messages:,} messages, {options.turns:,} turns, {options.contexts:,} contexts"
    print(f"{sizes}, {url.partition(':')[0]}: built in {seconds:.0f} s. Milliseconds, medians:\n")
    await measure(Bench(small_url, SMALL.contexts), Bench(url, plan.contexts))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", help="an empty database; where it is on Postgres, name --small-url, too")
    parser.add_argument("--small-url", help="another one, for the small database")
    parser.add_argument("--contexts", type=int, default=100_000)
    parser.add_argument("--messages", type=int, default=1_000_000)
    parser.add_argument("--turns", type=int, default=300_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = options.url or f"sqlite:///{Path(folder) / 'grown.db'}"
        small_url = options.small_url or f"sqlite:///{Path(folder) / 'empty.db'}"
        asyncio.run(run(options, url, small_url))


if __name__ == "__main__":
    main()
