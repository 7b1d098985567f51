"""What a fact is about, and what it ends: neither too much nor too little."""

from datetime import timedelta

import pytest
from background.observing import ALICE, BOB, NOON, fact, noting, observer_of, open_chat, say, told

from botservice.people.fact_queries import correct_fact, facts_of
from botservice.people.queries import find_identity


async def facts(storage, author=ALICE):
    identity = await storage.read(lambda c: find_identity(c, author))
    return await storage.read(lambda c: facts_of(c, identity.person_id, with_ended=True))


async def observe(storage, chat, *found):
    """Have the newest messages be read, and these facts be found; return what the model was given."""
    given = []

    def find(data):
        given.append(data)
        return [
            {**each, "replaces": replaces}
            for quote, topic, subject, replaces in found
            for each in fact(data, quote, topic, subject)
        ]

    await observer_of(storage, noting(facts=find)).observe(chat)
    return given[-1]


async def correct(storage, text):
    """Have Alice put the first of her facts into other words."""
    (known, *_) = await facts(storage)
    person = (await storage.read(lambda c: find_identity(c, ALICE))).person_id
    await storage.write(lambda c: correct_fact(c, person, known.id, text, NOON + timedelta(days=1)))


@pytest.mark.any_database
async def test_a_bad_knee_does_not_end_an_allergy(storage):
    chat = await open_chat(storage, "1", ALICE)
    await say(chat, "Shellfish closes my throat")
    await observe(storage, chat, ("Shellfish closes", "health", "Shellfish", ""))
    await say(chat, "My knee is swollen", at=NOON + timedelta(days=3))
    await observe(storage, chat, ("My knee is", "health", "knee", ""))
    assert [each.text for each in await facts(storage) if each.is_current] == [
        "Shellfish closes my throat",
        "My knee is swollen",
    ]


@pytest.mark.any_database
async def test_what_is_said_in_other_words_ends_what_it_takes_the_place_of(storage):
    chat = await open_chat(storage, "1", ALICE)
    await say(chat, "Lessons are on Tuesdays")
    await observe(storage, chat, ("Lessons are", "habit", "Lessons", ""))
    await say(chat, "We meet on Thursdays now", at=NOON + timedelta(days=3))
    given = await observe(storage, chat, ("We meet on", "habit", "meet", "habit: lessons"))
    assert given["known"] == {"Alice": ["habit: lessons"]}
    shown = [(each.text, each.is_current, each.valid_to) for each in await facts(storage)]
    assert ("Lessons are on Tuesdays", False, NOON + timedelta(days=3)) in shown
    assert ("We meet on Thursdays now", True, None) in shown
    (current,) = [each for each in await facts(storage) if each.is_current]
    assert current.topic == "habit: meet"  # no word of a message that may be forgotten one day


@pytest.mark.any_database
async def test_a_fact_takes_the_place_of_nothing_of_another_person_or_topic(storage):
    chat = await open_chat(storage, "1", ALICE, BOB)
    await say(chat, "Lessons are on Tuesdays")
    await say(chat, "My dog is called Rex", author=BOB)
    await observe(storage, chat, ("Lessons are", "habit", "Lessons", ""), ("My dog is", "pet", "dog", ""))
    await say(chat, "We meet on Thursdays now", at=NOON + timedelta(days=3), author=BOB)
    given = await observe(
        storage,
        chat,
        ("We meet on", "habit", "meet", "habit: lessons"),
        ("We meet on", "habit", "Thursdays", "pet: dog"),
    )
    assert given["known"] == {"Bob": ["pet: dog"]}
    for person in (ALICE, BOB):
        assert all(each.is_current for each in await facts(storage, person))


@pytest.mark.any_database
async def test_what_a_person_corrected_is_not_replaced(storage):
    chat = await open_chat(storage, "1", ALICE)
    await say(chat, "Lessons are on Tuesdays")
    await observe(storage, chat, ("Lessons are", "habit", "Lessons", ""))
    await correct(storage, "Lessons are on Mondays")
    await say(chat, "We meet on Thursdays now", at=NOON + timedelta(days=3))
    await observe(storage, chat, ("We meet on", "habit", "meet", "habit: lessons"))
    assert [each.text for each in await facts(storage) if each.is_current] == ["Lessons are on Mondays"]


@pytest.mark.any_database
async def test_each_thing_that_a_sentence_says_is_kept_so_that_each_can_end(storage):
    chat = await open_chat(storage, "1", ALICE)
    await say(chat, "I bake bread in Leeds")
    await observe(storage, chat, ("bake bread", "job", "", ""), ("in Leeds", "home", "", ""))
    await say(chat, "Moved to Hull at last", at=NOON + timedelta(days=3))
    await observe(storage, chat, ("Moved to Hull", "home", "", ""))
    assert {(each.topic, each.text, each.is_current) for each in await facts(storage)} == {
        ("job", "I bake bread in Leeds", True),
        ("home", "I bake bread in Leeds", False),
        ("home", "Moved to Hull at last", True),
    }


async def test_a_model_that_leaves_out_what_is_replaced_is_understood(storage):
    chat = await open_chat(storage, "1", ALICE)
    await say(chat, "Lessons are on Tuesdays")
    llm = noting(facts=lambda data: fact(data, "Lessons are", "habit", "Lessons"))
    await observer_of(storage, llm).observe(chat)
    assert told(llm.prompts[0])["known"] == {}
    assert [each.topic for each in await facts(storage)] == ["habit: lessons"]
