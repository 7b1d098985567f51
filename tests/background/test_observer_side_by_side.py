"""Conversations are read each on its own, and a first look at many of them comes in bites."""

import asyncio
import json

from background.observing import Clock, first_words, observer_of, open_chat, say, texts_of, tokens, told
from sqlalchemy import func, select, update

from botservice import ChatResponse
from botservice.storage.tables.conversations import messages
from botservice.storage.tables.knowledge import observed


class HangingModel:
    """Answers about every conversation but the one in which a word stands, and never about that."""

    model = "hanging"

    def __init__(self) -> None:
        self.hangs = asyncio.Event()

    async def chat(self, messages, tools=(), **_):
        data = told(messages)
        if "stuck" in json.dumps(data):
            self.hangs.set()
            await asyncio.Event().wait()
        return ChatResponse(json.dumps({"notes": first_words(data), "facts": []}))


async def test_a_call_that_hangs_holds_up_no_other_conversation(storage):
    clock, model = Clock(), HangingModel()
    stuck = await open_chat(storage, "stuck")
    await say(stuck, "stuck " + tokens(400), at=clock.now)
    others = [await open_chat(storage, str(number)) for number in range(8)]
    for other in others:
        await say(other, "early " + tokens(400), at=clock.now)
    clock.pass_by(minutes=30)
    async with observer_of(storage, model, clock, poll_seconds=0.01):
        async with asyncio.timeout(60):
            await model.hangs.wait()
            while not all([await texts_of(other) for other in others]):  # noqa: ASYNC110 - a database tells nobody
                await asyncio.sleep(0.01)
            late = await open_chat(storage, "late")
            await say(late, "late " + tokens(400), at=clock.now)
            clock.pass_by(minutes=30)
            while not await texts_of(late):  # noqa: ASYNC110 - a database tells nobody
                await asyncio.sleep(0.01)
    assert await texts_of(stuck) == []


async def test_a_conversation_that_cannot_be_read_cuts_off_no_other(storage, caplog):
    clock, model = Clock(), HangingModel()
    broken = await open_chat(storage, "broken")
    await say(broken, "broken " + tokens(400), at=clock.now)
    others = [await open_chat(storage, str(number)) for number in range(3)]
    for other in others:
        await say(other, "early " + tokens(400), at=clock.now)
    spoil = update(messages).where(messages.c.context_id == broken.id).values(said_by_others="{")
    await storage.write(lambda connection: connection.execute(spoil))
    clock.pass_by(minutes=30)
    observer = observer_of(storage, model, clock)
    assert await observer.catch_up() == 3
    assert all([await texts_of(other) for other in others])
    assert "observer.failed" in caplog.text
    assert await observer.catch_up() == 0, "it is put off, and not tried again at once"
    assert caplog.text.count("observer.failed") == 1


async def test_what_is_due_is_read_before_all_conversations_have_been_looked_at(storage):
    clock = Clock()
    first = await open_chat(storage, "first")
    await say(first, "first " + tokens(400), at=clock.now)
    for number in range(200):
        await say(await open_chat(storage, str(number)), "short", at=clock.now)
    clock.pass_by(minutes=30)
    looked_at = []

    class Model(HangingModel):
        async def chat(self, messages, tools=(), **_):
            counted = select(func.count()).select_from(observed)
            looked_at.append(await storage.read(lambda connection: connection.execute(counted).scalar_one()))
            return await super().chat(messages)

    async with observer_of(storage, Model(), clock, poll_seconds=0.01):
        async with asyncio.timeout(60):
            counted = select(func.count()).select_from(observed)
            while await storage.read(lambda connection: connection.execute(counted).scalar_one()) < 201:  # noqa: ASYNC110 - a database tells nobody
                await asyncio.sleep(0.01)
    assert looked_at
    assert looked_at[0] < 201
