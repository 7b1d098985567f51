"""What was read of a turn that has gone on since then does not run it again, and changes nothing of it."""

import asyncio
import contextlib

import pytest
from sqlalchemy import select
from turns.bots import call
from turns.messenger import PATIENCE_SECONDS, office

from botservice import LLMError, ScriptedChatLLM, tool
from botservice.core.errors import ClaimLost
from botservice.storage.tables.conversations import deliveries, messages, steps, turns

pytestmark = pytest.mark.any_database
CALLS = 3


def read_rows(connection):
    tables = (turns, steps, messages, deliveries)
    return [connection.execute(select(each).order_by(each.c.id)).all() for each in tables]


@contextlib.asynccontextmanager
async def scene(storage, ending):
    """Yield a bot, the list of its tool's runs, its model, and what there was to do before each thing it did."""
    views, runs = [], []

    async def look():
        find = bot.worker._context_work.next.find
        views.append(await storage.read(lambda connection: find(connection, context_id=1, gives_way=False)))

    async def reply(_):
        await look()
        return call("note") if len(runs) < CALLS else await ending(bot)

    @tool
    async def note() -> str:
        """Note something."""
        runs.append("run")
        return "noted"

    llm = ScriptedChatLLM(reply)
    async with office(storage, llm, tools=[note], is_started=False) as bot:
        await bot.write("question", order=1)
        await look()
        yield bot, runs, llm, views


async def do(bot, work):
    """Do what was read earlier; return whether it was refused as such."""
    claim = await bot.storage.claims.try_claim(1)
    try:
        await bot.worker._context_work.do(work, claim)
    except ClaimLost:
        return True
    finally:
        await bot.storage.claims.release(claim)
    return False


async def answer(_):
    return "answer"


async def fail(_):
    raise LLMError("the key is revoked", is_transient=False)


async def be_stopped(_):
    await asyncio.Event().wait()


@pytest.mark.parametrize("ending", [answer, fail, be_stopped], ids=lambda each: each.__name__)
async def test_a_turn_that_has_ended_is_not_run_by_what_was_read_before(storage, ending):
    is_near_end = asyncio.Event()

    async def end(bot):
        await (bot.stop_turn(order=2) if ending is be_stopped else asyncio.sleep(0))
        is_near_end.set()
        return await ending(bot)

    async with scene(storage, end) as (bot, runs, llm, views):
        await bot.worker.start()
        await is_near_end.wait()
        await bot.worker.stop(grace_seconds=PATIENCE_SECONDS)
        assert len(views) == CALLS + 2
        before = await storage.read(read_rows)
        assert [await do(bot, work) for work in views] == [False, *[True] * (CALLS + 1)]
        assert await storage.read(read_rows) == before
    assert len(llm.prompts) == CALLS + 1
    assert len(runs) == CALLS


async def test_a_turn_that_runs_is_not_run_by_what_was_read_at_an_earlier_step(storage):
    reached = asyncio.Event()

    async def wait(_):
        reached.set()
        await asyncio.Event().wait()

    async with scene(storage, wait) as (bot, runs, llm, views):
        await bot.worker.start()
        await reached.wait()
        await bot.worker.stop()  # cut off: another process would go on with it
        before = await storage.read(read_rows)
        assert [await do(bot, work) for work in views[:-1]] == [False, *[True] * CALLS]
        assert await storage.read(read_rows) == before
    assert len(llm.prompts) == CALLS + 1
    assert len(runs) == CALLS
