"""Stop it, with everything at once: hostile files and hostile answers, and another person who only says hi."""

import asyncio
import contextlib
import itertools
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from attacks.hostile_files import endless_memory, endless_work, pdf
from attacks.shapes import shapes
from attacks.telegram_bot import running
from standins.bot_api import BotApi

from botservice import Storage

FILES, ANSWERS, GREETINGS = 9, 10, 5
# What has to take 5 and 0.5 seconds on a machine of two cores that does nothing else.
LONGEST_ANSWER_SECONDS, LONGEST_STALL_SECONDS = 60.0, 10.0
MOST_BYTES = 600 * 1024**2


def answer(messages: list[Any]) -> str:
    """Answer with the shape that is asked for, and a greeting with a greeting."""
    said = str(messages[-1]["content"])
    wanted = dict(shapes())
    return wanted.get(said, "hello" if said == "hi" else "…")


def held_by_children() -> int:
    """Return the memory that the processes hold which this one has started, in bytes."""
    found = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError):
            if int(path.read_text().rpartition(")")[2].split()[1]) == os.getpid():
                found += int((path.parent / "statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return found


@contextlib.asynccontextmanager
async def watching() -> AsyncIterator[dict[str, float]]:
    """Give the longest stall of the event loop, and the most memory of children, while a block runs."""
    seen = {"stall": 0.0, "children": 0.0}

    async def watch() -> None:
        for turn in itertools.count():
            began = time.monotonic()
            await asyncio.sleep(0.01)
            seen["stall"] = max(seen["stall"], time.monotonic() - began - 0.01)
            if not turn % 20:  # looking at all processes takes longer than the turn
                seen["children"] = max(seen["children"], held_by_children())

    task = asyncio.create_task(watch())
    try:
        yield seen
    finally:
        task.cancel()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
async def test_somebody_else_is_answered_while_everything_hostile_is_worked_on(sqlite_storage: Storage) -> None:
    hostile = [endless_work(), pdf(b" " * (64 * 1024**2)), endless_memory()]  # a quick machine may read the last one
    with BotApi.running() as api:
        for chat_id in (42, *range(100, 100 + FILES), *range(200, 200 + ANSWERS)):
            api.add_private_chat(chat_id)
        async with running(api, sqlite_storage, answer), watching() as seen:
            for number in range(FILES):
                api.person_sends_document(hostile[number % len(hostile)], chat_id=100 + number, name="a.pdf")
            for number, shape in zip(range(ANSWERS), dict(shapes()), strict=False):
                api.person_says(shape, chat_id=200 + number)
            waits = []
            for count in range(1, GREETINGS + 1):
                began = time.monotonic()
                api.person_says("hi", chat_id=42)
                await api.messages(42, count, timeout=LONGEST_ANSWER_SECONDS)
                waits.append(time.monotonic() - began)
            told = [await api.messages(100 + number, 1, timeout=600) for number in range(FILES)]
    print(f"hi: {max(waits):.2f} s, stall: {seen['stall']:.2f} s, children: {seen['children'] / 1024**2:.0f} MB")  # noqa: T201 - what was measured
    assert all("couldn’t read" in each[0].text for number, each in enumerate(told) if number % len(hostile) < 2)
    assert seen["stall"] < LONGEST_STALL_SECONDS
    assert seen["children"] < MOST_BYTES
