"""What reading costs, who is not read, and that answers do not wait for it."""

import asyncio
from datetime import timedelta

import pytest
from background.observing import ALICE, BOB, NOON, Clock, fact, first_words, noting, observer_of, open_chat, say, tokens
from people.conversing import make_service
from sqlalchemy import insert, select, text, update
from sqlalchemy.dialects import sqlite
from standins.openai_api import CHAT, RESPONSES, Failure, OpenAIApi

from botservice import AgentContext, FallbackLLM, LLMError, LLMFailure, OpenAIChatLLM, ScriptedChatLLM
from botservice.background.maintenance import Maintenance
from botservice.background.observer_reading import SCHEMA
from botservice.background.queries import _CHANGED, _DUE
from botservice.core.errors import BudgetExceeded
from botservice.core.messages import TokenUsage
from botservice.core.policies import AccessMode, Scope, parse_limits, parse_prices
from botservice.llm.chat import ChatResponse
from botservice.people.access import Access
from botservice.people.budgets import Budgets
from botservice.people.fact_queries import visible_facts
from botservice.people.queries import find_identity
from botservice.people.usage import ModelCall, Payer, UsageBy
from botservice.people.usage_queries import list_usage, record_call
from botservice.storage.tables.knowledge import observer_reservations
from botservice.storage.tables.people import facts
from botservice.turns.delivery_queries import owe_in_turn

NOTHING = '{"notes": [], "facts": []}'


async def lines(storage, by):
    return {each.subject: each for each in await storage.read(lambda c: list_usage(c, by, NOON))}


@pytest.mark.any_database
async def test_what_reading_takes_is_counted_under_its_own_name_for_chat_and_person(storage):
    chat, group = await open_chat(storage, "1", ALICE), await open_chat(storage, "-5", ALICE, BOB)
    budgets = Budgets({}, parse_prices("scripted=1000/1000"))
    answer = ChatResponse(NOTHING, usage=TokenUsage(800, 200), model="scripted")
    for each in (chat, group):
        await say(each, "Something to read")
        await observer_of(storage, ScriptedChatLLM([answer]), budgets=budgets).observe(each)
    used = (await lines(storage, UsageBy.MODEL))["observer"]
    assert (used.calls, used.input_tokens, used.output_tokens) == (2, 1600, 400)
    assert used.cost > 0
    assert set(await lines(storage, UsageBy.PERSON)) == {"telegram:1", ""}
    assert set(await lines(storage, UsageBy.CHAT)) == {"telegram:1", "telegram:-5"}


@pytest.mark.any_database
async def test_reading_stops_when_its_part_of_a_budget_is_used_up_and_goes_on_in_the_next_period(storage):
    chat, clock = await open_chat(storage, "1", ALICE), Clock()
    await say(chat, *[tokens(600)] * 4)
    budgets = Budgets({Scope.CHAT: parse_limits("20000 tokens/day")}, answer_tokens=1000)
    payer = Payer.of(chat.id, chat.context_keys, ALICE)
    await storage.write(lambda c: record_call(c, payer, ModelCall("m", 15_000), NOON))
    llm = noting(notes=first_words)
    observer = observer_of(storage, llm, clock, window_tokens=100, budgets=budgets)
    assert await observer.catch_up() == 0
    assert llm.prompts == []
    with pytest.raises(BudgetExceeded):
        await observer.observe(chat)
    clock.now = NOON + timedelta(days=1)
    assert await observer.catch_up() == 1
    assert len(llm.prompts) == 1
    assert await storage.read(lambda c: c.execute(select(observer_reservations)).all()) == []


@pytest.mark.any_database
async def test_what_is_reserved_for_reading_counts_until_it_is_over(storage):
    chat, other = await open_chat(storage, "1", ALICE), await open_chat(storage, "2", BOB)
    budgets = Budgets({Scope.SERVICE: parse_limits("10000 tokens/day")}, answer_tokens=4000)
    for each in (chat, other):
        await say(each, "Something to read")

    async def answer(_):
        with pytest.raises(BudgetExceeded):
            await observer_of(storage, ScriptedChatLLM([NOTHING]), budgets=budgets).observe(other)
        return NOTHING

    assert len(await observer_of(storage, ScriptedChatLLM(answer), budgets=budgets).observe(chat)) == 1
    assert len(await observer_of(storage, ScriptedChatLLM([NOTHING]), budgets=budgets).observe(other)) == 1


async def test_a_call_that_fails_gives_back_what_was_reserved(storage):
    chat = await open_chat(storage, "1", ALICE)
    await say(chat, "Something to read")
    budgets = Budgets({Scope.SERVICE: parse_limits("10000 tokens/day")}, answer_tokens=4000)
    with pytest.raises(LLMError):
        await observer_of(storage, ScriptedChatLLM([LLMError("down")]), budgets=budgets).observe(chat)
    assert await storage.read(lambda c: c.execute(select(observer_reservations)).all()) == []


@pytest.mark.any_database
async def test_a_question_to_a_guest_is_not_read(storage):
    chat = await AgentContext.get_or_create(storage, {"transport": "telegram", "guest": "7"})
    await say(chat, *[tokens(600)] * 4)
    llm = noting(notes=first_words)
    assert await observer_of(storage, llm, window_tokens=100).catch_up() == 0
    assert llm.prompts == []


@pytest.mark.any_database
async def test_who_is_not_let_in_any_more_is_not_read(storage):
    chat, group, clock = await open_chat(storage, "1", ALICE), await open_chat(storage, "-5", ALICE, BOB), Clock()
    for each in (chat, group):
        await say(each, *[tokens(600)] * 4)
    access = Access(AccessMode.ALLOW, allowed=frozenset({"telegram:1", "telegram:-5"}))
    for name in ("telegram:1", "telegram:-5"):
        await storage.write(lambda c, name=name: access.revoke(c, name, "owner", clock()))
    llm = noting(notes=first_words)
    assert await observer_of(storage, llm, clock, window_tokens=100, access=access).catch_up() == 0
    assert llm.prompts == []
    await storage.write(lambda c: access.approve(c, "telegram:1", "owner", clock(), owe=owe_in_turn))
    await say(chat, "again", at=clock())
    assert await observer_of(storage, llm, clock, window_tokens=100, access=access).catch_up() >= 1


async def begin_reading(storage, clock):
    """Return a reading that has asked its model, and what lets the model answer."""
    began, goes_on = asyncio.Event(), asyncio.Event()

    async def hang(_):
        began.set()
        await goes_on.wait()
        return NOTHING

    reading = asyncio.create_task(observer_of(storage, ScriptedChatLLM(hang), clock, window_tokens=100).catch_up())
    await asyncio.wait_for(began.wait(), 30)
    return reading, goes_on


@pytest.mark.any_database
async def test_an_answer_does_not_wait_for_a_reading_and_asks_for_none(storage):
    chat, clock = await open_chat(storage, "1", ALICE), Clock()
    await say(chat, *[tokens(600)] * 4)
    reading, goes_on = await begin_reading(storage, clock)
    service, llm = make_service(storage, lambda _: "Fine.")
    answer = await asyncio.wait_for(service.prompt(chat, "hello", author=ALICE), 30)
    assert answer.text == "Fine."
    assert len(llm.prompts) == 1
    goes_on.set()
    assert await asyncio.wait_for(reading, 30) == 1


async def test_of_two_replicas_one_reads(storage):
    chat, clock = await open_chat(storage, "1", ALICE), Clock()
    await say(chat, *[tokens(600)] * 4)
    reading, goes_on = await begin_reading(storage, clock)
    other = ScriptedChatLLM([NOTHING])
    assert await observer_of(storage, other, clock, window_tokens=100).catch_up() == 0
    assert other.prompts == []
    goes_on.set()
    assert await asyncio.wait_for(reading, 30) == 1


@pytest.mark.any_database
async def test_facts_of_private_chats_are_in_no_group_and_end_nothing_there_unseen(storage):
    chat, group = await open_chat(storage, "1", ALICE), await open_chat(storage, "-5", ALICE, BOB)
    await say(chat, "I live in Lyon")
    await say(group, "I work in Bern")
    await say(group, "Alice lives in Nice", author=BOB)
    llm = noting(
        facts=lambda data: (
            fact(data, "live in Lyon", "home") + fact(data, "work in Bern", "job") + fact(data, "Nice", "home")
        )
    )
    for each in (chat, group):
        await observer_of(storage, llm).observe(each)
    seen = {
        each.id: {one.text for one in await storage.read(lambda c, each=each: visible_facts(c, each.id, ALICE))}
        for each in (chat, group)
    }
    assert seen == {chat.id: {"I live in Lyon", "I work in Bern"}, group.id: {"I work in Bern"}}


@pytest.mark.any_database
async def test_upkeep_leaves_what_reading_took_of_people_who_are_known(storage):
    chat = await open_chat(storage, "1", ALICE)
    await say(chat, "Something to read")
    await observer_of(storage, ScriptedChatLLM([NOTHING])).observe(chat)
    await Maintenance(storage, clock=lambda: NOON + timedelta(days=40)).run_once()
    assert set(await lines(storage, UsageBy.PERSON)) == {"telegram:1"}


@pytest.mark.parametrize(("api", "path"), [("chat", CHAT), ("responses", RESPONSES)])
async def test_a_server_is_asked_for_the_form_and_without_it_where_it_takes_none(api, path):
    refuse = Failure(400, "Unknown parameter: 'text.format' / 'response_format'.")
    answers = iter([NOTHING, refuse, NOTHING, NOTHING])
    with OpenAIApi.running(lambda _: next(answers)) as server:
        llm = OpenAIChatLLM("gpt-test", base_url=server.base_url, api_key="k" * 20, api=api)
        for each in (llm, FallbackLLM([llm]), llm):
            assert (await each.chat([{"role": "user", "content": "hello"}], schema=SCHEMA)).text == NOTHING
        await llm.close()
    bodies = server.bodies(path)
    forms = [each.get("response_format") or (each.get("text") or {}).get("format") for each in bodies]
    assert [form is not None for form in forms] == [True, True, False, False]
    held = forms[0].get("json_schema", forms[0])
    assert (held["strict"], held["schema"]) == (True, SCHEMA.schema)


@pytest.mark.slow
async def test_what_has_ended_long_ago_gives_way(storage):
    chat = await open_chat(storage, "1", ALICE)
    said = [f"I live in town{number}" for number in range(430)]

    def write(connection):
        here = {"identity_id": find_identity(connection, ALICE).id, "context_id": chat.id, "topic": "home"}
        times = dict.fromkeys(("created_at", "updated_at", "valid_from", "valid_to", "superseded_at"), NOON)
        ended = [here | times | {"text": each, "set_by": "observer"} for each in said[:410]]
        connection.execute(insert(facts), ended)
        connection.execute(update(facts).values(ended_by=facts.c.id + 1))

    await storage.write(write)
    observer = observer_of(storage, noting(facts=lambda data: fact(data, "live in", "home")))
    for number in (410, 420):
        await say(chat, *said[number : number + 10])
        await observer.observe(chat)
    every = await storage.read(lambda c: visible_facts(c, chat.id, ALICE, with_ended=True))
    assert every[0].text == "I live in town429"
    assert await storage.read(lambda c: c.exec_driver_sql("SELECT count(*) FROM facts").scalar_one()) <= 402


@pytest.mark.any_database
async def test_a_stretch_that_the_model_refuses_is_left_out_in_the_end_and_one_that_is_not_to_blame_is_not(storage):
    chat, clock = await open_chat(storage, "1", ALICE), Clock()
    await say(chat, *[tokens(600)] * 4)
    errors = [LLMError("no key", is_transient=False, kind=LLMFailure.UNAUTHORIZED)] * 4
    errors += [LLMError("refused", is_transient=False, kind=LLMFailure.BAD_REQUEST)] * 3
    llm = ScriptedChatLLM(errors)
    observer = observer_of(storage, llm, clock, window_tokens=100)
    for _ in range(20):
        await observer.catch_up()
        clock.pass_by(hours=2)
    assert len(llm.prompts) == 7
    assert all(each == llm.prompts[0] for each in llm.prompts)
    assert await observer_of(storage, ScriptedChatLLM([]), clock, window_tokens=100).catch_up() == 0


async def test_what_is_due_is_found_by_indexes(sqlite_storage):
    plans = []
    for query, values in ((_DUE, {"now": 5}), (_CHANGED, {"after": 5})):
        compiled = query.compile(dialect=sqlite.dialect(paramstyle="named"))
        given, explained = {**compiled.params, **values}, text(f"EXPLAIN QUERY PLAN {compiled}")
        rows = await sqlite_storage.read(lambda c, explained=explained, given=given: c.execute(explained, given).all())
        plans.append(" ".join(row.detail for row in rows))
    assert "ix_observed_due_at" in plans[0]
    assert "SCAN" not in plans[0].replace("SCAN observed USING INDEX", "")
    assert "ix_contexts_last_message_id" in plans[1]


@pytest.mark.any_database
async def test_a_message_longer_than_what_is_read_of_an_old_chat_keeps_nothing_from_being_read(storage):
    long, short = await open_chat(storage, "1", ALICE), await open_chat(storage, "2", BOB)
    await say(long, tokens(25_000))
    await say(short, *[tokens(600)] * 4, author=BOB)
    llm = noting(notes=first_words)
    assert await observer_of(storage, llm, window_tokens=100).catch_up() == 2
    assert [len(await each.notes()) for each in (long, short)] == [1, 4]
