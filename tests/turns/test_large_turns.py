"""Large messages are worked on a few at a time: memory is bounded, and small ones do not wait for them."""

import asyncio
import tracemalloc

import pytest
from turns.messenger import office

from botservice import Storage

SIZE = 600_000
TIMES, AT_ONCE = 40, 16


@pytest.mark.slow
async def test_large_messages_take_no_more_memory_however_many_come_and_small_ones_are_answered(
    sqlite_storage: Storage,
) -> None:
    go, is_asked, asked = asyncio.Event(), asyncio.Event(), list[str]()

    async def model(prompt):
        said = prompt[-1]["content"]
        if "small" not in said:
            asked.append(said[:9])
            is_asked.set() if len(asked) == AT_ONCE else None
            await go.wait()
        return "yes"

    async with office(sqlite_storage, model, max_turns=AT_ONCE + TIMES) as bot:
        tracemalloc.start()
        try:
            for number in range(TIMES):
                await bot.write(f"large {number:2} " + "x" * SIZE, chat=str(number), order=number)
            async with asyncio.timeout(60):
                await is_asked.wait()
            await bot.write("small", chat="small", order=TIMES)
            await bot.messenger.shows("small", "yes")
            assert len(asked) == AT_ONCE
            assert tracemalloc.get_traced_memory()[0] < 4 * AT_ONCE * SIZE
        finally:
            tracemalloc.stop()
        go.set()
        await bot.messenger.until(lambda: len(bot.messenger.visible) == TIMES + 1)
    assert len(set(asked)) == TIMES
