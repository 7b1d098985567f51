"""Two conversations that turn out to be one."""

import pytest
from turns.bots import add as add_tool
from turns.bots import call, make_service

from botservice import AgentContext, Attachment, Storage
from botservice.contexts import ContextKeys
from botservice.errors import TurnInProgress
from botservice.turns.merging import move_context

OLD, NEW = {"transport": "t", "chat_id": "1"}, {"transport": "t", "chat_id": "2"}
KEYS = ContextKeys.of(OLD), ContextKeys.of(NEW)
PNG, GIF = Attachment("image/png", data=b"png"), Attachment("image/gif", data=b"gif")


async def fill(storage: Storage, keys, text: str, *files: Attachment) -> AgentContext:
    context = await AgentContext.get_or_create(storage, keys)
    service, _ = make_service(storage, [call("add", a=1, b=1), f"re: {text}"], tools=[add_tool])
    await service.prompt(context, text, attachments=files)
    return context


async def test_the_newer_one_becomes_the_end_of_the_older_one(storage):
    old = await fill(storage, OLD, "my dog is called Rex", PNG)
    new = await fill(storage, NEW, "my cat is called Tom", PNG, GIF)
    await old.chat_history.search("Rex")
    assert await move_context(storage, *KEYS)
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
    assert await move_context(storage, *KEYS)
    assert (await AgentContext.get_or_create(storage, NEW)).id == old.id
    assert not await move_context(storage, *KEYS), "there is nothing to be moved any more"


async def test_a_turn_that_runs_in_one_of_them_is_waited_for(storage):
    await fill(storage, OLD, "hello")
    new = await fill(storage, NEW, "early")
    claim = await storage.claims.try_claim(new.id)
    with pytest.raises(TurnInProgress):
        await move_context(storage, *KEYS, patience_seconds=0.05)
    await storage.claims.release(claim)
    assert await move_context(storage, *KEYS)
