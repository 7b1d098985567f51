"""What is forgotten is gone from every place where words lie, and is not written back."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest
from people.conversing import ALICE, BOB, NOW, open_chat, say
from people.crowd import crowded, find_bytes
from sqlalchemy import select

from botservice import (
    AgentContext,
    AgentService,
    Author,
    BotServiceError,
    FunctionsBasedAgent,
    MessageWindowMessageSelector,
    ScriptedChatLLM,
    StorageError,
    ToolCall,
    tool,
)
from botservice.agent.remembering import remember
from botservice.background.maintenance import Maintenance
from botservice.core.message_references import Reference, ReferenceKind
from botservice.llm.chat import ChatResponse
from botservice.people.fact_keeping import keep_fact
from botservice.people.fact_queries import facts_of
from botservice.people.queries import find_identity
from botservice.people.usage import ModelCall, Payer
from botservice.people.usage_queries import record_call
from botservice.privacy.cleaning import clean_all
from botservice.privacy.forgetting import forget_chat, forget_messages, forget_person
from botservice.privacy.quotes import find_quotes, read_words
from botservice.privacy.record_queries import queue_texts
from botservice.storage.tables.columns import metadata
from botservice.storage.tables.conversations import messages, steps, turns
from botservice.storage.tables.people import model_usage
from botservice.storage.tables.services import feedback
from botservice.turns.administration import list_turns, retry_turn
from botservice.turns.queries import insert_turn

MARK = "zx81marker"
LONG = f"My diary of {MARK}: " + "so it was and so it will be, " * 40
PERSON = Author("messenger", "alice")


@tool
async def repeat(text: str) -> str:
    """Repeat a text."""
    return f"{text} {text}"


class Parrot:
    """A model that has a tool repeat what it is told, keeps it as a fact, and repeats it as its answer."""

    model = "parrot"

    async def chat(self, messages, tools=(), *, on_text=None):
        last = messages[-1]
        if last["role"] == "user":
            text = last["content"] if isinstance(last["content"], str) else last["content"][0]["text"]
            kept = ToolCall("c2", "remember", {"text": text[:200], "topic": "t"})
            return ChatResponse("let me see", (ToolCall("c1", "repeat", {"text": text}), kept))
        return ChatResponse(f"You said: {last['content']}")


def parrots(storage):
    return crowded(storage, Parrot(), tools=[repeat, remember], selector=MessageWindowMessageSelector(6), search_k=3)


async def test_a_person_is_gone_from_every_place(storage):
    async with parrots(storage) as bot:
        say = bot.messenger.say
        await say(bot, "alice", f"my dog is {MARK} {LONG}", chat="alice", name=f"Al {MARK}", file=f"{MARK}.png")
        await say(bot, "alice", "what is my dog called?", chat="alice")
        await say(bot, "alice", f"the cat is {MARK} too", chat="group1", file=f"{MARK}2.png")
        await say(bot, "bob", "what did alice say about her cat?", chat="group1")
        await say(bot, "bob", "my own dog is Rex", chat="bob")
    context = await AgentContext.get_or_create(storage, {"transport": "messenger", "chat_id": "alice"})
    context.metadata["note"] = MARK
    await context.save_metadata()
    assert len(await find_bytes(storage, MARK)) >= 7
    gone = await forget_person(storage, PERSON)
    assert (gone.contexts, gone.messages, gone.answers, gone.files) == (1, 3, 3, 2)
    assert await find_bytes(storage, MARK) == []
    assert await find_bytes(storage, "my own dog is Rex")
    group = await AgentContext.get_or_create(storage, {"transport": "messenger", "chat_id": "group1"})
    assert "what did alice say about her cat?" in [each.text for each in await group.chat_history.messages()]
    assert await group.chat_history.search("cat", k=3)
    assert await storage.read(lambda c: find_identity(c, PERSON)) is None
    with pytest.raises(StorageError, match="no message of messenger:alice"):
        await forget_person(storage, PERSON)


async def test_a_forgotten_chat_leaves_nothing_and_the_next_message_finds_nothing(storage):
    async with parrots(storage) as bot:
        await bot.messenger.say(bot, "alice", LONG, chat="alice", file=f"{MARK}.png")
        context = await AgentContext.get_or_create(storage, {"transport": "messenger", "chat_id": "alice"})
        await forget_chat(storage, context.id)
        assert await find_bytes(storage, MARK) == []
        answer = await bot.messenger.say(bot, "alice", "what do you know of my diary?", chat="alice")
    assert MARK not in answer


async def test_a_message_goes_with_its_answer_and_what_came_of_it(storage):
    async with parrots(storage) as bot:
        await bot.messenger.say(bot, "alice", "I like tea best", chat="alice")
        await bot.messenger.say(bot, "alice", LONG, chat="alice", file=f"{MARK}.png")
        await bot.messenger.say(bot, "alice", "what did I write?", chat="alice")
    context = await AgentContext.get_or_create(storage, {"transport": "messenger", "chat_id": "alice"})
    (chosen,) = [each.id for each in await context.chat_history.messages() if each.text == LONG]
    assert (await forget_messages(storage, context.id, [chosen])).messages == 1
    assert await find_bytes(storage, MARK) == []
    left = [each.text for each in await context.chat_history.messages()]
    assert "I like tea best" in left
    assert "what did I write?" in left


class Blocking:
    """A model that answers when it is let go."""

    model = "blocking"

    def __init__(self, answer):
        self.asked, self.go, self._answer = asyncio.Event(), asyncio.Event(), answer
        self.count = 0

    async def chat(self, messages, tools=(), *, on_text=None):
        self.count += 1
        self.asked.set()
        await self.go.wait()
        return ChatResponse(self._answer)


async def test_a_turn_that_is_under_way_writes_nothing_back(storage):
    model = Blocking(f"you said {MARK}")
    async with crowded(storage, model) as bot:
        await bot.messenger.say(bot, "alice", f"my dog is {MARK}", chat="alice", waits=False)
        async with asyncio.timeout(60):
            await model.asked.wait()
        await forget_person(storage, PERSON)
        model.go.set()
        await bot.messenger.say(bot, "bob", "hello", chat="bob")
    assert await find_bytes(storage, f"dog is {MARK}") == []
    assert "alice" not in bot.messenger.visible
    contexts = await storage.read(lambda c: c.execute(messages.select()).all())
    assert {row.author_id for row in contexts if row.role == "user"} == {"bob"}


async def test_what_somebody_else_asked_meanwhile_is_answered_anew_without_it(storage):
    model = Blocking("an answer")
    async with crowded(storage, model, selector=MessageWindowMessageSelector(6)) as bot:
        model.go.set()
        await bot.messenger.say(bot, "alice", f"my dog is {MARK}", chat="group1")
        model.go.clear()
        model.asked.clear()
        await bot.messenger.say(bot, "bob", "and mine is Rex", chat="group1", waits=False)
        async with asyncio.timeout(60):
            await model.asked.wait()
        await forget_person(storage, PERSON)
        model.go.set()
        await bot.messenger.until(lambda: len(bot.messenger.visible["group1"]) == 2)
    assert model.count == 3
    assert await find_bytes(storage, MARK) == []
    group = await AgentContext.get_or_create(storage, {"transport": "messenger", "chat_id": "group1"})
    assert [each.text for each in await group.chat_history.messages()] == ["and mine is Rex", "an answer"]


@pytest.mark.slow
async def test_a_question_that_has_run_tools_is_given_up_with_an_apology_when_somebody_else_is_forgotten(storage):
    asked, go, paid = asyncio.Event(), asyncio.Event(), []

    @tool
    async def pay() -> str:
        """Pay."""
        paid.append(1)
        return "paid"

    async def model(prompt):
        if prompt[-1]["role"] == "tool":
            asked.set()
            await go.wait()
        return ToolCall("c1", "pay", {}) if "pay" in prompt[-1]["content"] else "an answer"

    async with crowded(storage, model, tools=[pay], selector=MessageWindowMessageSelector(6)) as bot:
        await bot.messenger.say(bot, "alice", f"my dog is {MARK}", chat="group1")
        await bot.messenger.say(bot, "bob", "pay", chat="group1", waits=False)
        async with asyncio.timeout(60):
            await asked.wait()
        await forget_person(storage, PERSON)
        go.set()
        await bot.messenger.until(lambda: len(bot.messenger.visible["group1"]) == 2)
        assert await bot.messenger.say(bot, "bob", "hello", chat="group1", waits=False) is None
        await bot.messenger.until(lambda: len(bot.messenger.visible["group1"]) == 3)
    [_, apology, answer] = bot.messenger.visible["group1"]
    [listed] = await list_turns(storage)
    assert f"T{listed.id}" in apology
    assert listed.status == "set aside"
    assert (answer, paid) == ("an answer", [1])
    assert await find_bytes(storage, MARK) == []
    with pytest.raises(BotServiceError, match="twice"):
        await retry_turn(storage, listed.id, storage.now())


@pytest.mark.any_database
async def test_answers_to_others_that_repeat_it_go_and_the_others_stay(storage):
    group = await open_chat(storage, "telegram-g", ALICE)
    said = await group.chat_history.append_user_message("the safe opens with 4711", author=ALICE)
    await group.chat_history.append_assistant_message("Alice says: the safe opens with 4711.")
    await group.chat_history.append_assistant_message("Good morning")
    await say(group, "which safe?", BOB, Reference(ReferenceKind.REPLY, ALICE, "the safe opens…"))
    found = await storage.read(lambda c: find_quotes(c, group.id, read_words(c, group.id, [said.id])))
    assert len(found.answers) == len(found.held) == 1
    await forget_messages(storage, group.id, [said.id])
    left = ["Good morning", "[in reply to somebody]\nwhich safe?"]
    assert [each.full_text for each in await group.chat_history.messages()] == left
    assert not [hit for hit in await group.chat_history.search("safe opens", k=3) if "opens" in hit.message.text]


async def test_a_fact_of_a_forgotten_person_is_gone_and_comes_not_back_by_a_late_tool(storage):
    chat = await open_chat(storage, "telegram-a", ALICE)
    await chat.chat_history.append_user_message("my dog is called Rex", author=ALICE)
    await storage.write(lambda c: keep_fact(c, chat.id, ALICE, "dog", "the dog is called Rex", NOW))
    person = (await storage.read(lambda c: find_identity(c, ALICE))).person_id
    await forget_person(storage, ALICE)
    assert await storage.read(lambda c: facts_of(c, person)) == []
    late = await storage.write(lambda c: keep_fact(c, chat.id, ALICE, "dog", "the dog is called Rex", NOW))
    assert isinstance(late, str)


async def test_forgetting_reads_no_table_whole(sqlite_storage):
    def plans(connection):
        found = []
        for statement in (
            "SELECT id FROM messages WHERE author_platform = 'a' AND author_id = 'b'",
            "SELECT id FROM contexts WHERE only_identity_id = 1",
            *(f"SELECT 1 FROM {table.name} WHERE context_id = 1" for table in (messages, steps, turns)),
            *(f"SELECT 1 FROM {name} WHERE context_id = 1" for name in ("events", "prompt_log", "tool_calls")),
            *(f"SELECT 1 FROM {name} WHERE context_id = 1" for name in ("deliveries", "blobs", "facts", "vectors")),
            "SELECT 1 FROM facts WHERE source_message_id = 1",
            "SELECT 1 FROM facts WHERE identity_id = 1",
        ):
            rows = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}").all()
            found += [statement for row in rows if "SCAN" in row[3]]
        return found

    assert await sqlite_storage.read(plans) == []


@pytest.mark.any_database
async def test_what_is_kept_under_a_persons_name_elsewhere_goes_too(storage):
    """Every table that names a person is known to forgetting: a new one makes this fail."""
    naming = {"author_id", "person", "person_id", "platform_id", "subject", "granted_by", "installed_by"}
    known = {
        *(
            "messages",
            "message_references",
            "reminders",
            "feedback",
            "identities",
            "access_codes",
            "access_refusals",
            "budget_rates",
            "pending_calls",
            "tool_grants",
        ),
        "model_usage",  # goes over to nobody
        "budget_reservations",  # goes with its turn
        "observer_reservations",  # with its chat
        *("access_roles", "access_invitations", "slack_installations"),  # the owner's decisions
    }
    assert {table.name for table in metadata.sorted_tables if naming & set(table.c.keys())} == known
    chat = await open_chat(storage, "telegram-a", ALICE)
    await chat.chat_history.append_user_message("hi", author=ALICE)
    group = await open_chat(storage, "telegram-g", ALICE, BOB)
    await group.chat_history.append_user_message("hi", author=BOB)

    def fill(connection):
        number = insert_turn(connection, group.id, "telegram", NOW)
        values = {"turn_id": number, "platform": "telegram", "person_id": "1", "verdict": "good", "created_at": NOW}
        connection.execute(feedback.insert().values(values))

    await storage.write(fill)
    await forget_person(storage, ALICE)
    assert await storage.read(lambda c: c.execute(feedback.select()).all()) == []


async def test_forgetting_refills_no_budget_and_the_name_goes_when_the_month_is_over(storage):
    chat = await open_chat(storage, "telegram-a", ALICE)
    payer = Payer.of(chat.id, chat.context_keys, ALICE)
    now = datetime.now(UTC)

    def use(connection):
        for moment in (now - timedelta(days=40), now):
            record_call(connection, payer, ModelCall("m", 10, 1), moment)

    await storage.write(use)
    await forget_person(storage, ALICE)

    def names(connection):
        return sorted(connection.execute(select(model_usage.c.person)).scalars())

    assert await storage.read(names) == ["", "telegram:1"]
    await Maintenance(storage, clock=lambda: now).run_once()
    assert await storage.read(names) == ["", "telegram:1"]
    await Maintenance(storage, clock=lambda: now + timedelta(days=32)).run_once()
    assert set(await storage.read(names)) == {""}


class Gossip:
    """A model that has a tool repeat all that it sees."""

    model = "gossip"

    async def chat(self, messages, tools=(), *, on_text=None):
        if messages[-1]["role"] == "user":
            seen = " ".join(str(each["content"]) for each in messages)
            return ChatResponse("", (ToolCall("c1", "repeat", {"text": seen}),))
        return ChatResponse("so it is")


def served(storage, llm):
    agent = FunctionsBasedAgent(
        tools=[repeat, remember], llm=llm, message_selector=MessageWindowMessageSelector(6), search_k=0
    )
    return AgentService(agent, storage)


async def traces(storage, context) -> list[str]:
    """Return what is left of the mark: in messages, in steps."""
    said = [each.text for each in await context.chat_history.messages()]
    rows = await storage.read(lambda connection: connection.execute(select(steps.c.data)).scalars().all())
    return [text for text in (*said, *map(str, rows)) if MARK in text]


async def test_with_a_message_of_a_program_goes_its_answer(storage):
    context = await AgentContext.get_or_create(storage, {"chat": "1"})
    await served(storage, Parrot()).prompt(context, f"I am {MARK}", author=PERSON)
    said, _ = await context.chat_history.messages()
    await forget_messages(storage, context.id, [said.id])
    assert await traces(storage, context) == []


async def test_what_was_said_while_the_clock_was_ahead_is_forgotten_with_all_that_came_of_it(sqlite_storage):
    storage = sqlite_storage
    context = await AgentContext.get_or_create(storage, {"chat": "1"})
    an_hour_ahead = datetime.now(UTC) + timedelta(hours=1)
    said = await context.chat_history.append_user_message(f"I am {MARK}", author=PERSON, created_at=an_hour_ahead)
    await served(storage, Gossip()).prompt(context, "who is she?", author=BOB)
    assert len(await traces(storage, context)) > 1
    await forget_messages(storage, context.id, [said.id])
    assert await traces(storage, context) == []


async def test_what_a_model_gave_sealed_goes_with_whatever_it_may_repeat(storage):
    seal = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"}
    script = [ChatResponse("", (ToolCall("c1", "repeat", {"text": "x"}),), items=(seal,)), "done"]
    agent = FunctionsBasedAgent(tools=[repeat], llm=ScriptedChatLLM(script), search_k=0)
    context = await AgentContext.get_or_create(storage, {"chat_id": "1"})
    await AgentService(agent, storage=storage).prompt(context, MARK, author=PERSON)
    await storage.write(lambda connection: queue_texts(connection, [context.id], [MARK], NOW))
    await clean_all(storage)
    memory = await (await AgentContext.get_or_create(storage, {"chat_id": "1"})).load_memory()
    assert [step.get_value("model_items") for step in memory.steps] == [None] * 3
    assert [result.text for result in memory.steps[1].tool_results] == ["x x"], "the rest of the step stays"
