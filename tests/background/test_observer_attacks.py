"""Models and people that mean harm, and what it costs."""

import pytest
from background.observing import (
    ALICE,
    BOB,
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
from sqlalchemy import update

from botservice import LLMError, ScriptedChatLLM
from botservice.background.observer_answer import sentence_with
from botservice.core.messages import Author, Role, TokenUsage
from botservice.history.queries import insert_message
from botservice.history.rows import NewMessage
from botservice.llm.chat import ChatResponse
from botservice.people.fact_queries import facts_of
from botservice.people.queries import find_identity
from botservice.people.usage import UsageBy
from botservice.people.usage_queries import list_usage
from botservice.storage.tables.conversations import messages

NOTHING = '{"notes": [], "facts": []}'


async def known(storage, author=ALICE):
    identity = await storage.read(lambda c: find_identity(c, author))
    person = 0 if identity is None else identity.person_id
    return [each.text for each in await storage.read(lambda c: facts_of(c, person))]


@pytest.mark.parametrize("sign", ["\\ud800", "\\u0000", "\\udfff\\ud800", "\\u202e"])
@pytest.mark.slow
async def test_signs_that_no_database_takes_do_no_harm_in_an_answer(storage, sign):
    chat, clock = await open_chat(storage, "1", ALICE), Clock()
    said = await say(chat, "I live in Lyon", *[tokens(600)] * 4)
    answer = (
        (
            '{"notes": [{"text": "I live in SIGN Lyon", "messages": [ID], "earlier": []}], "facts": '
            '[{"message": ID, "quote": "live in Lyon", "topic": "taste", "subject": "lyonSIGN", "replaces": "SIGN"},'
            '{"message": ID, "quote": "SIGNlive in Lyon", "topic": "SIGN", "subject": "SIGN", "replaces": "SIGN"}]}'
        )
        .replace("SIGN", sign)
        .replace("ID", str(said[0].id))
    )
    llm = ScriptedChatLLM(lambda _: answer)
    observer = observer_of(storage, llm, clock, window_tokens=100)
    assert await observer.catch_up() == 1
    assert await observer.catch_up() == 0
    for each in await texts_of(chat):
        assert each.isprintable()


@pytest.mark.any_database
async def test_a_model_that_is_down_is_not_asked_about_every_chat(storage):
    clock = Clock()
    for number in range(12):
        await say(
            await open_chat(storage, str(number + 1), Author("telegram", str(number + 1), "P")), *[tokens(600)] * 4
        )
    llm = ScriptedChatLLM(lambda _: (_ for _ in ()).throw(LLMError("down")))
    observer = observer_of(storage, llm, clock, window_tokens=100)
    calls = []
    for _ in range(4):
        calls.append(await observer.catch_up())
        clock.pass_by(seconds=121)
    assert calls[0] <= 4, calls
    assert sum(calls) <= 12, calls
    assert calls[1] > 0, calls


@pytest.mark.any_database
async def test_what_one_writes_in_the_name_of_a_group_is_known_of_nobody(storage):
    group = await open_chat(storage, "-5", ALICE, BOB)
    await say(group, "I live in Lyon", author=Author("telegram", "-5", "Our group"))
    llm = noting(facts=lambda data: fact(data, "live in Lyon", "home"))
    await observer_of(storage, llm).observe(group)
    assert await known(storage, Author("telegram", "-5", "Our group")) == []


@pytest.mark.parametrize(
    ("own", "quote"),
    [
        ("I do not\nlive in Lyon", "live in Lyon"),
        ("I do not eat\n- eggs\n- nuts", "- nuts"),
        ("I do not believe what they say:\n\nI live in Lyon", "I live in Lyon"),
    ],
)
def test_a_line_that_goes_on_is_not_cut_from_its_not(own, quote):
    assert sentence_with(quote, own) != quote


@pytest.mark.any_database
async def test_the_model_is_not_asked_about_what_nobody_has_said(storage):
    chat = await open_chat(storage, "1", ALICE)
    new = NewMessage(Role.SYSTEM, "You are kind", NOON)
    await storage.write(lambda c: [insert_message(c, chat.id, new) for _ in range(3)])
    llm = noting(notes=first_words)
    assert await observer_of(storage, llm).observe(chat) == []
    assert llm.prompts == []


@pytest.mark.any_database
@pytest.mark.slow
async def test_the_more_is_to_be_read_anew_the_longer_it_waits(storage):
    chat, clock = await open_chat(storage, "1", ALICE), Clock()
    observer = observer_of(storage, noting(notes=lambda data: first_words(data)[:2]), clock, window_tokens=500)
    said = []
    for number in range(150):
        said += await say(chat, tokens(400, f"word{number}"), at=clock())
    await observer.observe(chat)
    old = update(messages).where(messages.c.id == said[0].id)
    for number in range(2):
        await storage.write(lambda c, number=number: c.execute(old.values(text=f"edited {number}")))
        assert await observer.catch_up() == 0
        clock.pass_by(minutes=11)
        assert await observer.catch_up() == 0
    clock.pass_by(minutes=60)
    assert await observer.catch_up() > 10


@pytest.mark.any_database
@pytest.mark.slow
async def test_words_on_which_the_model_always_breaks_off_are_left_out_once_it_answers_about_others(storage):
    clock = Clock()
    bad, good = await open_chat(storage, "1", ALICE), await open_chat(storage, "2", BOB)
    await say(bad, "poison", *[tokens(600)] * 4)

    def answer(prompt):
        if told(prompt)["messages"][0]["text"] == "poison":
            raise LLMError("timed out")
        return NOTHING

    llm = ScriptedChatLLM(answer)
    observer = observer_of(storage, llm, clock, window_tokens=100)
    for _ in range(30):
        await say(good, *[tokens(600)] * 4, author=BOB, at=clock())
        await observer.catch_up()
        clock.pass_by(hours=2)
    asked = [each for each in llm.prompts if told(each)["messages"][0]["text"] == "poison"]
    assert 2 <= len(asked) <= 5


async def test_a_call_is_counted_and_not_made_again_and_again_whatever_comes_back(storage):
    chat, clock = await open_chat(storage, "1", ALICE), Clock()
    await say(chat, *[tokens(600)] * 4)
    llm = ScriptedChatLLM(lambda _: ChatResponse(b"no text", usage=TokenUsage(800, 200)))
    observer = observer_of(storage, llm, clock, window_tokens=100)
    for _ in range(30):
        await observer.catch_up()
        clock.pass_by(minutes=10)
    assert len(llm.prompts) == 3
    (used,) = await storage.read(lambda c: list_usage(c, UsageBy.MODEL, NOON))
    assert (used.subject, used.calls) == ("observer", 3)
