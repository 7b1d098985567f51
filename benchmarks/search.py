"""How fast search is, what it costs in memory, and how long it holds up the event loop.

    python benchmarks/search.py [--url sqlite:///… | postgresql://…] [--sizes 1000,10000,100000]
                                [--contexts 10000 --messages 100 --searches 20000] [--vectors 512]

Fills a database (a temporary SQLite file unless told otherwise; a Postgres one must be migrated), then measures in one
chat of each size: the first search, which builds the index, the first one in another process (of a very long chat, more
is written down by then), a warm one, one after a new message, one after a deletion; then in many chats: searches of
chats at random. Each figure stands twice: wall time as the caller sees it, and CPU time of the process, which is what
remains of it on a quiet machine. The gap is how long the event loop, ticking every millisecond, was held up at most, in
the same two times; the noise is the gap while nothing is searched. As in a service that runs, what was imported is
frozen, so that the garbage collector does not walk through it again and again.
"""

import argparse
import asyncio
import contextlib
import gc
import random
import resource
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from sqlalchemy import insert, update

from botservice import AgentContext, ChatHistory, Storage
from botservice.history.finding import SearchIndexes
from botservice.history.vectors import QuestionVectors
from botservice.search.grammar import FUNCTION_WORDS
from botservice.storage.tables.conversations import contexts, messages, vectors

START = datetime(2024, 1, 1, tzinfo=UTC)
TICK_SECONDS = 0.001
CHANCE = random.Random(1)
COMMON = sorted(FUNCTION_WORDS["en"])[:60]


def invent_words(count: int) -> list[str]:
    letters = "etaoinshrdlucmfwypvbgk"
    return ["".join(CHANCE.choices(letters, k=CHANCE.randint(3, 10))) for _ in range(count)]


WORDS = invent_words(60_000)
RARITY = np.cumsum(1 / np.arange(5, len(WORDS) + 5)).tolist()


def invent_text() -> str:
    words = CHANCE.choices(WORDS, cum_weights=RARITY, k=CHANCE.randint(2, 14)) + CHANCE.choices(COMMON, k=8)
    CHANCE.shuffle(words)
    return " ".join(words) + CHANCE.choice((".", ".", "!", "?"))


def invent_question() -> str:
    words = CHANCE.choices(WORDS[:3_000], k=4) + CHANCE.choices(COMMON, k=4)
    CHANCE.shuffle(words)
    return " ".join(words) + "?"


class Random:
    """An embedder that takes no time."""

    def __init__(self, dim: int) -> None:
        self.model_key, self.dim = "random", dim

    async def embed_documents(self, texts):
        return np.random.default_rng(1).normal(size=(len(texts), self.dim))

    async def embed_query(self, text):
        return (await self.embed_documents([text]))[0]


async def fill(storage: Storage, context_id: int, count: int, dim: int) -> None:
    chance = np.random.default_rng(context_id)
    for first in range(0, count, 2_000):
        rows = [
            {
                "context_id": context_id,
                "position": n + 1,
                "role": "user" if n % 2 else "assistant",
                "text": invent_text(),
                "author_name": "Ann" if n % 2 else None,
                "created_at": START + timedelta(minutes=7 * n),
            }
            for n in range(first, min(count, first + 2_000))
        ]

        def write(connection, rows=rows):
            ids = connection.execute(insert(messages).returning(messages.c.id), rows).scalars().all()
            if dim:
                matrix = chance.normal(size=(len(ids), dim)).astype("<f2")
                new = [
                    {"context_id": context_id, "message_id": number, "model_key": "random", "data": row.tobytes()}
                    for number, row in zip(ids, matrix, strict=True)
                ]
                connection.execute(insert(vectors), new)
            connection.execute(
                update(contexts).where(contexts.c.id == context_id).values(last_position=rows[-1]["position"])
            )

        await storage.write(write)


class Cost(NamedTuple):
    """Milliseconds."""

    wall: float
    cpu: float

    @classmethod
    def since(cls, start: tuple[float, float]) -> "Cost":
        return cls(1e3 * (time.perf_counter() - start[0]), 1e3 * (time.process_time() - start[1]))


def now() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()


@contextlib.asynccontextmanager
async def watching(gaps: list[Cost]):
    """Note how late each tick of the event loop comes."""

    async def tick() -> None:
        while True:
            last = now()
            await asyncio.sleep(TICK_SECONDS)
            gaps.append(Cost.since(last))

    ticking = asyncio.create_task(tick())
    await asyncio.sleep(0.05)
    gaps.clear()
    try:
        yield
    finally:
        ticking.cancel()
        await asyncio.wait([ticking])


async def timed(work) -> Cost:
    start = now()
    await work
    return Cost.since(start)


def percentile(costs: list[Cost], share: float) -> str:
    place = min(len(costs) - 1, int(len(costs) * share))
    wall, cpu = (sorted(values)[place] for values in zip(*costs, strict=True))
    return f"{wall:.1f} ({cpu:.1f})"


async def warm_up(storage: Storage) -> None:
    """Load what is loaded once in a process, and leave it out of the garbage collector's walks."""
    context = await AgentContext.get_or_create(storage, {"warm": "up"})
    await context.chat_history.append_user_message("The first one of all")
    await context.chat_history.search("What was the first one?")
    gc.collect()
    gc.freeze()


async def one_chat(storage: Storage, size: int, dim: int, table: Table) -> None:
    context = await AgentContext.get_or_create(storage, {"size": str(size), "run": str(time.time_ns())})
    await fill(storage, context.id, size, dim)
    history, indexes = context.chat_history, SearchIndexes.of(storage)
    indexes.question_vectors = QuestionVectors(Random(dim)) if dim else None
    await warm_up(storage)
    noise: list[Cost] = []
    async with watching(noise):
        await asyncio.sleep(1)
    gaps: list[Cost] = []
    before = indexes.size_bytes
    async with watching(gaps):
        first = await timed(history.search("the first question is about nothing"))
        cold_gap = percentile(gaps, 1)
        gaps.clear()
        warm = [await timed(history.search(invent_question(), 10)) for _ in range(300)]
        warm_gap = percentile(gaps, 1)
        gaps.clear()
        added = []
        for n in range(30):
            await history.append_user_message(f"{invent_text()} {n}")
            added.append(await timed(history.search(invent_question(), 10)))
        hit = (await history.search(WORDS[0]))[:1]
        await history.delete_messages([each.message.id for each in hit])
        deleted = await timed(history.search(invent_question(), 10))
        changed_gap = percentile(gaps, 1)
    size_bytes = indexes.size_bytes - before
    indexes.forget(context.id)
    again = await timed(history.search("the first question is about nothing"))
    table.add_row(
        f"{size:,}",
        percentile([first], 1),
        percentile([again], 1),
        percentile(warm, 0.5),
        percentile(warm, 0.95),
        percentile(added, 0.95),
        percentile([deleted], 1),
        f"{size_bytes / 1e6:.1f}",
        cold_gap,
        warm_gap,
        changed_gap,
        percentile(noise, 1),
    )


async def many_chats(storage: Storage, count: int, size: int, searches: int, console: Console) -> None:
    start, ids = time.perf_counter(), []
    for number in range(count):
        context = await AgentContext.get_or_create(storage, {"chat": str(number), "run": str(time.time_ns())})
        ids.append(context.id)
        await fill(storage, context.id, size, 0)
    console.print(f"{count * size:,} messages in {count:,} chats, written in {time.perf_counter() - start:.0f} s")
    indexes = SearchIndexes.of(storage)
    gaps: list[Cost] = []
    indexes.question_vectors = None
    await warm_up(storage)
    table = Table(title="searches in chats at random, ms of wall time (of CPU)")
    for name in ("searches", "p50", "p95", "longest", "indexes", "MB of indexes", "MB of the process"):
        table.add_column(name, justify="right")
    async with watching(gaps):
        for part in range(5):
            times = [
                await timed(ChatHistory(storage, CHANCE.choice(ids)).search(invent_question()))
                for _ in range(searches // 5)
            ]
            table.add_row(
                f"{(part + 1) * len(times):,}",
                percentile(times, 0.5),
                percentile(times, 0.95),
                percentile(times, 1),
                f"{len(indexes):,}",
                f"{indexes.size_bytes / 1e6:.0f}",
                f"{resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f}",
            )
    console.print(table)
    console.print(f"longest gap of the event loop, ms: {percentile(gaps, 1)}")


async def measure(options: argparse.Namespace, url: str) -> None:
    console = Console(width=170)
    async with Storage.open(url) as storage:
        table = Table(title=f"one chat, {storage.where.url.get_backend_name()}, ms of wall time (of CPU)")
        columns = (
            "messages",
            "first",
            "again",
            "warm p50",
            "warm p95",
            "after a new one p95",
            "after a deletion",
            "MB",
        )
        for name in (*columns, "gap: first", "gap: warm", "gap: changes", "gap: noise"):
            table.add_column(name, justify="right")
        for size in [int(part) for part in options.sizes.split(",") if part]:
            await one_chat(storage, size, options.vectors, table)
            gc.collect()
        console.print(table)
        if options.contexts:
            await many_chats(storage, options.contexts, options.messages, options.searches, console)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url")
    parser.add_argument("--sizes", default="1000,10000,100000")
    parser.add_argument("--contexts", type=int, default=0)
    parser.add_argument("--messages", type=int, default=100, help="in each of the contexts")
    parser.add_argument("--searches", type=int, default=20_000, help="in these chats")
    parser.add_argument("--vectors", type=int, default=0, help="dimensions of the messages' vectors; 0 for none")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(options, options.url or f"sqlite:///{Path(folder) / 'search.db'}"))


if __name__ == "__main__":
    main()
