"""What a whole turn costs against a bare call of the openai client, which stores nothing: CPU and time, as ratios.

    python benchmarks/cost.py [--messages 10 1000 10000] [--words 30000] [--tools 2] [--turns 40] [--rounds 7]
                              [--postgres | --url postgresql://…] [--pieces 20] [--wire chat | responses]
                              [--profile FILE]
    python benchmarks/cost.py --transport telegram | slack
    python benchmarks/cost.py --load 100 [--postgres]
    python benchmarks/cost.py --process

A server on loopback, in a process of its own, gives everybody the same answer. The bare client and the service take
turns in the same run, so that their ratio says something on any machine. The bare client sends what the service sent in
such a turn, the very same messages and tools: a bot has to send them, whoever builds it, and a request of two short
messages would compare a prompt with no prompt. It asks twice: for a whole answer, as `create()` gives it and most code
has it, and for a stream that it reads to its end, which is how the service asks. Its answers are typed, as its
documentation shows. With --tools 2 the model wants two calls of a tool, one after the other, before each answer: each
of them calls it three times.

The service does all that it does by default: it stores the question, the steps, the prompt and the answer, has a window
of 20 messages and searches the chat. CPU is that of this process with all of its threads, Postgres's own not included.
Each figure is the median of the rounds. Bytes are what the turns added to the database, divided by two for each turn.
With --postgres (a server of its own) or --url each line comes once by SQLite and once by Postgres.

With --words the chat is made of so many words, of which a few are frequent and most are rare, as people's are: a search
takes longer then. Without, it is made of a few and a number.

--transport measures from the platform's delivery, by webhook, until its method for sending was called and answered; the
platform is a process of its own. --load has so many chats ask at once; a turn's time counts from that moment, or from
the end of the turn before. --process prints what the process takes: memory, starts, bytes.
"""

import argparse
import asyncio
import contextlib
import cProfile
import gc
import signal
import statistics
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from costs.bare import Bare
from costs.chats import make_service, new_chat, question, size
from costs.load import put_under_load, show_loads
from costs.model_server import asked_since, model_server
from costs.platforms import answering
from costs.postgres import own_postgres
from costs.process import show_process
from model_calls import MODEL
from openai import AsyncOpenAI

from botservice import OpenAIChatLLM, Storage


async def spend(call, turns):
    """Return milliseconds of CPU and of time for one of so many calls."""

    async def one_by_one(numbers):
        for number in numbers:
            await call(number)

    return await spend_at_once(one_by_one, turns)


async def spend_at_once(call, turns):
    """Return milliseconds of CPU and of time for one turn, where a call does so many, one after the other."""
    cpu, clock = time.process_time(), time.perf_counter()
    await call(range(turns))
    return (time.process_time() - cpu) / turns * 1000, (time.perf_counter() - clock) / turns * 1000


class Measuring:
    """A service and the bare client, asked by turns."""

    def __init__(self, options, base_url):
        self._options = options
        self._base_url = base_url
        self._profile = cProfile.Profile() if options.profile else None

    async def show(self):
        """Print the table."""
        if self._options.load:
            return await self._show_load()
        print(
            "| database | messages | bare, ms of CPU | streamed | turn | to the bare | to the streamed "
            "| time, to the bare | bytes a message |\n|---|---|---|---|---|---|---|---|---|"
        )
        with tempfile.TemporaryDirectory() as folder:
            for count in [0] if self._options.transport else self._options.messages:
                for url in self._urls(Path(folder) / f"{count}.db"):
                    await self._measure(url, count)
        if self._profile is not None:
            self._profile.dump_stats(self._options.profile)
        return None

    def _urls(self, path):
        return [f"sqlite:///{path}", *([self._options.url] if self._options.url else [])]

    @contextlib.asynccontextmanager
    async def _open(self, url):
        """Yield a service on a database, its storage, and the openai client."""
        async with contextlib.AsyncExitStack() as stack:
            storage = await stack.enter_async_context(Storage.open(url, migrate=True))
            client = await stack.enter_async_context(AsyncOpenAI(base_url=self._base_url, api_key="none"))
            llm = OpenAIChatLLM(MODEL, base_url=self._base_url, api_key="none", api=self._options.wire)
            stack.push_async_callback(llm.close)
            yield make_service(storage, llm), storage, client

    async def _measure(self, url, count):
        """Print the line of one database and one length of a chat."""
        options = self._options
        async with self._open(url) as (service, storage, client), contextlib.AsyncExitStack() as stack:
            if options.transport:
                write = await stack.enter_async_context(answering(options.transport, service, storage))
                spend_turns = partial(spend_at_once, write)
            else:
                context = await new_chat(storage, count, options.words)
                spend_turns = partial(spend, lambda number: service.prompt(context, question(number, options.words)))
            await spend_turns(15)
            await asked_since(self._base_url)
            await spend_turns(1)
            bare = await Bare.of_last_turn(client, self._base_url)
            assert bare.calls == options.tools + 1
            for call in (bare.at_once, bare.streamed):
                await spend(call, 10)
            collect_and_freeze()
            before = await size(storage)
            rows = [await self._round(bare, spend_turns) for _ in range(options.rounds)]
            added = (await size(storage) - before) / (2 * options.turns * options.rounds)
        print(f"| {url.partition(':')[0]} | {count} | {line(rows)} | {added:.0f} |", flush=True)

    async def _round(self, bare, spend_turns):
        """Return what each call takes; the profile is of the last one, a turn."""
        spent = [await spend(call, self._options.turns) for call in (bare.at_once, bare.streamed)]
        if self._profile is not None:
            self._profile.enable()
        spent.append(await spend_turns(self._options.turns))
        if self._profile is not None:
            self._profile.disable()
        return spent

    async def _show_load(self):
        """Print what many chats at once do: by the bare client and on each database, all of them in each round."""
        options, found = self._options, {}
        async with contextlib.AsyncExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            loads = {}
            for url in self._urls(Path(folder) / "load.db"):
                service, storage, client = await stack.enter_async_context(self._open(url))
                chats = [await new_chat(storage, 0) for _ in range(options.load)]
                loads[url.partition(":")[0]] = [partial(ask, service, context) for context in chats]
            own = next(iter(loads.values()))
            await put_under_load(own, 1)
            await asked_since(self._base_url)
            await own[0](0)
            bare = await Bare.of_last_turn(client, self._base_url)
            loads = {"bare": [bare.at_once] * options.load, "bare, streamed": [bare.streamed] * options.load, **loads}
            collect_and_freeze()
            for _ in range(options.rounds):
                for name, turns in loads.items():
                    await put_under_load(turns, 1)  # some connections were closed while the others asked
                    found.setdefault(name, []).append(await put_under_load(turns, options.turns))
        show_loads(found)


def collect_and_freeze():
    """Have full collections pass over what is loaded, as `botservice serve` does: one takes half as long as a round."""
    gc.collect()
    gc.freeze()


async def ask(service, context, number):
    """Ask in a chat."""
    await service.prompt(context, question(number))


def line(rows):
    """Return the columns of figures: of each kind of call, and of the turn to the others."""

    def middle(figure):
        return f"{statistics.median(map(figure, rows)):.2f}"

    took = [middle(lambda row, kind=kind: row[kind][0]) for kind in range(3)]
    ratios = [middle(lambda row, kind=kind: row[2][0] / row[kind][0]) for kind in range(2)]
    return " | ".join([*took, *ratios, middle(lambda row: row[2][1] / row[0][1])])


def main():
    """Start the server, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, nargs="+", default=[10, 1_000, 10_000])
    parser.add_argument("--words", type=int, default=0)
    parser.add_argument("--tools", type=int, default=0)
    database = parser.add_mutually_exclusive_group()
    database.add_argument("--url")
    database.add_argument("--postgres", action="store_true")
    parser.add_argument("--transport", choices=["telegram", "slack"])
    parser.add_argument("--load", type=int, metavar="CHATS")
    parser.add_argument("--process", action="store_true")
    parser.add_argument("--turns", type=int)
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--pieces", type=int, default=20)
    parser.add_argument("--wire", choices=["chat", "responses"], default="chat")
    parser.add_argument("--profile")
    options = parser.parse_args()
    if options.words and (options.process or options.transport or options.load):
        parser.error("--words goes with --messages alone")
    if options.process:
        return show_process()
    options.turns = options.turns or (3 if options.load else 40)
    options.rounds = options.rounds or (3 if options.load else 7)
    print(
        f"{options.wire}, {options.pieces} pieces, {options.tools} calls of tools, {options.turns} turns, "
        f"{options.rounds} rounds" + f", {options.load} chats at once" * bool(options.load)
    )
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that the servers are ended, too
    with contextlib.ExitStack() as stack:
        if options.postgres:
            options.url = stack.enter_context(own_postgres())
        base_url = stack.enter_context(model_server(options.pieces, options.tools))
        asyncio.run(Measuring(options, base_url).show())
    return None


if __name__ == "__main__":
    main()
