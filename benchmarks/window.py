"""What a window of 20 messages, and a whole prompt, cost in a chat of 100,000 messages against one of 100.

Run it with `python benchmarks/window.py [DATABASE_URL …]`; without an address it makes an SQLite file of its own.
It fails where the long chat costs 1.3 times as much as the short one.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from sqlalchemy import insert, update

from botservice import (
    AgentContext,
    FunctionsBasedAgent,
    MessageWindowMessageSelector,
    ScriptedChatLLM,
    Storage,
    TokenWindowMessageSelector,
)
from botservice.llm.tokens import counter_for
from botservice.storage.tables.conversations import contexts, messages

SHORT, LONG = 100, 100_000
LIMIT = 1.3
ROUNDS = 400
WORDS = ("train", "Lisbon", "leaves", "nine", "sister", "Ann", "harbour", "before", "home", "ticket", "platform")


async def fill(storage, name, count):
    """Return a chat of count messages."""
    context = await AgentContext.get_or_create(storage, {"benchmark": name, "messages": str(count)})
    encoding = counter_for().name
    start = datetime(2020, 1, 1, tzinfo=UTC)

    def write(connection):
        rows = []
        for number in range(count):
            text = " ".join(WORDS[(number * step) % len(WORDS)] for step in range(3, 15)) + f" {number}"
            rows.append(
                {
                    "context_id": context.id,
                    "position": number + 1,
                    "role": ("user", "assistant")[number % 2],
                    "text": text,
                    "created_at": start + timedelta(minutes=number),
                    "token_count": 14,
                    "token_encoding": encoding,
                }
            )
        connection.execute(insert(messages), rows)
        connection.execute(update(contexts).where(contexts.c.id == context.id).values(last_position=count))

    await storage.write(write)
    await context.refresh()
    return context


async def medians(*actions):
    """Return the median milliseconds of each action; they take turns, so that all meet the same weather."""
    taken = [[] for _ in actions]
    for _ in range(ROUNDS):
        for action, times in zip(actions, taken, strict=True):
            started = time.perf_counter()
            await action()
            times.append((time.perf_counter() - started) * 1000)
    return [statistics.median(times[ROUNDS // 10 :]) for times in taken]


async def measure(url):
    """Print what each kind of reading costs and return the largest ratio of long to short."""
    async with Storage.open(url, migrate=True) as storage:
        name = f"{time.time()}"
        short, long = [await fill(storage, name, count) for count in (SHORT, LONG)]
        agents = {
            "prompt without search": FunctionsBasedAgent(
                llm=ScriptedChatLLM([]), message_selector=MessageWindowMessageSelector(20), search_k=0
            ),
            "prompt with search": FunctionsBasedAgent(
                llm=ScriptedChatLLM([]), message_selector=MessageWindowMessageSelector(20)
            ),
        }
        actions = {
            "window of 20 messages": lambda context: context.chat_history.select_messages(
                MessageWindowMessageSelector(20)
            ),
            "window of 280 tokens": lambda context: context.chat_history.select_messages(
                TokenWindowMessageSelector(280)
            ),
            "newest 20 messages": lambda context: context.chat_history.messages(20),
            "loading the context": lambda context: context.refresh(),
        }
        actions.update({name: agent.build_prompt for name, agent in agents.items()})
        for context in (short, long):
            started = time.perf_counter()
            await context.chat_history.search("When does the train to Lisbon leave?")
            count = SHORT if context is short else LONG
            print(f"  first search in {count:>7,} messages: {(time.perf_counter() - started) * 1000:8.1f} ms")
        worst = 0.0
        for what, action in actions.items():
            small, large = await medians(lambda action=action: action(short), lambda action=action: action(long))
            is_bounded = what != "prompt with search"  # it looks through the whole chat: search.md has its own limits
            worst = max(worst, large / small if is_bounded else 0.0)
            print(f"  {what:<22} {small:7.3f} ms -> {large:7.3f} ms   ratio {large / small:.2f}")
        return worst


async def main(urls):
    """Measure every database and return the exit code."""
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for url in urls or [f"sqlite:///{Path(folder) / 'window.db'}"]:
            print(f"{url.partition(':')[0]}: {SHORT:,} -> {LONG:,} messages")
            worst = max(worst, await measure(url))
    print(f"largest ratio {worst:.2f}, must be below {LIMIT}")
    return int(worst >= LIMIT)


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
