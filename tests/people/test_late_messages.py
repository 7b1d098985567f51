"""What waits to be read while a person is forgotten brings nothing of it back."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from people.crowd import Crowd, find_bytes
from people.test_forgetting import PERSON
from sqlalchemy import select
from turns.messenger import office

from botservice import AgentContext, Attachment, Author, MessageWindowMessageSelector
from botservice.background.maintenance import Maintenance
from botservice.core.message_references import Reference, ReferenceKind
from botservice.privacy.forgetting import forget_messages, forget_person
from botservice.storage.tables.conversations import events, turns
from botservice.storage.tables.people import access_refusals
from botservice.turns.inbox import Inbox
from botservice.turns.turn import InboundEvent

MARK = "waits4711word"


class Quoting(Crowd):
    """Events may say besides whom they quote, what, of which message, and with a file of theirs."""

    async def read(self, event):
        message = await super().read(event)
        quoted = json.loads(event.raw).get("quotes")
        if quoted is None:
            return message
        who, text, number = quoted
        file = Attachment("image/png", f"{MARK}.png", data=MARK.encode())
        held = Reference(ReferenceKind.REPLY, Author(self.name, who, who), text, number, file_count=1)
        return replace(message, references=(held,), attachments=(file,))


def gossip(prompt):
    return f"so it is: {' '.join(str(each['content']) for each in prompt)}"


async def wait(storage, order, who, text, *, chat="group1", quotes=None, group=None):
    """Have something arrive that nobody works on yet."""
    said = {"who": who, "name": who, "text": text, "is_group": chat.startswith("group"), "quotes": quotes}
    keys = {"transport": "messenger", "chat_id": chat}
    event = InboundEvent(f"{chat}:{order}", keys, order, json.dumps(said).encode(), group_key=group)
    await Inbox(storage, lambda *_: None, storage.now).accept("messenger", [event])


def working(storage):
    return office(storage, gossip, messenger=Quoting(), selector=MessageWindowMessageSelector(6))


async def begin(storage, *, chat="group1", others=()):
    """Have her, and others, say something that is answered."""
    for order, who in enumerate((*others, "alice"), start=1):
        await wait(storage, order, who, f"hello, says {who}" if who != "alice" else f"hello {MARK}", chat=chat)
    async with working(storage) as bot:
        await bot.messenger.until(lambda: len(bot.messenger.visible.get(chat, [])) > len(others))
    return await AgentContext.get_or_create(storage, {"transport": "messenger", "chat_id": chat})


async def left(storage):
    """Return where the mark is kept, once files are clean."""
    await storage.scrub(patience_seconds=60)
    return await find_bytes(storage, MARK)


async def is_noted(storage):
    rows = await storage.read(lambda c: c.execute(select(access_refusals.c.subject)).all())
    await Maintenance(storage, clock=lambda: storage.now() + timedelta(hours=1)).run_once()
    left = await storage.read(lambda c: c.execute(select(access_refusals.c.subject)).all())
    return bool(rows), bool(left)


@pytest.mark.any_database
@pytest.mark.parametrize("number", ["1", None])
async def test_a_quote_that_waits_is_not_kept_and_its_question_is_answered(storage, number):
    await begin(storage, others=["bob"])
    await wait(storage, 7, "bob", "what does she mean?", quotes=["alice", f"hello {MARK}", number])
    await forget_person(storage, PERSON)
    assert await is_noted(storage) == (True, True)
    async with working(storage) as bot:
        await bot.messenger.until(lambda: "group1" in bot.messenger.visible)
    assert "what does she mean?" in bot.messenger.visible["group1"][0]
    assert await left(storage) == []
    assert await is_noted(storage) == (True, False)


async def test_a_quote_of_one_message_that_waits_is_not_kept(storage):
    group = await begin(storage, others=["bob"])
    message = next(each for each in await group.chat_history.messages() if MARK in each.text)
    await wait(storage, 7, "bob", "what?", quotes=["alice", f"hello {MARK}", message.external_id])
    await wait(storage, 8, "bob", "and this?", quotes=["alice", "something else", "99"])
    await forget_messages(storage, group.id, [message.id])
    async with working(storage) as bot:
        await bot.messenger.until(lambda: len(bot.messenger.visible.get("group1", [])) == 2)
    assert await find_bytes(storage, "something else")
    held = [each.references for each in await group.chat_history.messages()]
    assert MARK not in str(held)
    assert "something else" in str(held)


@pytest.mark.parametrize("way", ["person", "chat"])
async def test_what_they_had_said_and_was_not_read_yet_is_forgotten_too(storage, way):
    group = await begin(storage, others=["bob"])
    await wait(storage, 7, "alice", f"more of {MARK}")
    await wait(storage, 8, "bob", "and I?")
    await (forget_person(storage, PERSON) if way == "person" else forget_messages(storage, group.id, PERSON))
    async with working(storage) as bot:
        await bot.messenger.until(lambda: "and I?" in str(bot.messenger.visible))
    assert await left(storage) == []
    assert len(bot.messenger.visible["group1"]) == 1


@pytest.mark.any_database
async def test_who_waits_to_be_heard_in_a_group_for_the_first_time_is_answered(storage):
    await begin(storage)
    await wait(storage, 7, "bob", "and I?")
    await forget_person(storage, PERSON)
    async with working(storage) as bot:
        await bot.messenger.shows("group1", "so it is: and I?")
    assert await left(storage) == []


@pytest.mark.any_database
async def test_what_they_say_afterwards_is_kept_again(storage):
    await begin(storage, others=["bob"])
    await wait(storage, 7, "bob", "what does she mean?", quotes=["alice", f"hello {MARK}", "1"])
    await forget_person(storage, PERSON)
    await wait(storage, 9, "alice", "here I am again")
    async with working(storage) as bot:
        await bot.messenger.until(lambda: len(bot.messenger.visible.get("group1", [])) == 2)
    assert await find_bytes(storage, "here I am again")
    assert await left(storage) == []


async def test_an_album_of_theirs_that_gathers_is_not_kept(storage):
    await begin(storage, others=["bob"])
    for order in (7, 8):
        await wait(storage, order, "alice", f"picture {MARK}", group="album")
    await wait(storage, 9, "bob", "and I?")
    await forget_person(storage, PERSON)
    async with working(storage) as bot:
        await bot.messenger.until(lambda: "and I?" in str(bot.messenger.visible))
    assert await left(storage) == []


async def test_what_was_given_up_is_forgotten_too(storage):
    await begin(storage, others=["bob"])
    await wait(storage, 7, "alice", f"more of {MARK}")
    await storage.write(
        lambda c: c.execute(turns.update().where(turns.c.status == "queued").values(status="set_aside"))
    )
    await forget_person(storage, PERSON)
    assert await left(storage) == []


async def test_nothing_is_noted_where_nothing_waits_that_names_them(storage):
    await begin(storage, others=["bob"])
    await wait(storage, 7, "bob", "hello")
    await forget_person(storage, PERSON)
    assert await is_noted(storage) == (False, False)
    assert await storage.read(lambda c: c.execute(select(events.c.id).where(events.c.raw.is_not(None))).all())
