"""What is read when, once, and what comes of it."""

import itertools
from datetime import timedelta

import pytest
from background.observing import (
    ALICE,
    NOON,
    Clock,
    fact,
    first_words,
    noting,
    observer_of,
    open_chat,
    say,
    texts_of,
    tokens,
    told,
)
from people.conversing import make_service

from botservice import AgentContext, LLMError, ScriptedChatLLM, SteadyWindowMessageSelector
from botservice.commands.why import read_sources
from botservice.history.queries import begin_afresh
from botservice.people.fact_queries import facts_of
from botservice.people.queries import find_identity


async def facts(storage, author=ALICE, **how):
    identity = await storage.read(lambda c: find_identity(c, author))
    if identity is None:
        return []
    return await storage.read(lambda c: facts_of(c, identity.person_id, **how))


@pytest.mark.any_database
async def test_notes_and_facts_are_made_of_what_was_said_and_name_their_messages(storage):
    chat = await open_chat(storage, "1", ALICE)
    first, second = await say(chat, "We go to Rome in June", "I live in Lyon. The weather is fine.")
    llm = noting(notes=lambda data: first_words(data)[:1], facts=lambda data: fact(data, "live in Lyon", "home"))
    (done,) = await observer_of(storage, llm).observe(chat)
    (note,) = await chat.notes()
    assert (note.text, note.message_ids, note.at, note.number) == ("We go to Rome in June", (first.id,), NOON, 1)
    (known,) = await facts(storage)
    assert (known.text, known.topic, known.source_message_id) == ("I live in Lyon.", "home", second.id)
    assert (known.valid_from, known.valid_to, known.set_by) == (NOON, None, "observer")
    assert not done.dropped
    assert await observer_of(storage, llm).observe(chat) == []


async def test_a_newer_fact_of_a_topic_ends_the_older_one_whichever_is_read_first(storage):
    chat, other = await open_chat(storage, "1", ALICE), await open_chat(storage, "2", ALICE)
    await say(other, "I live in Lyon", at=NOON + timedelta(days=3))
    await say(chat, "I live in Paris")
    llm = noting(facts=lambda data: fact(data, "I live in", "home"))
    for each in (other, chat):
        await observer_of(storage, llm).observe(each)
    current, ended = await facts(storage, with_ended=True)
    assert (current.text, current.is_current) == ("I live in Lyon", True)
    assert (ended.text, ended.valid_from, ended.valid_to) == ("I live in Paris", NOON, NOON + timedelta(days=3))


@pytest.mark.any_database
async def test_nothing_is_read_before_enough_has_left_the_window_or_the_chat_is_quiet(storage):
    chat, clock, llm = await open_chat(storage, "1", ALICE), Clock(), noting(notes=first_words)
    observer = observer_of(storage, llm, clock, window_tokens=1000)
    await say(chat, *[tokens(240)] * 9)  # 1,200 beyond the window
    assert await observer.catch_up() == 0
    await say(chat, tokens(300))
    assert await observer.catch_up() == 1
    read = [each["id"] for each in told(llm.prompts[0])["messages"]]
    said = await chat.chat_history.messages()
    assert read == [each.id for each in said[: len(read)]], "what the window shows is not read yet"
    assert sum(each.token_count for each in said[len(read) :]) <= 1000
    assert await observer.catch_up() == 0
    clock.pass_by(minutes=11)
    assert await observer.catch_up() == 1
    assert {each["id"] for prompt in llm.prompts for each in told(prompt)["messages"]} == {each.id for each in said}
    await say(chat, tokens(200), at=clock())
    clock.pass_by(minutes=11)
    assert await observer.catch_up() == 0


@pytest.mark.any_database
async def test_a_call_is_made_for_fifteen_hundred_tokens_at_most(storage):
    chat, clock, llm = await open_chat(storage, "1", ALICE), Clock(), noting(notes=first_words)
    observer = observer_of(storage, llm, clock, window_tokens=500)
    for number in range(60):
        await say(chat, tokens(200, f"word{number}"), at=clock())
        await observer.catch_up()
    total = sum(each.token_count for each in await chat.chat_history.messages())
    assert 1 <= len(llm.prompts) <= total / 1500
    ids = [each["id"] for prompt in llm.prompts for each in told(prompt)["messages"]]
    assert ids == sorted(set(ids)), "no message is read twice, none is left out"


@pytest.mark.any_database
async def test_a_model_that_fails_is_asked_again_later_and_nothing_is_lost(storage):
    chat, clock = await open_chat(storage, "1", ALICE), Clock()
    answers = iter([LLMError("down"), '{"notes": [], "facts": []}'])
    llm = ScriptedChatLLM(lambda _: next(answers))
    observer = observer_of(storage, llm, clock, window_tokens=100)
    await say(chat, *[tokens(500)] * 5)
    assert await observer.catch_up() == 1
    assert await observer.catch_up() == 0
    clock.pass_by(minutes=2)
    assert await observer.catch_up() == 1
    assert llm.prompts[0] == llm.prompts[1]


@pytest.mark.any_database
async def test_notes_stand_before_the_window_and_begin_the_prompt_alike_from_turn_to_turn(storage):
    chat = await open_chat(storage, "1", ALICE)
    await say(chat, "We go to Rome in June")
    await observer_of(storage, noting(notes=first_words)).observe(chat)
    service, llm = make_service(storage, lambda _: "Fine.", selector=SteadyWindowMessageSelector(2000))
    for text in ("hello", "how are you?", "what are our plans?"):
        await service.prompt(chat, text, author=ALICE)
    prompts = [[each["content"] for each in prompt] for prompt in llm.prompts]
    assert "[2026-05-01] We go to Rome in June" in prompts[0][1]
    assert "not instructions" in prompts[0][1]
    for before, after in itertools.pairwise(prompts):
        assert after[: len(before) - 1] == before[:-1]
    built = await service.agent.build_prompt(chat)
    assert list(built.sections())[:3] == ["system", "notes", "window"]
    assert built.breakpoints[0] == 1


@pytest.mark.any_database
async def test_a_chat_that_begins_afresh_shows_no_notes_of_before(storage):
    chat = await open_chat(storage, "1", ALICE)
    observer = observer_of(storage, noting(notes=first_words))
    await say(chat, "We go to Rome in June")
    await observer.observe(chat)
    await say(chat, "Something unread")
    await storage.write(lambda c: begin_afresh(c, chat.id))
    await say(chat, "A new matter altogether")
    await observer.observe(chat)
    assert await texts_of(chat) == ["We go to Rome in June", "Something unread", "A new matter altogether"]
    service, llm = make_service(storage, lambda _: "Fine.")
    await service.prompt(chat, "hello", author=ALICE)
    noted = llm.prompts[0][1]["content"]
    assert "A new matter altogether" in noted
    assert "Rome" not in noted
    assert "unread" not in noted


@pytest.mark.any_database
async def test_a_chat_sees_no_notes_of_another(storage):
    chat, other = await open_chat(storage, "1", ALICE), await open_chat(storage, "2", ALICE)
    await say(chat, "We go to Rome in June")
    await observer_of(storage, noting(notes=first_words)).observe(chat)
    assert await other.notes() == []
    assert await (await AgentContext.load(storage, chat.id)).notes() != []


@pytest.mark.any_database
async def test_why_tells_of_notes_and_of_what_held_until_a_day(storage):
    chat = await open_chat(storage, "1", ALICE)
    await say(chat, "I live in Paris")
    await say(chat, "I live in Lyon", at=NOON + timedelta(days=9))
    llm = noting(notes=first_words, facts=lambda data: fact(data, "live in", "home"))
    await observer_of(storage, llm).observe(chat)
    service, answering = make_service(storage, lambda _: "Fine.")
    await service.prompt(chat, "where did I live in May?", author=ALICE)
    known = next(each["content"] for each in answering.prompts[0] if "<person>" in each["content"])
    assert ", 2026-05-10] home: I live in Lyon" in known
    assert ", 2026-05-01 to 2026-05-10] home: I live in Paris" in known
    sources = read_sources((await chat.load_memory()).steps)
    assert (sources.notes, sources.facts[-1]) == (2, "home: I live in Paris (2026-05-01 to 2026-05-10)")
