"""Stopping a turn, and streams that are visible while it runs."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import func, select, update
from turns.messenger import PATIENCE_SECONDS, Messenger, echo, office
from turns.test_worker import history

from botservice import ScriptedChatLLM
from botservice.core.states import EventKind
from botservice.llm.chat import ChatResponse
from botservice.storage.tables.conversations import events, turns

HOUR = timedelta(hours=1)


class Talker:
    """A model that says something, then waits until it is let go."""

    model = "talker"

    def __init__(self, said: str) -> None:
        self.said = said
        self.talking = asyncio.Event()
        self.go = asyncio.Event()
        self.cancelled = False

    async def chat(self, messages, tools=(), *, on_text=None):
        if messages[-1]["content"] != "tell me":
            return ChatResponse(f"re: {messages[-1]['content']}")
        if on_text is not None and self.said:
            on_text(self.said)
        self.talking.set()
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return ChatResponse(f"{self.said} to the end")


@pytest.mark.any_database
async def test_a_stop_cancels_the_model_call_and_keeps_what_was_said(storage):
    llm = Talker("Once upon a time")
    async with office(storage, llm) as bot:
        await bot.write("tell me", order=1)
        await asyncio.wait_for(llm.talking.wait(), PATIENCE_SECONDS)
        await bot.stop_turn(order=2)
        await bot.messenger.shows("1", "Once upon a time")
        assert llm.cancelled
        await bot.write("next", order=3)
        await bot.messenger.shows("1", "Once upon a time", "re: next")
    assert (await history(storage))[:2] == [("user", "tell me"), ("assistant", "Once upon a time")]


@pytest.mark.any_database
async def test_a_stop_before_anything_was_said_leaves_the_question_without_an_answer(storage):
    llm = Talker("")
    async with office(storage, llm) as bot:
        await bot.write("tell me", order=1)
        await asyncio.wait_for(llm.talking.wait(), PATIENCE_SECONDS)
        await bot.stop_turn(order=2)
        await bot.write("next", order=3)
        await bot.messenger.shows("1", "re: next")


@pytest.mark.any_database
async def test_a_stop_while_nothing_runs_stops_nothing_that_comes_later(storage):
    async with office(storage, echo) as bot:
        await bot.stop_turn(order=1)
        await bot.write("hello", order=2)
        await bot.messenger.shows("1", "re: hello")


@pytest.mark.any_database
async def test_a_stop_does_not_queue_behind_the_turn_nor_reach_another_chat(storage):
    llm = Talker("Once")
    async with office(storage, llm) as bot:
        for order, chat in ((1, "1"), (2, "2")):
            await bot.write("tell me", chat=chat, order=order)
            await asyncio.wait_for(llm.talking.wait(), PATIENCE_SECONDS)
            llm.talking.clear()
        await bot.stop_turn(chat="1", order=3)
        await bot.messenger.shows("1", "Once")
        llm.go.set()
        await bot.messenger.shows("2", "Once to the end")


async def test_a_stop_that_came_while_no_process_ran_stops_the_turn_that_was_cut_off(storage):
    llm = Talker("")
    async with office(storage, llm) as bot:
        await bot.write("tell me", order=1)
        await asyncio.wait_for(llm.talking.wait(), PATIENCE_SECONDS)
    async with office(storage, ScriptedChatLLM(echo), is_started=False) as bot:
        await bot.stop_turn(order=2)
        await bot.write("next", order=3)
        await bot.worker.start()
        await bot.messenger.shows("1", "re: next")


class Growing:
    """A live view that opens a visible message with the first piece of text."""

    def __init__(self, messenger, context_keys, record) -> None:
        self._messenger = messenger
        self._chat = context_keys["chat_id"]
        self._record = record
        self._opening = None
        self.opened = asyncio.Event()

    def on_text(self, piece):
        if self._opening is None:
            self._opening = asyncio.ensure_future(self._open(piece))

    def on_activity(self, activity):
        pass

    def on_progress(self, call, text):
        pass

    def on_restart(self):
        pass

    async def _open(self, piece):
        await self._record.opening()
        await self._record.opened(await self._messenger.show(self._chat, f"{piece}…"))
        self.opened.set()

    async def close(self):
        if self._opening is not None:
            await self._opening


async def test_the_answer_takes_the_place_of_the_stream_that_grew(storage):
    messenger = Messenger()
    messenger.make_live = Growing
    llm = Talker("Once")
    async with office(storage, llm, messenger=messenger) as bot:
        await bot.write("tell me", order=1)
        await messenger.shows("1", "Once…")
        await asyncio.wait_for(messenger.lives[0].opened.wait(), PATIENCE_SECONDS)
        llm.go.set()
        await messenger.shows("1", "Once to the end")


@pytest.mark.any_database
async def test_a_stream_that_was_cut_off_is_replaced_by_the_next_worker_and_not_repeated(storage):
    messenger = Messenger()
    messenger.make_live = Growing
    llm = Talker("Once")
    async with office(storage, llm, messenger=messenger) as bot:
        await bot.write("tell me", order=1)
        await messenger.shows("1", "Once…")
        await asyncio.wait_for(messenger.lives[0].opened.wait(), PATIENCE_SECONDS)
    messenger.make_live = lambda *_: None
    async with office(storage, echo, messenger=messenger):
        await messenger.shows("1", "re: tell me")


async def unhandled(storage):
    """Return how many stops have not taken effect."""
    query = select(func.count()).where(events.c.kind == EventKind.STOP.value, events.c.handled_at.is_(None))
    return await storage.read(lambda connection: connection.execute(query).scalar_one())


async def until_handled(storage):
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await unhandled(storage):  # noqa: ASYNC110 - a database tells nobody
            await asyncio.sleep(0.01)


@pytest.mark.any_database
async def test_a_stop_is_about_what_has_begun_and_not_about_what_waits(storage):
    llm = Talker("Once")
    async with office(storage, llm) as bot:
        await bot.write("tell me", order=1)
        await asyncio.wait_for(llm.talking.wait(), PATIENCE_SECONDS)
        await bot.write("and this?", order=2)
        await bot.stop_turn(order=3)
        await bot.messenger.shows("1", "Once", "re: and this?")
        await until_handled(storage)


async def test_a_stop_ends_a_turn_that_waits_for_its_next_try(storage):
    async with office(storage, echo, is_started=False) as bot:
        await bot.write("hello", order=1)
        now = datetime.now(UTC)
        failed = update(turns).values(status="running", started_at=now, due_at=now + HOUR, due_set_at=now, attempts=1)
        await storage.write(lambda connection: connection.execute(failed))
        await bot.worker.start()
        await bot.stop_turn(order=2)
        await bot.write("next", order=3)
        await bot.messenger.shows("1", "re: next")
        await until_handled(storage)


@pytest.mark.any_database
async def test_a_stop_that_nobody_may_give_ends_nothing_and_is_over_with_the_turn(storage):
    llm = Talker("Once")
    async with office(storage, llm) as bot:

        async def none(stops, keys):
            return None

        bot.worker._context_work._controls.find_newest = none
        await bot.write("tell me", order=1)
        await asyncio.wait_for(llm.talking.wait(), PATIENCE_SECONDS)
        await bot.stop_turn(order=2)
        llm.go.set()
        await bot.messenger.shows("1", "Once to the end")
        await until_handled(storage)
