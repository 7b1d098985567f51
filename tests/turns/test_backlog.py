"""Looking at turns from outside, and trying them again or dropping them while the worker works."""

import asyncio
import contextlib
from datetime import UTC, datetime

import pytest
from turns.bots import add, call
from turns.messenger import PATIENCE_SECONDS, HastyClock, Messenger, echo, message, office
from turns.test_replicas import until
from turns.test_worker import history
from turns.test_worker_controls import Talker

from botservice import AgentContext, LLMError
from botservice.core.errors import BotServiceError, DeliveryError, StorageError
from botservice.turns.administration import drop_turn, list_turns, retry_turn

DOWN = LLMError("no such model", is_transient=False)


def now():
    return datetime.now(UTC)


async def states(storage):
    return {each.id: each.status for each in await list_turns(storage)}


async def apologised(bot):
    await bot.messenger.until(lambda: "1" in bot.messenger.visible)
    return bot.messenger.visible["1"][0]


@pytest.mark.any_database
async def test_what_runs_waits_and_was_set_aside_is_listed_with_what_an_operator_asks(storage):
    llm = Talker("Once")
    async with office(storage, llm) as bot:
        bot.messenger.read_errors = []
        await bot.write("tell me", order=1)
        await asyncio.wait_for(llm.talking.wait(), PATIENCE_SECONDS)
        await bot.write("next", order=2)
        first, second = await list_turns(storage)
        llm.go.set()
        await bot.messenger.shows("1", "Once to the end", "re: next")
        assert await list_turns(storage) == []
    assert (first.status, second.status) == ("running", "waiting")
    assert first.transport == "messenger"
    assert first.context_keys == {"transport": "messenger", "chat_id": "1"}
    as_json = second.as_dict(now())
    assert as_json["age_seconds"] > 0
    assert (as_json["messages"], as_json["attempts"], as_json["error"]) == (1, 0, None)


@pytest.mark.any_database
async def test_the_newest_turn_is_tried_again_where_it_was(storage):
    async with office(storage, [DOWN, "now it works"]) as bot:
        await bot.write("first", order=1)
        apology = await apologised(bot)
        (listed,) = await list_turns(storage)
        assert (listed.status, listed.error) == ("set aside", "no such model")
        await retry_turn(storage, listed.id, now())
        await bot.messenger.shows("1", apology, "now it works")
    assert await history(storage) == [("user", "first"), ("assistant", "now it works")]
    assert await states(storage) == {}


async def test_where_the_chat_has_gone_on_what_was_said_is_said_again_at_its_end(storage):
    async with office(storage, [DOWN, "second answer", "first answer"]) as bot:
        await bot.write("first", order=1)
        apology = await apologised(bot)
        await bot.write("second", order=2)
        await bot.messenger.shows("1", apology, "second answer")
        (listed,) = await list_turns(storage)
        await retry_turn(storage, listed.id, now())
        await bot.messenger.shows("1", apology, "second answer", "first answer")
    assert await history(storage) == [
        ("user", "second"),
        ("assistant", "second answer"),
        ("user", "first"),
        ("assistant", "first answer"),
    ]


@pytest.mark.any_database
async def test_what_has_run_tools_is_not_run_again_after_the_chat_has_gone_on(storage):
    script = [call("add", a=1, b=2), DOWN, "second answer"]
    async with office(storage, script, tools=[add]) as bot:
        await bot.write("first", order=1)
        apology = await apologised(bot)
        await bot.write("second", order=2)
        await bot.messenger.shows("1", apology, "second answer")
        (listed,) = await list_turns(storage)
        with pytest.raises(BotServiceError, match="has run tools"):
            await retry_turn(storage, listed.id, now())
        await drop_turn(storage, listed.id, now())
        assert await list_turns(storage) == []


@pytest.mark.any_database
async def test_what_has_run_tools_goes_on_after_them_where_the_chat_has_not_gone_on(storage):
    ran = []

    async def pay() -> str:
        """Pay."""
        ran.append(1)
        return "paid"

    from botservice import tool

    script = [call("pay"), DOWN, "it is paid"]
    async with office(storage, script, tools=[tool(pay)]) as bot:
        await bot.write("pay", order=1)
        apology = await apologised(bot)
        (listed,) = await list_turns(storage)
        await retry_turn(storage, listed.id, now())
        await bot.messenger.shows("1", apology, "it is paid")
    assert ran == [1]


async def test_a_turn_that_could_not_even_be_read_is_tried_from_the_beginning(sqlite_storage):
    messenger = Messenger()
    messenger.read_errors = [RuntimeError("broken")] * 4
    async with office(sqlite_storage, echo, messenger=messenger, clock=HastyClock()) as bot:
        await bot.write("poisoned", order=1)
        apology = await apologised(bot)
        (listed,) = await list_turns(sqlite_storage)
        assert listed.error == "RuntimeError"
        await retry_turn(sqlite_storage, listed.id, bot.worker._clock())
        await messenger.shows("1", apology, "re: poisoned")


@pytest.mark.any_database
async def test_a_turn_that_waits_for_its_next_try_is_tried_now(storage):
    messenger = Messenger()
    messenger.read_errors = [RuntimeError("a hiccup")] * 3
    async with office(storage, echo, messenger=messenger) as bot:
        await bot.write("hello", order=1)

        async def has_failed_thrice():
            await retry_if_waiting(storage)
            return not messenger.read_errors

        await until(has_failed_thrice)
        await retry_if_waiting(storage)
        await messenger.shows("1", "re: hello")


async def retry_if_waiting(storage):
    for each in await list_turns(storage):
        with contextlib.suppress(BotServiceError):  # it was tried meanwhile, and is done
            await retry_turn(storage, each.id, now())


@pytest.mark.any_database
async def test_a_turn_that_waits_is_dropped_and_the_others_go_on(storage):
    llm = Talker("Once")
    async with office(storage, llm) as bot:
        await bot.write("tell me", order=1)
        await asyncio.wait_for(llm.talking.wait(), PATIENCE_SECONDS)
        await bot.write("dropped", order=2)
        await bot.write("kept", order=3)
        waiting = [each for each in await list_turns(storage) if each.status == "waiting"]
        await drop_turn(storage, waiting[0].id, now())
        llm.go.set()
        await bot.messenger.shows("1", "Once to the end", "re: kept")
    assert ("user", "dropped") not in await history(storage)


async def test_a_turn_that_is_dropped_at_the_moment_it_begins_does_not_begin(storage):
    messenger = Messenger()
    reading, go = asyncio.Event(), asyncio.Event()
    read = messenger.read

    async def slowly(event):
        reading.set()
        await go.wait()
        return await read(event)

    messenger.read = slowly
    async with office(storage, echo, messenger=messenger) as bot:
        await bot.write("dropped", order=1)
        await reading.wait()
        (listed,) = await list_turns(storage)
        await drop_turn(storage, listed.id, now())
        go.set()
        await bot.write("kept", order=2)
        await messenger.shows("1", "re: kept")


async def test_a_turn_that_runs_is_stopped_with_what_was_said_until_then(storage):
    llm = Talker("Once")
    async with office(storage, llm) as bot:
        await bot.write("tell me", order=1)
        await asyncio.wait_for(llm.talking.wait(), PATIENCE_SECONDS)
        (listed,) = await list_turns(storage)
        await drop_turn(storage, listed.id, now())
        await bot.messenger.shows("1", "Once")
    assert llm.cancelled


@pytest.mark.any_database
async def test_a_dropped_turn_that_no_worker_has_is_stopped_when_one_comes(storage):
    llm = Talker("Once")
    async with office(storage, llm) as bot:
        await bot.write("tell me", order=1)
        await asyncio.wait_for(llm.talking.wait(), PATIENCE_SECONDS)
    (listed,) = await list_turns(storage)
    await drop_turn(storage, listed.id, now())
    async with office(storage, echo) as bot:
        await bot.write("next", order=5)
        await bot.messenger.shows("1", "re: next")
    assert await states(storage) == {}


@pytest.mark.any_database
async def test_what_is_done_or_not_there_is_said(storage):
    async with office(storage, echo) as bot:
        await bot.inbox.accept("messenger", [message("hello", order=1)])
        await bot.messenger.shows("1", "re: hello")

        async def is_done():
            return await list_turns(storage) == []

        await until(is_done)
    context = await AgentContext.get_or_create(storage, {"transport": "messenger", "chat_id": "1"})
    for change in (retry_turn, drop_turn):
        with pytest.raises(BotServiceError, match="turn 1 is done"):
            await change(storage, 1, now())
        with pytest.raises(StorageError, match="no turn 77"):
            await change(storage, 77, now())
    assert len(await context.chat_history.messages()) == 2


@pytest.mark.any_database
async def test_an_answer_that_is_not_taken_stands_in_the_list(storage):
    messenger = Messenger()
    messenger.send_errors = [DeliveryError("the platform is away", retry_after_seconds=3600)]
    async with office(storage, echo, messenger=messenger) as bot:
        await bot.write("hello", order=1)

        async def is_owed():
            return "owed" in (await states(storage)).values()

        await until(is_owed)
    [listed] = await list_turns(storage)
    assert (listed.error, listed.attempts) == ("the platform is away", 1)
