"""What is compacted after its time, and what never is."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
from sqlalchemy import func, select, update
from standins.patience import PATIENT
from storage.test_scrubbing import left_of, make_file
from turns.answered import answer_often
from turns.bots import add, call, make_service
from turns.messenger import PATIENCE_SECONDS, Messenger, echo, office
from turns.test_worker import history
from turns.test_worker_controls import Talker

from botservice import AgentContext, Attachment, Author, LLMError, Storage, ToolCall, tool
from botservice.background.maintenance import Compacted, Maintenance, Retention
from botservice.config.settings import Settings
from botservice.core.errors import DeliveryError
from botservice.devtools.conversations import read_turns
from botservice.storage.tables.columns import metadata
from botservice.storage.tables.conversations import blobs, deliveries, events, prompt_log, reminders, steps
from tests.conversation.test_reminders import put

CHAT = {"transport": "messenger", "chat_id": "1"}
A_MONTH = timedelta(days=31)


async def no_rest(_seconds: float) -> None:
    """Do not rest between batches."""


def upkeep(storage: Storage, *, later: timedelta = A_MONTH, **retention) -> Maintenance:
    now = datetime.now(UTC) + later
    return Maintenance(storage, Retention(**retention), clock=lambda: now, rest=no_rest)


async def count(storage: Storage, *tables) -> tuple[int, ...]:
    def query(connection):
        return tuple(connection.execute(select(func.count()).select_from(each)).scalar_one() for each in tables)

    return await storage.read(query)


async def test_what_is_over_loses_everything_but_what_was_said(storage):
    script = [call("add", a=1, b=2), "three", "bye"]
    async with office(storage, script, tools=[add]) as bot:
        await bot.write("one and two?", order=1)
        await bot.messenger.shows("1", "three")
        await bot.write("thanks", order=2)
        await bot.messenger.shows("1", "three", "bye")
    said = await history(storage)
    assert await upkeep(storage).run_once() == Compacted(2, 2)
    assert await history(storage) == said
    assert await count(storage, steps, prompt_log, deliveries, events) == (0, 0, 0, 0)
    context = await AgentContext.get_or_create(storage, CHAT)
    record = (await read_turns(storage, context.id))[0]
    assert record.compacted_at is not None
    assert json.loads(json.dumps(record.as_dict()))["outcome"] == "answered"
    assert await upkeep(storage).run_once() == Compacted()


async def test_what_is_younger_stays(storage):
    async with office(storage, echo) as bot:
        await bot.write("hello", order=1)
        await bot.messenger.shows("1", "re: hello")
    before = await count(storage, steps, prompt_log, deliveries, events)
    assert await upkeep(storage, later=timedelta(days=6)).run_once() == Compacted()
    assert await count(storage, steps, prompt_log, deliveries, events) == before
    assert await upkeep(storage, later=timedelta(days=8)).run_once() == Compacted(0, 1)
    assert await upkeep(storage, steps=None, events=None).run_once() == Compacted()
    assert await count(storage, steps, prompt_log, deliveries) == before[:3]


async def test_a_chat_goes_on_after_its_steps_are_gone(storage):
    async with office(storage, lambda _: call("add", a=1, b=2), tools=[add]) as bot:
        await bot.write("one", order=1)
        await bot.messenger.until(lambda: bool(bot.messenger.visible))
    await upkeep(storage).run_once()
    async with office(storage, [call("add", a=3, b=4), "seven"], tools=[add]) as bot:
        await bot.write("two", order=2)
        await bot.messenger.shows("1", "seven")
    context = await AgentContext.get_or_create(storage, CHAT)
    assert [step.step_number for step in context.completed_steps] == [12], (
        "after ten steps and a note that they are used up"
    )


async def test_an_open_turn_keeps_its_steps_and_its_event_however_old(storage):
    talker, messenger = Talker("Once"), Messenger()
    async with office(storage, talker, messenger=messenger) as bot:
        await bot.write("tell me", order=1)
        await asyncio.wait_for(talker.talking.wait(), PATIENCE_SECONDS)
        assert await upkeep(storage).run_once() == Compacted()
        talker.go.set()
        await messenger.shows("1", "Once to the end")


async def test_what_was_set_aside_keeps_what_it_takes_to_try_again(storage):
    def fail(_messages):
        raise LLMError("no", is_transient=False)

    async with office(storage, fail) as bot:
        await bot.write("hello", order=1)
        await bot.messenger.until(lambda: bool(bot.messenger.visible))
    before = await count(storage, steps, events)
    assert await upkeep(storage).run_once() == Compacted()
    assert await count(storage, steps, events) == before


async def test_a_message_that_was_not_delivered_yet_is_still_owed(storage):
    refused = asyncio.Event()

    class Later(Messenger):
        async def send(self, context_keys, delivery):
            if not refused.is_set():
                refused.set()
                raise DeliveryError("later", retry_after_seconds=60)
            return await super().send(context_keys, delivery)

    messenger = Later()
    async with office(storage, echo, messenger=messenger) as bot:
        await bot.write("hello", order=1)
        await asyncio.wait_for(refused.wait(), PATIENCE_SECONDS)
    await upkeep(storage).run_once()
    await storage.write(lambda c: c.execute(update(deliveries).values(due_at=datetime.now(UTC))))
    async with office(storage, echo, messenger=messenger):
        await messenger.shows("1", "re: hello")


async def test_an_event_is_known_again_until_its_platform_has_given_up(storage):
    async with office(storage, echo) as bot:
        await bot.write("hello", order=1)
        await bot.messenger.shows("1", "re: hello")
        await upkeep(storage, later=timedelta(days=6), steps=timedelta(days=1)).run_once()
        assert await bot.write("hello", order=1) == 0


async def test_the_files_of_steps_go_with_them_and_those_of_messages_and_prompts_stay(storage):
    prompt = "You are X " + "x" * 20_000

    @tool
    async def look() -> str:
        """Look."""
        return "y" * 20_000

    script = [ToolCall("", "look"), "a", "b"]
    service, _ = make_service(storage, script, tools=[look], prompt=prompt)
    context = await AgentContext.get_or_create(storage, {"chat_id": "7"})
    await context.chat_history.append_user_message("see", attachments=[Attachment("text/plain", data=b"z" * 2_000)])
    await service.prompt(context, "one")
    await service.prompt(context, "two")
    held = await count(storage, blobs)
    await upkeep(storage).run_once()
    assert (held, await count(storage, blobs)) == ((3,), (2,))
    again = await AgentContext.load(storage, context.id)
    assert again.memory.steps == []
    assert again.memory.system_prompt.system_prompt == prompt
    assert (await again.chat_history.messages())[0].attachments[0].data == b"z" * 2_000


async def test_steps_that_the_newest_turn_keeps_in_view_stay(storage):
    service, _ = make_service(storage, [call("add", a=1, b=2), "a", call("add", a=3, b=4), "b"])
    context = await AgentContext.get_or_create(storage, {"chat_id": "7"})
    await service.prompt(context, "first")
    run = await service.start(context, "second", reset=False)
    await run.finish()
    await run.close()
    assert (await upkeep(storage).run_once()).turns == 0
    assert len((await context.load_memory()).steps) == 6


async def test_more_than_a_batch_is_done_in_one_pass(storage):
    asker, now = Author("messenger", "7", "alice"), datetime.now(UTC)
    for chat in "abc":
        context = await AgentContext.get_or_create(storage, {**CHAT, "chat_id": chat})
        await storage.write(partial(answer_often, context_id=context.id, asker=asker, times=70, now=now))
    assert await upkeep(storage).run_once() == Compacted(210, 210)
    assert await count(storage, steps, deliveries, events) == (0, 0, 0)


async def test_reminders_that_are_over_go_and_those_that_wait_stay(storage):
    done, waits = await put(storage), await put(storage, key="other", due_at=datetime.now(UTC) + timedelta(days=300))
    now = datetime.now(UTC)
    await storage.write(
        lambda c: c.execute(update(reminders).where(reminders.c.id == done.id).values(status="done", finished_at=now))
    )
    await upkeep(storage).run_once()
    assert await storage.read(lambda c: c.execute(select(reminders.c.id)).scalars().all()) == [waits.id]


async def test_one_replica_compacts_at_a_time(postgres_url):
    async with Storage.open(postgres_url, limits=PATIENT) as one, Storage.open(postgres_url, limits=PATIENT) as two:
        claim = await one.claims.try_claim(0)
        assert claim is not None
        assert await upkeep(two).run_once() == Compacted(is_whole=False)
        await one.claims.release(claim)
        assert await upkeep(two).run_once() == Compacted()


async def test_it_is_done_by_itself_and_again(storage):
    rested = asyncio.Event()

    async def note(_seconds: float) -> None:
        rested.set()

    async with office(storage, echo) as bot:
        await bot.write("hello", order=1)
        await bot.messenger.shows("1", "re: hello")
        now = datetime.now(UTC) + A_MONTH
        async with Maintenance(storage, clock=lambda: now, rest=note).running(first_seconds=0, every_seconds=0.01):
            async with asyncio.timeout(PATIENCE_SECONDS):
                while await count(storage, steps) != (0,):
                    rested.clear()
                    await rested.wait()
    assert await count(storage, steps) == (0,)


COMPACTED = {
    "steps",
    "tool_calls",
    "pending_calls",
    "prompt_log",
    "deliveries",
    "events",
    "blobs",
    "loose_files",
    "reminders",
}
KEPT = {
    "messages", "message_references",  # what people said
    "word_blocks", "vectors", "facts", "feedback",  # and what finds it, or came of it
    "turns", "turn_figures",  # a line each: when, how it ended, how long it took and what it cost
    "gate_decisions",  # likewise, where nobody had addressed the bot: what was decided
    "model_usage",  # what was paid for
    "tool_grants",  # what people allowed for always
    "observed", "notes", "refused_notes", "refused_forms", "slack_titles",  # a few rows of each conversation
    "refused_messages",  # likewise, one for each model
    "access_codes", "budget_reservations", "observer_reservations", "exports",  # these expire
}  # fmt: skip


def test_every_table_that_grows_with_conversations_is_compacted_or_kept_for_a_reason():
    growing = {table.name for table in metadata.sorted_tables if {"turn_id", "context_id"} & set(table.c.keys())}
    assert growing == COMPACTED | KEPT


@pytest.mark.parametrize(("given", "kept"), [(3, timedelta(days=3)), (None, None)])
def test_days_become_times(given, kept):
    settings = Settings.load(None, keep_steps_days=given, keep_events_days=given, ledger_days=given)
    assert Retention.of(settings) == Retention(kept, kept, kept)


async def test_what_an_earlier_process_left_in_the_file_is_overwritten_by_the_first_pass(sqlite_url, tmp_path):
    gone, _ = make_file(tmp_path / "bot.db")
    async with Storage.open(sqlite_url) as storage:
        assert left_of(gone, storage.where.path)
        await Maintenance(storage).run_once()
        assert left_of(gone, storage.where.path) == set()
        assert storage.is_scrubbed
