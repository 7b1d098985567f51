"""What is forgotten goes from the records of each chat as queued work: after a turn that still knows it, and a kill."""

import asyncio
from datetime import timedelta

import pytest
from people.asking import CutOff
from people.conversing import ALICE, BOB, command, open_chat, say
from people.crowd import crowded, find_bytes, rows_of
from people.test_facts import tell
from sqlalchemy import func, select
from turns.answered import answer_often

from botservice import AgentContext, AgentService, Author, FunctionsBasedAgent, NoMessages
from botservice.background.maintenance import Maintenance
from botservice.commands.catalogue import Catalogue
from botservice.commands.memory import MEMORY
from botservice.core.errors import StorageUnavailable
from botservice.core.personas import PERSONA
from botservice.llm.chat import ChatResponse
from botservice.people.fact_keeping import keep_fact
from botservice.people.queries import ensure_identity
from botservice.privacy.cleaning import clean_all
from botservice.privacy.forgetting import forget_chat, forget_messages, forget_person
from botservice.privacy.record_queries import queue_texts
from botservice.storage.tables.conversations import events, steps

HERSELF = Author("messenger", "alice")
FACT = "the dog is called zx81rex"
COMMANDS = Catalogue([MEMORY])


class Pausing:
    """A model that answers when it is let go."""

    model = "pausing"

    def __init__(self):
        self.asked, self.go, self.prompts = asyncio.Event(), asyncio.Event(), []

    async def chat(self, messages, tools=(), *, on_text=None):
        self.prompts.append(str(messages))
        self.asked.set()
        await self.go.wait()
        return ChatResponse("I see")


async def places_of(storage, text):
    """Return the tables that hold a text."""
    return [name for name, kept in (await storage.read(rows_of)).items() if text in kept]


async def until_nothing_is_queued(storage):
    query = select(func.count()).where(events.c.kind == "forget")
    async with asyncio.timeout(60):
        while await storage.read(lambda c: c.execute(query).scalar_one()):  # noqa: ASYNC110 - only the database tells
            await asyncio.sleep(0.01)


async def context_of(storage, chat):
    return await AgentContext.get_or_create(storage, {"transport": "messenger", "chat_id": chat})


@pytest.mark.parametrize("whole", [False, True], ids=["by itself", "with its chat"])
async def test_a_deleted_fact_is_not_kept_by_a_turn_that_had_it_in_its_prompt(storage, whole):
    model = Pausing()
    async with crowded(storage, model, commands=COMMANDS) as bot:
        model.go.set()
        await bot.messenger.say(bot, "alice", FACT, chat="alice")
        await bot.messenger.say(bot, "alice", "hi", chat="other")
        chat = await context_of(storage, "alice")
        author = (await chat.chat_history.messages())[0].author
        fact = await storage.write(lambda c: keep_fact(c, chat.id, author, "dog", FACT, storage.now()))
        model.go.clear()
        model.asked.clear()
        await bot.messenger.say(bot, "alice", "what do you know of me?", chat="other", waits=False)
        async with asyncio.timeout(60):
            await model.asked.wait()
        assert FACT in model.prompts[-1]
        if whole:
            await forget_chat(storage, chat.id)
        else:
            await bot.messenger.say(bot, "alice", f"/memory delete {fact.id}", chat="alice")
        model.go.set()
        await bot.messenger.until(lambda: len(bot.messenger.visible["other"]) == 2)
        await until_nothing_is_queued(storage)
    assert set(await places_of(storage, FACT)) <= ({"messages", "events"} if not whole else set())


async def test_the_persona_of_a_forgotten_person_is_not_kept_by_a_turn_of_another(storage):
    words, model = "speak like zx81pirate", Pausing()
    async with crowded(storage, model, commands=COMMANDS) as bot:
        group = await context_of(storage, "group1")
        group.metadata[PERSONA] = {"text": words, "by": "messenger:alice"}
        await group.save_metadata()
        await storage.write(lambda c: ensure_identity(c, HERSELF, storage.now()))
        await bot.messenger.say(bot, "bob", "hello", chat="group1", waits=False)
        async with asyncio.timeout(60):
            await model.asked.wait()
        assert words in model.prompts[-1]
        await forget_person(storage, HERSELF)
        model.go.set()
        await bot.messenger.shows("group1", "I see")
        await until_nothing_is_queued(storage)
    assert "hello" in [each.text for each in await group.chat_history.messages()]
    assert await places_of(storage, words) == []


async def test_where_no_worker_runs_maintenance_finishes_what_a_turn_of_a_program_kept(storage):
    chat, other = await open_chat(storage, "telegram-a", ALICE), await open_chat(storage, "telegram-b", ALICE)
    await say(other, "hello", ALICE)
    fact = await tell(storage, chat, ALICE, FACT)
    model = Pausing()
    agent = FunctionsBasedAgent(tools=[], llm=model, search_k=0, message_selector=NoMessages(), prompt="X")
    asking = asyncio.create_task(AgentService(agent, storage).prompt(other, "hi", author=ALICE))
    async with asyncio.timeout(60):
        await model.asked.wait()
    await command(chat, f"/memory delete {fact.id}", ALICE, COMMANDS)
    model.go.set()
    await asking
    assert await places_of(storage, FACT) == ["blobs", "messages", "events"]
    await Maintenance(storage, clock=lambda: storage.now() + timedelta(minutes=1)).run_once()
    assert await places_of(storage, FACT) == ["messages"]


async def test_what_is_forgotten_is_out_of_sight_before_its_traces_are_gone(sqlite_storage):
    storage = sqlite_storage  # Postgres may show a turn late, and has the newest thousand in one transaction
    group = await open_chat(storage, "telegram-g", ALICE, BOB)
    said = await say(group, FACT, ALICE)
    await say(group, "good evening", BOB)

    def work(connection):
        answer_often(connection, group.id, BOB, 3, storage.now())

    await storage.write(work)
    for writes in range(20):
        try:
            await forget_messages(CutOff(storage, writes), group.id, [said.id])
        except StorageUnavailable:
            if FACT not in str([each.text for each in await group.chat_history.messages()]):
                break
    else:
        pytest.fail("it was never cut off between the two")
    count = select(func.count()).select_from(steps)
    assert await storage.read(lambda c: c.execute(count).scalar_one()), "the records are still there"
    await clean_all(storage)
    assert not await storage.read(lambda c: c.execute(count).scalar_one())


async def test_a_worker_finishes_what_a_killed_process_has_queued(storage):
    chat = await context_of(storage, "alice")
    await storage.write(lambda c: queue_texts(c, [chat.id], [FACT], storage.now()))
    assert await find_bytes(storage, FACT)
    async with crowded(storage, Pausing()):
        await until_nothing_is_queued(storage)
    assert await places_of(storage, FACT) == []
