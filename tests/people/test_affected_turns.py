"""The answer to a message goes with it, however long ago that was."""

from datetime import timedelta

import pytest
from people.conversing import ALICE, NOW, open_chat
from people.conversing import BOB as BOB_HERE
from people.crowd import crowded, find_bytes
from people.test_forgetting import PERSON
from sqlalchemy import select

from botservice import AgentContext, Author
from botservice.background.maintenance import Maintenance
from botservice.core.message_references import Reference, ReferenceKind
from botservice.core.messages import Role
from botservice.core.states import TurnStatus
from botservice.history.queries import insert_message
from botservice.history.rows import NewMessage
from botservice.privacy.forgetting import forget_messages, forget_person
from botservice.privacy.turn_queries import turns_of
from botservice.storage.tables.conversations import events, messages, turns
from botservice.turns.queries import insert_turn

BOB = Author("messenger", "bob")


async def talk(storage, *said):
    """Have people say something in a group, each answered shortly, and let the record of it be deleted."""
    async with crowded(storage, lambda prompt: f"yes, {prompt[-1]['content'][-4:]}") as bot:
        for who, text in said:
            await bot.messenger.say(bot, who, text, chat="group1")
    for days in (8, 40):
        await Maintenance(storage, clock=lambda days=days: storage.now() + timedelta(days=days)).run_once()
    assert await storage.read(lambda c: c.execute(select(events.c.id)).all()) == []
    return await AgentContext.get_or_create(storage, {"transport": "messenger", "chat_id": "group1"})


async def texts(group):
    return [each.text for each in await group.chat_history.messages()]


async def test_a_short_answer_of_long_ago_goes_with_the_person_it_answers(storage):
    group = await talk(storage, ("alice", "my pin is q711"), ("bob", "and mine w822"), ("alice", "again e933"))
    await forget_person(storage, PERSON)
    assert await texts(group) == ["and mine w822", "yes, w822"]
    assert await find_bytes(storage, "q711") == []


async def test_a_short_answer_of_long_ago_goes_with_its_message(storage):
    group = await talk(storage, ("alice", "my pin is q711"), ("alice", "my age is w822"))
    first, *_ = await group.chat_history.messages()
    gone = await forget_messages(storage, group.id, [first.id])
    assert (gone.messages, gone.answers) == (1, 1)
    assert await texts(group) == ["my age is w822", "yes, w822"]


@pytest.mark.parametrize(("joined", "is_found"), [(0, True), (1, False)])
async def test_an_answer_of_long_ago_to_somebody_else_as_well_stays(storage, joined, is_found):
    group = await talk(storage, ("bob", "mine is w822"), ("alice", "my pin is q711"))
    said = await group.chat_history.messages()
    await storage.write(lambda c: join(c, said[1].id, said[3].id, joined))
    assert bool(await storage.read(lambda c: turns_of(c, group.id, [said[2].id]))) is is_found


def join(connection, answer_id, other_id, joined):
    """Have the answer to a first message be part of nothing, and that to a second one answer so many more."""
    connection.execute(messages.delete().where(messages.c.id == answer_id))
    answered = select(messages.c.answers_turn_id).where(messages.c.id == other_id).scalar_subquery()
    connection.execute(turns.update().where(turns.c.id == answered).values(joined_events=joined))


async def test_what_is_due_at_a_time_answers_nobody_who_wrote_before_it(storage):
    group = await talk(storage, ("alice", "my pin is q711"))
    said, answer = await group.chat_history.messages()
    await storage.write(lambda c: c.execute(turns.update().values(order_key=0)))
    assert await storage.read(lambda c: turns_of(c, group.id, [said.id])) == set()
    assert answer.text == "yes, q711"


async def test_an_answer_to_nothing_but_what_is_forwarded_goes_with_that(storage):
    group = await open_chat(storage, "telegram-g", ALICE, BOB_HERE)
    forward = Reference(ReferenceKind.FORWARD, ALICE, "q711")
    both = [await heard(storage, group, number, text, forward) for number, text in ((1, ""), (2, "what is it?"))]
    gone = await forget_person(storage, ALICE)
    left = [each.text for each in await group.chat_history.messages()]
    assert left == ["", "what is it?", both[1]]
    assert gone.answers == 1


async def heard(storage, group, number, text, *held):
    """Have Bob say something that is answered; return the answer."""

    def write(connection):
        keys = {"context_id": group.id, "transport": "telegram", "order_key": number}
        turn_id = insert_turn(connection, group.id, "telegram", NOW, status=TurnStatus.DONE, order_key=number)
        event = events.insert().values(
            keys | {"key": f"e{number}", "kind": "message", "received_at": NOW, "turn_id": turn_id}
        )
        event_id = connection.execute(event.returning(events.c.id)).scalar_one()
        insert_message(
            connection, group.id, NewMessage(Role.USER, text, NOW, BOB_HERE, event_id=event_id, references=held)
        )
        answer = NewMessage(Role.ASSISTANT, f"yes {number}", NOW, answers_turn_id=turn_id)
        return insert_message(connection, group.id, answer).text

    return await storage.write(write)
