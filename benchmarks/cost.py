"""What a whole turn costs against a bare call of the openai client, which stores nothing: CPU and time, as ratios.

    python benchmarks/cost.py [--messages 10 1000 10000] [--tools 2] [--url postgresql://…] [--turns 40] [--rounds 7]
                              [--pieces 20] [--wire chat | responses] [--profile FILE]

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
"""

import argparse
import asyncio
import contextlib
import cProfile
import statistics
import tempfile
import time
from pathlib import Path

from costs.bare import Bare
from costs.chats import make_service, new_chat, question, size
from costs.model_server import asked_since, model_server
from model_calls import MODEL
from openai import AsyncOpenAI

from botservice import OpenAIChatLLM, Storage


async def spend(call, turns):
    """Return milliseconds of CPU and of time for one of so many calls."""
    cpu, clock = time.process_time(), time.perf_counter()
    for number in range(turns):
        await call(number)
    return (time.process_time() - cpu) / turns * 1000, (time.perf_counter() - clock) / turns * 1000


class Measuring:
    """A service and the bare client, asked by turns."""

    def __init__(self, options, base_url):
        self._options = options
        self._base_url = base_url
        self._profile = cProfile.Profile() if options.profile else None

    async def show(self):
        """Print the table."""
        print(
            "| database | messages | bare, ms of CPU | streamed | turn | to the bare | to the streamed "
            "| time, to the bare | bytes a message |\n|---|---|---|---|---|---|---|---|---|"
        )
        with tempfile.TemporaryDirectory() as folder:
            for count in self._options.messages:
                urls = [f"sqlite:///{Path(folder) / f'{count}.db'}", *([self._options.url] * bool(self._options.url))]
                for url in urls:
                    await self._measure(url, count)
        if self._profile is not None:
            self._profile.dump_stats(self._options.profile)

    async def _measure(self, url, count):
        """Print the line of one database and one length of a chat."""
        options = self._options
        async with contextlib.AsyncExitStack() as stack:
            storage = await stack.enter_async_context(Storage.open(url, migrate=True))
            client = await stack.enter_async_context(AsyncOpenAI(base_url=self._base_url, api_key="none"))
            llm = OpenAIChatLLM(MODEL, base_url=self._base_url, api_key="none", api=options.wire)
            stack.push_async_callback(llm.close)
            service, context = make_service(storage, llm), await new_chat(storage, count)

            async def turn(number):
                await service.prompt(context, question(number))

            await spend(turn, 10)
            await asked_since(self._base_url)
            await turn(11)
            bare = await Bare.of_last_turn(client, self._base_url)
            assert bare.calls == options.tools + 1
            for call in (bare.at_once, bare.streamed):
                await spend(call, 10)
            before = await size(storage)
            rows = [await self._round((bare.at_once, bare.streamed, turn)) for _ in range(options.rounds)]
            added = (await size(storage) - before) / (2 * options.turns * options.rounds)
        print(f"| {url.partition(':')[0]} | {count} | {line(rows)} | {added:.0f} |", flush=True)

    async def _round(self, calls):
        """Return what each call takes; the profile is of the last one, a turn."""
        spent = [await spend(call, self._options.turns) for call in calls[:-1]]
        if self._profile is not None:
            self._profile.enable()
        spent.append(await spend(calls[-1], self._options.turns))
        if self._profile is not None:
            self._profile.disable()
        return spent


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
    parser.add_argument("--tools", type=int, default=0)
    parser.add_argument("--url")
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--pieces", type=int, default=20)
    parser.add_argument("--wire", choices=["chat", "responses"], default="chat")
    parser.add_argument("--profile")
    options = parser.parse_args()
    print(
        f"{options.wire}, {options.pieces} pieces, {options.tools} calls of tools, {options.turns} turns, "
        f"{options.rounds} rounds"
    )
    with model_server(options.pieces, options.tools) as base_url:
        asyncio.run(Measuring(options, base_url).show())


if __name__ == "__main__":
    main()
