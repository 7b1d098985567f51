"""What is due becomes a message of the bot, once, whatever happens in between."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from standins.patience import PATIENT
from turns.bots import call
from turns.messenger import PATIENCE_SECONDS, Messenger, SetClock, echo, office
from turns.test_worker import history

from botservice import AgentContext, Author, Storage
from botservice.agent.reminding import Reminders
from botservice.conversation.reminder import Repeats
from botservice.conversation.reminder_queries import (
    NewReminder,
    cancel_reminder,
    insert_reminder,
    mend_schedules,
    read_waiting,
)
from botservice.core.policies import AccessMode
from botservice.devtools.conversations import forget_context, read_turns
from botservice.people.access import Access

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)  # a Monday
CHAT = {"transport": "messenger", "chat_id": "1"}


async def put(storage: Storage, text: str = "Call mum", *, chat: str = "1", key: str = "k", **values):
    """Store a reminder for an hour after noon."""
    context = await AgentContext.get_or_create(storage, {**CHAT, "chat_id": chat})
    values = {"due_at": NOON + timedelta(hours=1), "author": Author("messenger", "7", "alice"), **values}
    new = NewReminder(key, context.id, "messenger", text, created_at=NOON, **values)
    return await storage.write(lambda connection: insert_reminder(connection, new))


async def waiting(storage: Storage, chat: str = "1"):
    context = await AgentContext.get_or_create(storage, {**CHAT, "chat_id": chat})
    return await storage.read(lambda connection: read_waiting(connection, context.id))


async def until_nothing_waits(storage: Storage) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await waiting(storage):  # noqa: ASYNC110 - a database tells nobody
            await asyncio.sleep(0.01)


@pytest.mark.any_database
async def test_a_reminder_is_sent_when_it_is_due_and_not_before(storage):
    clock = SetClock(NOON)
    await put(storage)
    async with office(storage, echo, clock=clock) as bot:
        await bot.write("hello", order=1)
        await bot.messenger.shows("1", "re: hello")
        clock.now += timedelta(hours=1)
        await bot.messenger.shows("1", "re: hello", "⏰ Call mum")
    assert (await history(storage))[-1] == ("assistant", "⏰ Call mum")
    assert await waiting(storage) == []


@pytest.mark.any_database
async def test_what_it_was_for_stands_in_its_turn(storage):
    await put(storage)
    async with office(storage, echo, clock=SetClock(NOON + timedelta(hours=1))) as bot:
        await bot.messenger.shows("1", "⏰ Call mum")
    context = await AgentContext.get_or_create(storage, CHAT)
    task, answer = (await read_turns(storage, context.id))[-1].steps
    assert task.task == "Reminder 1 is due: asked for by alice on 2026-05-04 12:00 UTC, for 2026-05-04 13:00 UTC"
    assert answer.output == "⏰ Call mum"


@pytest.mark.any_database
async def test_a_reminder_that_is_due_in_hours_holds_nothing_up(storage):
    await put(storage)
    async with office(storage, echo, clock=SetClock(NOON)) as bot:
        for order in range(1, 4):
            await bot.write(str(order), order=order)
        await bot.messenger.shows("1", "re: 1", "re: 2", "re: 3")
    assert len(await waiting(storage)) == 1


@pytest.mark.slow
async def test_two_replicas_send_it_once(postgres_url):
    clock = SetClock(NOON)
    messenger = Messenger()
    async with Storage.open(postgres_url, limits=PATIENT) as one, Storage.open(postgres_url, limits=PATIENT) as two:
        for number in range(20):
            await put(one, f"note {number}", chat=str(number % 5), key=str(number))
        async with (
            office(one, echo, messenger=messenger, clock=clock),
            office(two, echo, messenger=messenger, clock=clock) as bot,
        ):
            clock.now += timedelta(hours=1)
            await messenger.until(lambda: sum(map(len, messenger.visible.values())) >= 20)
            await bot.write("hello", chat="6", order=1)
            await messenger.shows("6", "re: hello")
    said = sorted(text for chat, texts in messenger.visible.items() if chat != "6" for text in texts)
    assert said == sorted(f"⏰ note {number}" for number in range(20))


async def test_what_was_due_while_nobody_was_there_comes_late_and_says_so(storage):
    await put(storage, language="de", time_zone="Europe/Berlin")
    async with office(storage, echo, clock=SetClock(NOON + timedelta(hours=7))) as bot:
        late = "Diese Erinnerung kommt zu spät. Fällig war sie: heute, 15:00"
        await bot.messenger.shows("1", "⏰ Call mum", late)


@pytest.mark.any_database
async def test_one_that_repeats_comes_once_for_all_that_was_missed_and_goes_on(storage):
    clock = SetClock(NOON + timedelta(days=3, hours=2))
    await put(storage, repeats=Repeats.DAILY)
    async with office(storage, echo, clock=clock) as bot:
        await bot.messenger.until(lambda: len(bot.messenger.visible.get("1", ())) == 2)
        assert [each.due_at for each in await waiting(storage)] == [NOON + timedelta(days=4, hours=1)]
        clock.now = NOON + timedelta(days=4, hours=1)
        await bot.messenger.until(lambda: len(bot.messenger.visible["1"]) == 3)
        assert bot.messenger.visible["1"][::2] == ["⏰ Call mum"] * 2
    assert [each.due_at for each in await waiting(storage)] == [NOON + timedelta(days=5, hours=1)]


async def test_a_clock_that_was_a_year_ahead_for_a_while_silences_nothing(storage):
    clock = SetClock(NOON + timedelta(days=365))
    await put(storage, repeats=Repeats.DAILY)
    async with office(storage, echo, clock=clock) as bot:
        await bot.messenger.until(lambda: bool(bot.messenger.visible))
    now = NOON + timedelta(hours=2)
    assert await storage.write(lambda connection: mend_schedules(connection, now)) == 1
    assert [each.due_at for each in await waiting(storage)] == [NOON + timedelta(days=1, hours=1)]


@pytest.mark.any_database
async def test_a_task_is_asked_of_the_agent_and_its_answer_is_sent(storage):
    await put(storage, "what is new?", is_task=True)
    async with office(storage, echo, clock=SetClock(NOON + timedelta(hours=1))) as bot:
        asked = "⏰ (scheduled on 2026-05-04 12:00 UTC) what is new?"
        await bot.messenger.shows("1", f"re: {asked}")
    assert await history(storage) == [("user", asked), ("assistant", f"re: {asked}")]


@pytest.mark.any_database
async def test_a_task_waits_for_the_turn_that_runs(storage):
    clock, talking, go = SetClock(NOON), asyncio.Event(), asyncio.Event()

    class Slow:
        model = "slow"

        async def chat(self, messages, tools=(), *, on_text=None):
            from botservice.llm.chat import ChatResponse

            talking.set()
            await go.wait()
            return ChatResponse(f"re: {messages[-1]['content'][-4:]}")

    await put(storage, "news", is_task=True)
    await put(storage, key="other")
    async with office(storage, Slow(), clock=clock) as bot:
        await bot.write("slow", order=1)
        await asyncio.wait_for(talking.wait(), PATIENCE_SECONDS)
        clock.now += timedelta(hours=1)
        go.set()
        await bot.messenger.shows("1", "re: slow", "re: news", "⏰ Call mum")


async def test_what_is_cancelled_or_forgotten_is_never_sent(storage):
    clock = SetClock(NOON)
    kept, cancelled = await put(storage), await put(storage, "Not this", key="other")
    elsewhere = await put(storage, "Nor this", chat="2", key="third")
    assert await storage.write(lambda c: cancel_reminder(c, cancelled.context_id, cancelled.id, NOON))
    assert not await storage.write(lambda c: cancel_reminder(c, elsewhere.context_id, kept.id, NOON))
    await forget_context(storage, elsewhere.context_id)
    async with office(storage, echo, clock=clock) as bot:
        clock.now += timedelta(days=1)
        await bot.messenger.until(lambda: bool(bot.messenger.visible))
        await bot.write("hello", chat="2", order=1)
        await bot.messenger.shows("2", "re: hello")
        assert [text[:10] for text in bot.messenger.visible["1"]] == ["⏰ Call mum", "This remin"]


@pytest.mark.any_database
async def test_a_reminder_that_no_transport_can_show_disturbs_nobody(storage):
    class Picky(Messenger):
        def plan(self, answer, events):
            if "⏰" in answer.text:
                raise ValueError("no such sign")
            return super().plan(answer, events)

    await put(storage, repeats=Repeats.DAILY)
    async with office(storage, echo, clock=SetClock(NOON + timedelta(hours=1)), messenger=Picky()) as bot:
        await bot.write("hello", order=1)
        await bot.messenger.shows("1", "re: hello")
        await bot.write("bye", order=2)
        await bot.messenger.shows("1", "re: hello", "re: bye")
        await until_nothing_waits(storage)


@pytest.mark.parametrize("is_task", [False, True])
async def test_whoever_is_not_let_in_any_more_is_not_reminded(storage, is_task):
    gone = Author("messenger", "666", "eve")
    await put(storage, "never", author=gone, is_task=is_task, repeats=Repeats.DAILY)
    await put(storage, key="other", due_at=NOON + timedelta(minutes=61))
    access = Access(AccessMode.ALLOW, allowed=frozenset({"messenger:7"}))
    async with office(storage, echo, clock=SetClock(NOON + timedelta(minutes=61)), access=access) as bot:
        await bot.messenger.shows("1", "⏰ Call mum")
        await until_nothing_waits(storage)
    assert await history(storage) == [("assistant", "⏰ Call mum")]


@pytest.mark.parametrize("is_task", [False, True])
async def test_an_agent_sets_what_the_chat_is_told_later(storage, is_task):
    clock = SetClock(NOON)
    script = [call("remind_me", text="Call mum", in_hours=2, ask_agent=is_task), "I will", echo]
    async with office(storage, script, clock=clock, tools=Reminders(clock).tools()) as bot:
        await bot.write("remind me", order=1)
        await bot.messenger.shows("1", "I will")
        clock.now += timedelta(hours=2)
        await bot.messenger.until(lambda: len(bot.messenger.visible["1"]) == 2)
    assert bot.messenger.visible["1"][1].endswith("Call mum")
