"""An operator's chat is told that questions fail, and that they are answered again: once for all processes."""

import asyncio
import contextlib
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select
from standins.patience import PATIENT
from turns.messenger import Messenger, SetClock, office

from botservice import AgentContext, AgentService, FunctionsBasedAgent, ScriptedChatLLM, Storage
from botservice.background.alerts import FailureAlerts
from botservice.core.chat_addresses import ChatAddress
from botservice.core.errors import LLMError, StorageError
from botservice.storage.tables.conversations import messages

OPERATORS = ChatAddress(None, {"transport": "messenger", "chat_id": "ops"})
START = datetime(2026, 3, 1, 12, tzinfo=UTC)


class World:
    """A bot whose model fails while it is told to, and the alerts of one process or of several."""

    def __init__(self, bot, clock, alerts):
        self.bot, self.clock, self.alerts = bot, clock, alerts
        self.number = 0

    async def ask(self, *outcomes):
        """Ask a question for each outcome, and return when each has ended."""
        for outcome in outcomes:
            self.number += 1
            chat = f"{self.number}"
            await self.bot.write(outcome, chat=chat, order=1)
            await self.bot.messenger.until(lambda chat=chat: chat in self.bot.messenger.visible)
            self.clock.now += timedelta(seconds=1)

    def told(self):
        return self.bot.messenger.visible.get("ops", [])

    async def until_told(self, count):
        await self.bot.messenger.until(lambda: len(self.told()) >= count)
        assert len(self.told()) == count


@contextlib.asynccontextmanager
async def world(storage, messenger=None):
    clock = SetClock(START)

    def model(conversation):
        if conversation[-1]["content"] == "fails":
            raise LLMError("the key was revoked", is_transient=False)
        return "answered"

    async with office(storage, model, messenger=messenger, clock=clock) as bot:
        yield World(bot, clock, FailureAlerts(storage, OPERATORS, clock, bot.worker))


@pytest.mark.any_database
async def test_five_failures_within_ten_minutes_are_told_once_and_that_they_are_over(storage):
    async with world(storage) as town:
        await town.ask(*["fails"] * 4)
        assert await town.alerts.look() is None
        await town.ask("fails")
        assert (await town.alerts.look()).failed == 5
        await town.ask(*["fails"] * 3)
        assert await town.alerts.look() is None
        await town.until_told(1)
        assert "Failed questions in the last 10 minutes: 5" in town.told()[0]
        assert "`botservice turns retry --all --failed-since 2026-03-01T12:00`" in town.told()[0]
        await town.ask("works")
        assert (await town.alerts.look()).is_over
        assert await town.alerts.look() is None
        await town.until_told(2)
        assert town.told()[1].startswith("✅ Questions are being answered again.")


async def test_failures_that_are_spread_over_more_than_ten_minutes_are_not_told(storage):
    async with world(storage) as town:
        for _ in range(8):
            await town.ask("fails")
            town.clock.now += timedelta(minutes=3)
            assert await town.alerts.look() is None


async def test_what_goes_on_failing_is_told_again_after_an_hour_and_not_before(storage):
    async with world(storage) as town:
        await town.ask(*["fails"] * 5)
        assert await town.alerts.look()
        town.clock.now += timedelta(minutes=58)
        await town.ask(*["fails"] * 5)
        assert await town.alerts.look() is None
        town.clock.now += timedelta(minutes=3)
        again = await town.alerts.look()
        assert (again.is_over, again.failed) == (False, 5)
        assert again.since == START, "since when it has gone on"


async def test_after_it_was_over_the_next_alert_waits_for_the_hour_too(storage):
    async with world(storage) as town:
        await town.ask(*["fails"] * 5)
        assert await town.alerts.look()
        await town.ask("works")
        assert (await town.alerts.look()).is_over
        await town.ask(*["fails"] * 6)
        assert await town.alerts.look() is None
        town.clock.now += timedelta(hours=1)
        await town.ask(*["fails"] * 5)
        assert await town.alerts.look()


async def test_where_some_fail_and_others_do_not_one_answer_shows_nothing(storage):
    async with world(storage) as town:
        await town.ask(*["fails", "works", "works"] * 5)
        assert await town.alerts.look()
        await town.ask("works")
        assert await town.alerts.look() is None
        await town.ask(*["works"] * 8)
        assert (await town.alerts.look()).is_over


async def test_neither_the_alert_itself_nor_a_message_of_a_program_counts_as_an_answer(storage):
    async with world(storage) as town:
        await town.ask(*["fails"] * 5)
        assert await town.alerts.look()
        await town.until_told(1)
        context = await AgentContext.get_or_create(storage, {"transport": "messenger", "chat_id": "other"})
        await AgentService(FunctionsBasedAgent(llm=ScriptedChatLLM([])), storage).send(context, "news")
        assert await town.alerts.look() is None


async def test_a_running_process_tells_it_by_itself_and_looks_at_its_start(storage):
    async with world(storage) as town:
        await town.ask(*["fails"] * 5)
        async with town.alerts.running():
            await town.until_told(1)
            await town.ask("works")
            await town.until_told(2)


async def test_an_answer_in_one_process_ends_what_another_one_has_told(storage):
    async with world(storage) as town:
        await town.ask(*["fails"] * 5)
        assert await town.alerts.look()
        other = FailureAlerts(storage, OPERATORS, town.clock, town.bot.worker)
        await town.ask("works")
        assert (await other.look()).is_over


async def test_many_processes_tell_it_once(postgres_url):
    async with contextlib.AsyncExitStack() as stack:
        storages = [await stack.enter_async_context(Storage.open(postgres_url, limits=PATIENT)) for _ in range(3)]
        town = await stack.enter_async_context(world(storages[0]))
        processes = [FailureAlerts(each, OPERATORS, town.clock, town.bot.worker) for each in storages for _ in range(3)]
        await town.ask(*["fails"] * 5)
        told = await asyncio.gather(*(each.look() for each in processes))
        assert sum(each is not None for each in told) == 1
        await town.ask("works")
        told = await asyncio.gather(*(each.look() for each in processes))
        assert [each.is_over for each in told if each is not None] == [True]
        await town.until_told(2)


async def test_a_chat_may_be_named_by_the_number_of_its_context(storage):
    async with world(storage) as town:
        context = await AgentContext.get_or_create(storage, OPERATORS.keys)
        await town.ask(*["fails"] * 5)
        await FailureAlerts(storage, ChatAddress(context.id, {}), town.clock, town.bot.worker).look()
        await town.until_told(1)
        wrong = FailureAlerts(storage, ChatAddress(99, {}), town.clock, town.bot.worker)
        town.clock.now += timedelta(hours=2)
        await town.ask(*["fails"] * 5)
        with pytest.raises(StorageError, match="there is no context 99"):
            await wrong.look()


class Speaking(Messenger):
    """A messenger whose people have set their client to a language."""

    async def read(self, event):
        return replace(await super().read(event), language="pt-br")


async def test_an_alert_is_in_the_language_of_who_wrote_there_last(storage):
    async with world(storage, Speaking()) as town:
        await town.bot.write("hello", chat="ops", order=1)
        await town.bot.messenger.shows("ops", "answered")
        await town.ask(*["fails"] * 5)
        assert await town.alerts.look()
        await town.until_told(2)
        assert "Perguntas que falharam nos últimos 10 minutos: 5." in town.told()[1]
        assert "`botservice turns retry --all --failed-since 2026-03-01T12:00`" in town.told()[1]
        await town.ask("works")
        assert (await town.alerts.look()).is_over
        await town.until_told(3)
        assert town.told()[2].startswith("✅ As perguntas voltaram")


async def test_an_alert_is_told_in_english_where_what_was_written_cannot_be_read(storage):
    async with world(storage) as town:
        await town.bot.write("hello", chat="ops", order=1)
        await town.bot.messenger.shows("ops", "answered")
        await town.ask(*["fails"] * 5)
        town.bot.messenger.read_errors.append(RuntimeError("no longer a message"))
        assert await town.alerts.look()
        await town.until_told(2)
        assert "last 10 minutes: 5" in town.told()[1]


async def test_what_is_told_holds_no_words_of_people_or_of_the_model(storage):
    async with world(storage) as town:
        await town.ask(*["fails"] * 5)
        await town.alerts.look()
        await town.until_told(1)
    said = await storage.read(lambda connection: connection.execute(select(messages.c.text)).scalars().all())
    assert "revoked" not in said[-1]
