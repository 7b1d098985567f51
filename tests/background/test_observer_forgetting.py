"""What came of words goes with them, also while they are being read, and what remains is read again."""

import asyncio
import json

import pytest
from background.observing import (
    ALICE,
    BOB,
    Clock,
    fact,
    first_words,
    noting,
    observer_of,
    one_note,
    open_chat,
    say,
    texts_of,
    tokens,
    told,
)
from people.crowd import find_bytes
from sqlalchemy import select, update

from botservice import AgentContext, ScriptedChatLLM
from botservice.commands.memory import erase_note
from botservice.history.edit_queries import change_message
from botservice.history.rows import NewWords
from botservice.people.fact_queries import facts_of
from botservice.people.queries import find_identity
from botservice.privacy.exported_data import as_values, read_person
from botservice.privacy.forgetting import forget_chat, forget_messages, forget_person
from botservice.storage.tables.columns import metadata
from botservice.storage.tables.conversations import messages
from botservice.storage.tables.knowledge import observed
from botservice.turns.merge_queries import merge_contexts


async def known(storage, author=ALICE):
    identity = await storage.read(lambda c: find_identity(c, author))
    person = 0 if identity is None else identity.person_id
    return [each.text for each in await storage.read(lambda c: facts_of(c, person))]


async def test_a_message_takes_along_every_note_that_was_read_with_it_and_the_rest_is_read_anew(storage):
    chat, clock = await open_chat(storage, "1", ALICE), Clock()
    said = await say(chat, "Rome is where we go", "swordfish is the word", "June is the month")
    await observer_of(storage, noting(notes=lambda data: first_words(data) + one_note(data))).observe(chat)
    assert len(await chat.notes()) == 4
    await forget_messages(storage, chat.id, [said[1].id])
    assert await chat.notes() == []
    assert await find_bytes(storage, "swordfish") == []
    llm = noting(notes=first_words)
    observer = observer_of(storage, llm, clock)
    assert await observer.catch_up() == 0, "somebody may be about to forget more"
    clock.pass_by(minutes=11)
    assert await observer.catch_up() == 1
    assert [each["id"] for each in told(llm.prompts[0])["messages"]] == [said[0].id, said[2].id]
    assert await texts_of(chat) == ["Rome is where we go", "June is the month"]
    assert await observer.catch_up() == 0


@pytest.mark.any_database
async def test_forgetting_the_last_words_leaves_notes_of_what_was_read_before_them(storage):
    chat = await open_chat(storage, "1", ALICE)
    observer = observer_of(storage, noting(notes=first_words), notes_tokens=2000)
    for number in range(1, 4):
        said = await say(chat, f"Reading {number} is done")
        await observer.observe(chat)
    await chat.chat_history.delete_messages([said[0].id])
    assert await texts_of(chat) == ["Reading 1 is done", "Reading 2 is done"]


@pytest.mark.parametrize("how", ["deleted", "edited", "chat", "person", "note"])
async def test_what_is_forgotten_while_it_is_read_is_not_written_down(storage, how):
    chat = await open_chat(storage, "1", ALICE)
    await say(chat, "Something before")
    await observer_of(storage, noting(notes=first_words)).observe(chat)
    (said,) = await say(chat, "I live in Swordfishtown")
    await storage.write(lambda c: c.execute(update(messages).where(messages.c.id == said.id).values(external_id="e1")))

    async def forget(prompt):
        match how:
            case "deleted":
                await chat.chat_history.delete_messages([said.id])
            case "edited":
                new = NewWords("I live in Lyon", (), None, None)
                await storage.write(lambda c: change_message(c, chat.id, "e1", new, Clock()()))
            case "chat":
                await forget_chat(storage, chat.id)
            case "person":
                await forget_person(storage, ALICE)
            case _:
                await storage.write(lambda c: erase_note(c, chat.id, 1, Clock()()))
        data = told(prompt)
        return json.dumps({"notes": first_words(data), "facts": fact(data, "live in Swordfishtown", "home")})

    script = iter([forget, '{"notes": [], "facts": []}', '{"notes": [], "facts": []}'])
    done = await observer_of(storage, ScriptedChatLLM(script)).observe(chat)
    assert done[0].is_stale
    assert await known(storage) == []
    await storage.scrub(patience_seconds=60)
    if how != "note":
        assert await find_bytes(storage, "Swordfishtown") == []
    assert not [each for each in await texts_of(chat) if "Swordfish" in each]


@pytest.mark.any_database
async def test_an_edited_message_takes_along_what_came_of_its_old_words(storage):
    chat = await open_chat(storage, "1", ALICE)
    (said,) = await say(chat, "I live in Swordfishtown")
    llm = noting(notes=first_words, facts=lambda data: fact(data, "live in", "home"))
    await observer_of(storage, llm).observe(chat)
    await storage.write(
        lambda c: c.execute(update(messages).where(messages.c.id == said.id).values(text="I live in Lyon"))
    )
    assert (await texts_of(chat), await known(storage)) == ([], [])
    await observer_of(storage, llm).observe(chat)
    assert (await texts_of(chat), await known(storage)) == (["I live in Lyon"], ["I live in Lyon"])


@pytest.mark.any_database
async def test_a_fact_that_had_ended_holds_again_when_what_ended_it_is_forgotten(storage):
    chat = await open_chat(storage, "1", ALICE)
    said = await say(chat, "I live in Paris", "I live in Lyon", "I live in Rome")
    observer = observer_of(storage, noting(facts=lambda data: fact(data, "live in", "home")))
    await observer.observe(chat)
    assert await known(storage) == ["I live in Rome"]
    await chat.chat_history.delete_messages([said[1].id])
    assert await known(storage) == ["I live in Rome"]
    await chat.chat_history.delete_messages([said[2].id])
    assert await known(storage) == ["I live in Paris"]


async def test_a_person_who_is_forgotten_is_in_no_note_of_a_group_and_the_others_are_noted_anew(storage):
    group = await open_chat(storage, "-5", ALICE, BOB)
    await say(group, "Swordfish it is", author=ALICE)
    await say(group, "We meet on Monday", author=BOB)
    observer = observer_of(storage, noting(notes=lambda data: first_words(data) + one_note(data)))
    await observer.observe(group)
    await forget_person(storage, ALICE)
    assert await find_bytes(storage, "Swordfish") == []
    await observer.observe(group)
    assert "We meet on Monday" in await texts_of(group)


async def test_a_chat_that_is_forgotten_leaves_no_row_of_what_was_noted(storage):
    chat = await open_chat(storage, "1", ALICE)
    await say(chat, "Swordfish it is")
    await observer_of(storage, noting(notes=first_words)).observe(chat)
    await forget_chat(storage, chat.id)
    for name in ("observed", "notes", "refused_notes"):
        query = select(metadata.tables[name])
        assert await storage.read(lambda c, query=query: c.execute(query).all()) == []


async def test_two_chats_that_become_one_are_read_as_one(storage):
    older, newer = await open_chat(storage, "1", ALICE), await open_chat(storage, "2", ALICE)
    observer = observer_of(storage, noting(notes=first_words))
    for chat, text in ((older, "An older word"), (newer, "A newer word")):
        await say(chat, text)
        await observer.observe(chat)
    await storage.write(lambda c: merge_contexts(c, older.id, newer.id))
    assert await texts_of(older) == ["An older word"]
    await observer.observe(older)
    assert await texts_of(older) == ["An older word", "A newer word"]


@pytest.mark.any_database
async def test_an_export_has_the_notes_of_private_chats_and_none_of_groups(storage):
    chat, group = await open_chat(storage, "1", ALICE), await open_chat(storage, "-5", ALICE, BOB)
    observer = observer_of(storage, noting(notes=first_words))
    await say(chat, "Mine alone")
    await say(group, "Alice in the group", author=ALICE)
    await say(group, "Bob in the group", author=BOB)
    for each in (chat, group):
        await observer.observe(each)
    given = as_values(await read_person(storage, ALICE))
    assert [each["text"] for each in given["notes"]] == ["Mine alone"]


async def test_a_reading_that_was_cut_off_is_done_again_and_written_once(storage):
    chat, clock = await open_chat(storage, "1", ALICE), Clock()
    await say(chat, *[tokens(600, word) for word in ("one", "two", "three", "four")])
    began = asyncio.Event()

    async def hang(_):
        began.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(observer_of(storage, ScriptedChatLLM(hang), clock, window_tokens=100).catch_up())
    await asyncio.wait_for(began.wait(), 30)
    task.cancel()
    await asyncio.wait([task])
    again = noting(notes=one_note)
    assert await observer_of(storage, again, clock, window_tokens=100).catch_up() == 1
    assert len(await chat.notes()) == 1


async def test_two_readings_at_once_write_once(storage):
    chat = await open_chat(storage, "1", ALICE)
    await say(chat, "We go to Rome in June", "I live in Lyon")
    both = asyncio.Barrier(2)

    async def answer(prompt):
        if told(prompt)["messages"]:
            await asyncio.wait_for(both.wait(), 30)
        data = told(prompt)
        return json.dumps({"notes": first_words(data), "facts": fact(data, "live in Lyon", "home")})

    first, second = observer_of(storage, ScriptedChatLLM(answer)), observer_of(storage, ScriptedChatLLM(answer))
    done = await asyncio.gather(first.observe(chat), second.observe(chat))
    assert sorted(each.is_stale for (each,) in done) == [False, True]
    assert (len(await chat.notes()), await known(storage)) == (2, ["I live in Lyon"])
    row = await storage.read(lambda c: c.execute(select(observed)).one())
    assert row.version == 1
    assert (await AgentContext.load(storage, chat.id)).id == chat.id
