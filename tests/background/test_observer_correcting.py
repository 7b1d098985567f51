"""What a person says of what is known of them counts more than what the observer finds, and stays so."""

from datetime import timedelta

import pytest
from background.observing import ALICE, BOB, fact, first_words, noting, observer_of, open_chat, say, texts_of
from people.conversing import NOW, command

from botservice.commands.standard import standard_commands
from botservice.people.fact_queries import facts_of
from botservice.people.queries import find_identity

COMMANDS = standard_commands()


async def known(storage, author=ALICE, **how):
    identity = await storage.read(lambda c: find_identity(c, author))
    return await storage.read(lambda c: facts_of(c, identity.person_id, **how))


@pytest.mark.any_database
async def test_a_deleted_fact_does_not_come_back_from_the_same_words_or_others_of_before(storage):
    chat = await open_chat(storage, "1", ALICE)
    said = await say(chat, "I live in Paris", "Something else", "Indeed I live in Paris", "I live in Paris")
    observer = observer_of(storage, noting(facts=lambda data: fact(data, "live in Paris", "home")[:1]))
    await observer.observe(chat)
    (found,) = await known(storage)
    await command(chat, f"/memory delete {found.id}", ALICE, COMMANDS)
    await chat.chat_history.delete_messages([said[1].id])
    again = noting(
        facts=lambda data: fact(data, "live in Paris", "home") + fact(data, "live in Paris", "other", "paris")[::2]
    )
    await storage.write(lambda c: c.exec_driver_sql("UPDATE observed SET read_to = 0"))
    (done,) = await observer_of(storage, again).observe(chat)
    assert [each.topic for each in await known(storage)] == []
    assert done.dropped["refused"] >= 3


async def test_a_correction_is_not_undone_by_anything_that_is_found(storage):
    chat = await open_chat(storage, "1", ALICE)
    await say(chat, "I live in Paris")
    observer = observer_of(storage, noting(facts=lambda data: fact(data, "live in", "home")))
    await observer.observe(chat)
    (found,) = await known(storage)
    await command(chat, f"/memory correct {found.id} Lives in Lyon", ALICE, COMMANDS)
    await say(chat, "I live in a dream", at=NOW + timedelta(days=1))
    (done,) = await observer.observe(chat)
    (kept,) = await known(storage)
    assert (kept.text, kept.set_by) == ("Lives in Lyon", "person")
    assert done.dropped == {"corrected": 1}
    # Nor by the message that it came from, under another topic.
    await storage.write(lambda c: c.exec_driver_sql("UPDATE observed SET read_to = 0"))
    await observer_of(storage, noting(facts=lambda data: fact(data, "in Paris", "other", "paris"))).observe(chat)
    assert [each.text for each in await known(storage)] == ["Lives in Lyon"]


async def test_memory_lists_what_holds_what_held_and_the_notes_and_deletes_them(storage):
    chat = await open_chat(storage, "1", ALICE)
    await say(chat, "I live in Paris", "I live in Lyon")
    llm = noting(notes=first_words, facts=lambda data: fact(data, "live in", "home"))
    await observer_of(storage, llm).observe(chat)
    shown = (await command(chat, "/memory", ALICE, COMMANDS)).text
    assert "until May 1, 2026" in shown
    note = "N1 I live in Paris (May 1, 2026)"
    assert shown.index("Paris") < shown.index("Notes about this chat:") < shown.index(note)
    assert "Deleted: N1" in (await command(chat, "/memory delete N1", ALICE, COMMANDS)).text
    assert "no note N1" in (await command(chat, "/memory delete n1", ALICE, COMMANDS)).text
    assert await texts_of(chat) == ["I live in Lyon"]
    current, *_ = sorted(await known(storage), key=lambda each: each.id, reverse=True)
    await command(chat, f"/memory delete {current.id}", ALICE, COMMANDS)
    assert await known(storage, with_ended=True) == []


@pytest.mark.any_database
async def test_a_deleted_note_does_not_come_back_when_its_messages_are_read_anew(storage):
    chat = await open_chat(storage, "1", ALICE)
    said = await say(chat, "We go to Rome", "Swordfish it is")
    observer = observer_of(storage, noting(notes=first_words))
    await observer.observe(chat)
    await command(chat, "/memory delete N1", ALICE, COMMANDS)
    await chat.chat_history.delete_messages([said[1].id])
    (done,) = await observer.observe(chat)
    assert await texts_of(chat) == []
    assert done.dropped == {"refused": 1}


async def test_in_a_group_a_note_is_deleted_by_whoever_said_something_of_it(storage):
    group = await open_chat(storage, "-5", ALICE, BOB)
    await say(group, "Monday is the day", author=ALICE)
    await say(group, "Rome is the place", author=BOB)
    await observer_of(storage, noting(notes=first_words)).observe(group)
    answer = await command(group, "/memory delete N1", BOB, COMMANDS, is_private=False)
    assert "no note N1" in answer.text
    answer = await command(group, "/memory delete N2", BOB, COMMANDS, is_private=False)
    assert "Deleted: N2" in answer.text
    assert await texts_of(group) == ["Monday is the day"]
