"""What a whole turn costs against a bare call of the openai client, which stores nothing: CPU and time, as ratios.

    python benchmarks/cost.py [--url sqlite:///bench.db | postgresql://…] [--messages 10 1000 10000] [--turns 40]
                              [--rounds 7] [--pieces 20] [--wire chat | responses] [--profile FILE]

A server on loopback, in a process of its own, gives everybody the same answer. The bare client and the service take
turns in the same run, so that their ratio says something on any machine. The service does all that it does by default:
it stores the question, the steps, the prompt and the answer, has a window of 20 messages and searches the chat. CPU is
that of this process alone, the database's own on Postgres not included. Each figure is the median of the rounds.
"""

import argparse
import asyncio
import cProfile
import multiprocessing
import statistics
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from model_calls import MODEL, serve
from openai import AsyncOpenAI
from sqlalchemy import insert, update

from botservice import (
    AgentContext,
    AgentService,
    FunctionsBasedAgent,
    MessageWindowMessageSelector,
    OpenAIChatLLM,
    Storage,
    tool,
)
from botservice.storage.tables.conversations import contexts, messages

WORDS = ("the harbour lamp was green when we came home and somebody had put bread on the table").split()  # noqa: SIM905
AT_ONCE = 500


@tool
def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first.
        b: The second.
    """
    return a + b


def sentence(number):
    """Return some words that differ from message to message."""
    return " ".join(WORDS[(number * step + step) % len(WORDS)] for step in range(1, 13)) + f" {number}"


async def fill(storage, context, count):
    """Give a conversation count messages, as if people had written them."""
    begun = datetime(2026, 1, 1, tzinfo=UTC)

    def write(connection, first, last):
        rows = [
            {
                "context_id": context.id,
                "position": number + 1,
                "role": "user" if number % 2 == 0 else "assistant",
                "text": sentence(number),
                "created_at": begun + timedelta(minutes=number),
            }
            for number in range(first, last)
        ]
        connection.execute(insert(messages), rows)
        connection.execute(
            update(contexts).where(contexts.c.id == context.id).values(last_position=last, message_count=last)
        )

    for first in range(0, count, AT_ONCE):
        last = min(count, first + AT_ONCE)
        await storage.write(lambda connection, first=first, last=last: write(connection, first, last))


async def spend(call, turns):
    """Return milliseconds of CPU and of time for one of so many calls."""
    cpu, clock = time.process_time(), time.perf_counter()
    for number in range(turns):
        await call(number)
    return (time.process_time() - cpu) / turns * 1000, (time.perf_counter() - clock) / turns * 1000


async def measure(options, base_url):
    """Print the table."""
    client = AsyncOpenAI(base_url=base_url, api_key="none")

    async def bare(number):
        content = [{"role": "system", "content": "You are a helpful assistant."}]
        content += [{"role": "user", "content": f"what was number {number}?"}]
        await client.chat.completions.create(model=MODEL, messages=content)

    profile = cProfile.Profile() if options.profile else None
    print(f"{options.wire}, {options.pieces} pieces, {options.turns} turns, {options.rounds} rounds")
    print("| messages | bare, ms of CPU | turn, ms of CPU | ratio | time, ratio | bytes a message |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for count in options.messages:
            path = Path(folder) / f"{count}.db"
            url = options.url or f"sqlite:///{path}"
            async with Storage.open(url, migrate=True) as storage:
                llm = OpenAIChatLLM(MODEL, base_url=base_url, api_key="none", api=options.wire)
                agent = FunctionsBasedAgent(
                    tools=[add], llm=llm, search_k=20, message_selector=MessageWindowMessageSelector(20)
                )
                service = AgentService(agent, storage)
                context = await AgentContext.get_or_create(storage, {"id": f"{count}-{time.time_ns()}"})
                await fill(storage, context, count)

                async def turn(number, service=service, context=context):
                    await service.prompt(context, f"what about number {number} and the {WORDS[number % len(WORDS)]}?")

                await spend(bare, 10)
                await spend(turn, 10)
                rows = []
                for _ in range(options.rounds):
                    own = await spend(bare, options.turns)
                    if profile is not None:
                        profile.enable()
                    rows.append((*own, *await spend(turn, options.turns)))
                    if profile is not None:
                        profile.disable()
                await llm.close()
            cpu, took = statistics.median(r[2] / r[0] for r in rows), statistics.median(r[3] / r[1] for r in rows)
            size = path.stat().st_size if path.exists() else 0
            each = size / (count + 2 * (10 + options.turns * options.rounds))
            print(
                f"| {count} | {statistics.median(row[0] for row in rows):.2f} "
                f"| {statistics.median(row[2] for row in rows):.2f} "
                f"| {cpu:.2f} | {took:.2f} | {each:.0f} |",
                flush=True,
            )
    if profile is not None:
        profile.dump_stats(options.profile)
    await client.close()


def main():
    """Start the server, and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url")
    parser.add_argument("--messages", type=int, nargs="+", default=[10, 1_000, 10_000])
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--pieces", type=int, default=20)
    parser.add_argument("--wire", choices=["chat", "responses"], default="chat")
    parser.add_argument("--profile")
    options = parser.parse_args()
    spawning = multiprocessing.get_context("spawn")
    port = spawning.Queue()
    server = spawning.Process(target=serve, args=(port, options.pieces), daemon=True)
    server.start()
    try:
        asyncio.run(measure(options, f"http://127.0.0.1:{port.get(timeout=60)}/v1"))
    finally:
        server.terminate()
        server.join()


if __name__ == "__main__":
    main()
