"""Two conversations that turn out to be one."""

import asyncio
import json

from turns.bots import add as add_tool
from turns.bots import call, make_service
from turns.messenger import PATIENCE_SECONDS, Office, echo, office

from botservice import AgentContext, Attachment, Storage
from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import find_context
from botservice.core.states import EventKind
from botservice.turns.turn import InboundEvent

OLD, NEW = {"transport": "messenger", "chat_id": "1"}, {"transport": "messenger", "chat_id": "2"}
PNG, GIF = Attachment("image/png", data=b"png"), Attachment("image/gif", data=b"gif")


async def fill(storage: Storage, keys, text: str, *files: Attachment) -> AgentContext:
    context = await AgentContext.get_or_create(storage, keys)
    service, _ = make_service(storage, [call("add", a=1, b=1), f"re: {text}"], tools=[add_tool])
    await service.prompt(context, text, attachments=files)
    return context


async def move(bot: Office) -> int:
    """Have the old one go on under the new keys."""
    event = InboundEvent("moved", OLD, 9, json.dumps(NEW).encode(), EventKind.MOVE)
    return await bot.inbox.accept("messenger", [event])


async def until_moved(storage: Storage) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while await storage.read(lambda connection: find_context(connection, ContextKeys.of(OLD))):  # noqa: ASYNC110 - a database tells nobody
            await asyncio.sleep(0.01)


async def test_the_newer_one_becomes_the_end_of_the_older_one(storage):
    old = await fill(storage, OLD, "my dog is called Rex", PNG)
    new = await fill(storage, NEW, "my cat is called Tom", PNG, GIF)
    await old.chat_history.search("Rex")
    async with office(storage, echo) as bot:
        await move(bot)
        await until_moved(storage)
    merged = await AgentContext.get_or_create(storage, NEW)
    assert merged.id == old.id
    said = await merged.chat_history.messages()
    dog, cat = "my dog is called Rex", "my cat is called Tom"
    assert [each.text for each in said] == [dog, f"re: {dog}", cat, f"re: {cat}"]
    assert said[2].attachments == (PNG, GIF)
    tasks = [step.get_value("task") for step in (await merged.load_memory()).steps]
    assert [task for task in tasks if task] == [dog, cat]
    for name in ("Rex", "Tom"):
        [hit] = await merged.chat_history.search(f"who is {name}?", k=1)
        assert name in hit.message.text
    service, _ = make_service(storage, ["on"])
    assert (await service.prompt(merged, "and on")).text == "on"
    assert (await AgentContext.get_or_create(storage, OLD)).id not in (old.id, new.id)


async def test_where_nobody_spoke_yet_it_is_only_renamed(storage):
    old = await fill(storage, OLD, "hello")
    async with office(storage, echo) as bot:
        assert await move(bot) == 1
        await until_moved(storage)
        assert await move(bot) == 0, "it is known"
    assert (await AgentContext.get_or_create(storage, NEW)).id == old.id


async def test_a_turn_that_runs_in_one_of_them_is_waited_for_also_by_the_next_process(storage):
    old, new = await fill(storage, OLD, "hello"), await fill(storage, NEW, "early")
    claim = await storage.claims.try_claim(new.id)
    async with office(storage, echo) as bot:
        await move(bot)
        await bot.write("meanwhile", chat="3", order=1)
        await bot.messenger.shows("3", "re: meanwhile")
    assert (await AgentContext.get_or_create(storage, OLD)).id == old.id
    async with office(storage, echo):
        await storage.claims.release(claim)
        await until_moved(storage)
    assert (await AgentContext.get_or_create(storage, NEW)).id == old.id
