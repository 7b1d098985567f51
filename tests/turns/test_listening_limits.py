"""What a bot says unasked is limited: by budgets, by the hour, and by how often a model is asked."""

import contextlib
import json

import pytest
from sqlalchemy import text
from standins.clocks import LastingMinute
from standins.patience import PATIENT
from turns.group_scenes import TwoModels, count_calls, decisions, gate_of, settle
from turns.listening_groups import CHAT, GROUP, group_with, say, shown

from botservice import Storage
from botservice.core.policies import Scope, parse_limits
from botservice.people.access_queries import move_chat, note_departure, read_listening, set_listening
from botservice.people.budgets import Budgets
from botservice.turns.listening_queries import GateDecision, begin_decision, count_unasked, move_decisions
from botservice.turns.turn import InboundEvent


@pytest.mark.any_database
async def test_a_budget_that_is_used_up_makes_the_gate_silent(storage: Storage):
    models = TwoModels("yes")
    budgets = Budgets({Scope.CHAT: parse_limits("5000 tokens/day")}, answer_tokens=4096)
    async with group_with(storage, models, budgets=budgets, gate=gate_of(models, budgets=budgets)) as bot:
        await say(bot, "which floor?")
        assert await decisions(storage) == [GateDecision.OVER_BUDGET]
        assert shown(bot) == []
        await say(bot, "@ which floor?", order=2)
        assert shown(bot) == ["An answer."], "a fifth is left to answers"
    assert models.asked_gate == []


async def test_an_unasked_answer_beyond_the_budget_is_not_told(sqlite_storage: Storage):
    models = TwoModels("yes")
    budgets = Budgets({Scope.CHAT: parse_limits("100 tokens/day")}, answer_tokens=50)
    async with group_with(sqlite_storage, models, budgets=budgets) as bot:  # the gate's own has no limit
        await say(bot, "which floor?")
        assert shown(bot) == []
    assert await decisions(sqlite_storage) == [GateDecision.YES]


@pytest.mark.any_database
async def test_what_people_say_to_each_other_does_not_count_towards_their_messages_a_minute(storage: Storage):
    models = TwoModels("yes")
    budgets = Budgets({Scope.PERSON: parse_limits("1 messages/minute")})
    async with group_with(storage, models, budgets=budgets, gate=gate_of(models, budgets=budgets)) as bot:
        for order in range(1, 5):
            await say(bot, f"ben: which floor was it again, for the {order}. time?", order=order)
        await say(bot, "ben: @ which floor?", order=5)
        assert shown(bot) == ["An answer."] * 4, "three of an hour nobody asked for, and the one that Ben asked for"
        await say(bot, "ben: @ and which room?", order=6)
        assert "An answer." not in shown(bot)[4:]
    assert len(models.asked_gate) == 3


@pytest.mark.any_database
async def test_the_limit_of_a_chat_is_exact_in_all_of_its_threads_and_processes(storage: Storage, storage_url: str):
    models, clock, threads = TwoModels("yes"), LastingMinute(), [str(number) for number in range(8)]
    async with contextlib.AsyncExitStack() as stack:
        bots = [await stack.enter_async_context(group_with(storage, models, clock=clock))]
        if storage_url.startswith("postgres"):  # of SQLite, one process works on a file
            other = await stack.enter_async_context(Storage.open(storage_url, limits=PATIENT))
            bots.append(await stack.enter_async_context(group_with(other, models, clock=clock)))
        for number in threads:
            event = InboundEvent(f"e{number}", {**GROUP, "thread_id": number}, 1, b"which floor?")
            await bots[int(number) % len(bots)].inbox.accept("messenger", [event])
        clock.pass_(seconds=5)
        await settle(storage, events=len(threads))
        assert sum(len(shown(bot)) for bot in bots) == 3
        clock.pass_(minutes=61)
        event = InboundEvent("later", {**GROUP, "thread_id": "0"}, 2, b"which floor?")
        await bots[0].inbox.accept("messenger", [event])
        clock.pass_(seconds=5)
        await settle(storage, events=len(threads) + 1)
        assert sum(len(shown(bot)) for bot in bots) == 4
    found = await decisions(storage)
    assert sorted(found) == [GateDecision.LIMIT] * 5 + [GateDecision.YES] * 4
    assert await count_calls(storage) == len(models.asked_gate)


@pytest.mark.any_database
async def test_an_agent_that_never_has_anything_to_say_is_not_asked_without_end(storage: Storage):
    models = TwoModels("yes", "NOTHING")
    async with group_with(storage, models, gate=gate_of(models, per_hour=1)) as bot:
        for order in range(1, 6):
            await say(bot, f"ben: say nothing, number {order}", order=order)
        assert len(models.asked_agent) == len(models.asked_gate) == 3
        bot.clock.pass_(minutes=61)
        await say(bot, "ben: which floor?", order=6)
    assert len(models.asked_agent) == 4


@pytest.mark.any_database
async def test_a_flood_in_many_threads_is_decided_about_so_many_times_a_minute(storage: Storage):
    models = TwoModels("no")
    async with group_with(storage, models) as bot:
        for number in range(60):
            event = InboundEvent(f"e{number}", {**GROUP, "thread_id": str(number)}, 1, b"which floor?")
            await bot.inbox.accept("messenger", [event])
        bot.clock.pass_(seconds=5)
        await settle(storage, events=60)
        assert sorted(set(await decisions(storage))) == [GateDecision.LIMIT, GateDecision.NO]
        assert len(models.asked_gate) < 60
        bot.clock.pass_(minutes=2)
        await say(bot, "which floor?", order=2)
        assert json.loads(models.asked_gate[-1]) == [{"Ann": "which floor?"}]
    assert (await decisions(storage)).count(GateDecision.NO) == len(models.asked_gate)


@pytest.mark.any_database
async def test_a_model_is_asked_at_most_twice_about_a_turn(storage: Storage):
    models = TwoModels("no")
    async with group_with(storage, models) as bot:
        await say(bot, "which floor?")
    (turn_id,) = await storage.read(lambda c: c.execute(text("SELECT turn_id FROM gate_decisions")).scalars().all())
    await storage.write(lambda c: c.execute(text("UPDATE gate_decisions SET decision = NULL")))
    again = [await storage.write(lambda c: begin_decision(c, turn_id, CHAT, bot.clock(), per_hour=3)) for _ in range(2)]
    assert again == [None, GateDecision.FAILED]


@pytest.mark.any_database
async def test_a_group_that_becomes_a_supergroup_keeps_its_setting_and_its_limit(storage: Storage):
    models = TwoModels("yes")
    async with group_with(storage, models) as bot:
        await say(bot, "which floor?")
        now = bot.clock()

    def move(connection):
        set_listening(connection, CHAT, now, is_on=True)
        move_chat(connection, CHAT, "messenger:2")
        move_decisions(connection, CHAT, "messenger:2")
        found = (read_listening(connection, "messenger:2"), count_unasked(connection, "messenger:2", now))
        note_departure(connection, "messenger:2")
        return found, read_listening(connection, "messenger:2")

    assert await storage.write(move) == ((True, 1), None)
