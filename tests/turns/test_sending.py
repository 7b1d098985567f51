"""Messages that nobody asked for: stored once for each key, and delivered as the bot's own words."""

import asyncio

import pytest
from sqlalchemy import select
from standins.patience import PATIENT
from turns.messenger import Messenger, echo, office
from turns.test_worker import history

from botservice import AgentContext, AgentService, Attachment, Button, FunctionsBasedAgent, ScriptedChatLLM, Storage
from botservice.core.errors import DeliveryError, InvalidArgument, LLMError, StorageError
from botservice.storage.tables.conversations import deliveries, turns

CHAT = {"transport": "messenger", "chat_id": "1"}


def sender(storage, script=echo):
    return AgentService(FunctionsBasedAgent(llm=ScriptedChatLLM(script)), storage)


@pytest.fixture
async def context(storage):
    return await AgentContext.get_or_create(storage, CHAT)


@pytest.mark.any_database
async def test_a_message_that_nobody_asked_for_is_delivered_and_in_the_history(storage, context):
    async with office(storage, echo) as bot:
        sent = await sender(storage).send(context, "The build is red.")
        await bot.messenger.shows("1", "The build is red.")
    assert sent.id is not None
    assert sent.role == "assistant"
    assert await history(storage) == [("assistant", "The build is red.")]


@pytest.mark.any_database
async def test_the_same_key_again_is_the_first_message_again(storage, context):
    service = sender(storage)
    async with office(storage, echo) as bot:
        first = await service.send(context, "one", key="build-7")
        again = await asyncio.gather(*(service.send(context, "other words", key="build-7") for _ in range(8)))
        assert {(each.id, each.text) for each in again} == {(first.id, "one")}
        await service.send(context, "two", key="build-8")
        await bot.messenger.shows("1", "one", "two")
    assert await history(storage) == [("assistant", "one"), ("assistant", "two")]


async def test_a_key_is_of_its_conversation_alone(storage, context):
    other = await AgentContext.get_or_create(storage, {**CHAT, "chat_id": "2"})
    service = sender(storage)
    async with office(storage, echo) as bot:
        await service.send(context, "to the first", key="news")
        await service.send(other, "to the second", key="news")
        await bot.messenger.shows("1", "to the first")
        await bot.messenger.shows("2", "to the second")


async def test_two_processes_that_send_with_one_key_send_one_message(postgres_url):
    async with (
        Storage.open(postgres_url, limits=PATIENT) as one,
        Storage.open(postgres_url, limits=PATIENT) as two,
        office(one, echo) as bot,
    ):
        contexts = [await AgentContext.get_or_create(each, CHAT) for each in (one, two)]
        sending = (sender(each.storage).send(each, "once", key="k") for each in contexts for _ in range(10))
        assert len({each.id for each in await asyncio.gather(*sending)}) == 1
        await bot.messenger.shows("1", "once")
        assert await history(two) == [("assistant", "once")]


async def test_a_worker_of_another_process_is_told_at_once(postgres_url):
    async with (
        Storage.open(postgres_url, limits=PATIENT) as one,
        Storage.open(postgres_url, limits=PATIENT) as two,
        office(one, echo, sweep_seconds=3600.0) as bot,
    ):
        await bot.write("hello", order=1)
        await bot.messenger.shows("1", "re: hello")
        await sender(two).send(await AgentContext.get_or_create(two, CHAT), "news")
        await bot.messenger.shows("1", "re: hello", "news")


async def test_a_message_that_comes_while_a_turn_runs_is_said_before_its_answer(storage, context):
    begun, held = asyncio.Event(), asyncio.Event()

    async def model(messages):
        begun.set()
        await held.wait()
        return f"re: {messages[-1]['content']}"

    async with office(storage, model) as bot:
        await bot.write("slow", order=1)
        await begun.wait()
        await sender(storage).send(context, "news")
        held.set()
        await bot.messenger.shows("1", "news", "re: slow")
        await bot.write("next", order=2)
        await bot.messenger.shows("1", "news", "re: slow", "re: next")
    assert [text for _, text in await history(storage)] == ["slow", "news", "re: slow", "next", "re: next"]


async def test_what_the_platform_takes_in_parts_is_sent_in_order_and_each_once(storage, context):
    messenger = Messenger()
    messenger.send_errors = [DeliveryError("busy", retry_after_seconds=0)]
    async with office(storage, echo, messenger=messenger) as bot:
        service = sender(storage)
        await service.send(context, "a|b|c")
        await service.send(context, "d")
        await bot.messenger.shows("1", "a", "b", "c", "d")


async def test_files_and_buttons_reach_the_platform(storage, context):
    planned = []
    messenger = Messenger()
    plan = messenger.plan
    messenger.plan = lambda message, events: planned.append(message) or plan(message, events)
    file = Attachment("text/csv", data=b"a,b", name="figures.csv")
    buttons = [Button("Yes"), Button("See", url="https://example.org/")]
    async with office(storage, echo, messenger=messenger) as bot:
        sent = await sender(storage).send(context, "Ship it?", attachments=[file], buttons=buttons)
        await bot.messenger.shows("1", "Ship it?")
    assert sent.buttons == tuple(buttons)
    assert planned[0].buttons == tuple(buttons)
    assert planned[0].attachments[0].data == b"a,b"


async def test_a_message_that_was_deleted_before_it_was_sent_is_not_sent(storage, context):
    async with office(storage, echo, is_started=False) as bot:
        service = sender(storage)
        sent = await service.send(context, "a secret", key="k")
        await context.chat_history.delete_messages([sent.id])
        await service.send(context, "the next")
        await bot.worker.start()
        await bot.messenger.shows("1", "the next")
        with pytest.raises(StorageError, match="'k' in context 1 was deleted since"):
            await service.send(context, "a secret", key="k")
    query = select(deliveries.c.error).order_by(deliveries.c.id)
    errors = await storage.read(lambda connection: connection.execute(query).scalars().all())
    assert errors == ["its message was deleted", None]


async def test_what_a_platform_cannot_plan_does_not_hold_up_the_rest(storage, context, caplog):
    messenger = Messenger()
    plan = messenger.plan
    messenger.plan = lambda message, events: plan(message, events) if message.text != "odd" else 1 / 0
    async with office(storage, echo, messenger=messenger) as bot:
        await sender(storage).send(context, "odd")
        await sender(storage).send(context, "even")
        await bot.messenger.shows("1", "even")
    assert "delivery.failed" in [record.message for record in caplog.records]


async def test_a_conversation_on_no_platform_has_it_in_its_history_alone(storage):
    context = await AgentContext.get_or_create(storage, {"user": "ada"})
    await sender(storage).send(context, "news")
    assert [each.text for each in await context.chat_history.messages()] == ["news"]
    assert await storage.read(lambda connection: connection.execute(select(deliveries)).all()) == []


async def test_steps_that_a_program_keeps_in_view_stay_in_view(storage):
    context = await AgentContext.get_or_create(storage, {"user": "ada"})
    service = sender(storage)
    async with await service.start(context, "one", reset=False) as run:
        await run.finish()
    await service.send(context, "news")
    async with await service.start(context, "two", reset=False) as run:
        await run.finish()
    assert [step.task for step in context.memory.steps if hasattr(step, "task")] == ["one", "two"]


async def test_a_failed_prompt_is_resumed_although_something_was_sent_since(storage):
    context = await AgentContext.get_or_create(storage, {"user": "ada"})
    tries = []

    def model(messages):
        tries.append(messages[-1]["content"])
        if len(tries) == 1:
            raise LLMError("the model is away", is_transient=False)
        return "answered"

    service = sender(storage, model)
    with pytest.raises(LLMError, match="away"):
        await service.prompt(context, "hello")
    await service.send(context, "news")
    run = await service.resume(context)
    assert run is not None
    assert (await run.finish()).text == "answered"


async def test_the_turn_of_a_message_counts_as_answered(storage, context):
    await sender(storage).send(context, "news")
    [row] = await storage.read(lambda connection: connection.execute(select(turns)).all())
    assert (row.status, row.outcome, row.started_at) == ("done", "answered", None)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"text": 7}, "what is sent is 7"),
        ({"text": " \n"}, "what is sent is"),
        ({"text": "hi", "key": ""}, "key= is ''"),
        ({"text": "hi", "key": "x" * 256}, "key= is a text"),
        ({"text": "hi", "key": "a\0b"}, "key= is"),
        ({"text": "hi", "buttons": ["Yes"]}, "a button is 'Yes'"),
        ({"text": "hi", "attachments": b"x"}, "attachments= is a bytes"),
    ],
)
async def test_what_cannot_be_sent_is_refused_with_what_to_give(storage, context, arguments, reason):
    with pytest.raises(InvalidArgument, match=reason):
        await sender(storage).send(context, **arguments)


async def test_nothing_is_sent_to_a_conversation_that_is_gone(storage, context):
    context.id = 99
    with pytest.raises(StorageError, match="there is no context 99"):
        await sender(storage).send(context, "hello")
