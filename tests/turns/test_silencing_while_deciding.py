"""What people do while a bot decides whether to speak keeps it silent: a pause, a stop, a block, a question."""

import asyncio
import contextlib

import pytest
from sqlalchemy import text
from standins.clocks import LastingMinute
from turns.group_scenes import TwoModels, decisions, gate_of, is_of_gate, settle
from turns.listening_groups import CHAT, GROUP, group_with, history, say, shown

from botservice import AgentContext, Storage
from botservice.conversation.pausing import Pause, set_pause
from botservice.core.policies import AccessMode
from botservice.people.access import Access
from botservice.people.access_queries import grant, set_listening
from botservice.people.access_values import AccessRole, Subject, SubjectKind
from botservice.turns.listening_queries import GateDecision


async def test_in_a_pause_nothing_is_decided(sqlite_storage: Storage):
    models = TwoModels("yes")
    context = await AgentContext.get_or_create(sqlite_storage, GROUP)
    async with group_with(sqlite_storage, models) as bot:
        pause = Pause(bot.clock())
        await sqlite_storage.write(lambda connection: set_pause(connection, context.id, pause))
        await say(bot, "which floor?")
    assert (models.asked_gate, await history(sqlite_storage)) == ([], ["which floor?"])


async def test_what_is_said_while_a_turn_runs_is_decided_about_after_it(sqlite_storage: Storage):
    begun, go_on, models = asyncio.Event(), asyncio.Event(), TwoModels("no", "Slowly.")

    async def slow(prompt):
        if not is_of_gate(prompt):
            begun.set()
            await go_on.wait()
        return models(prompt)

    async with group_with(sqlite_storage, slow) as bot:
        await bot.write("@ think", order=1)
        await begun.wait()
        await bot.write("ben: which floor?", order=2)
        bot.clock.pass_(seconds=5)
        await bot.write("ben: anybody?", order=3)
        bot.clock.pass_(seconds=5)
        assert models.asked_gate == []
        go_on.set()
        await settle(sqlite_storage)
    assert len(models.asked_gate) == 1
    assert "Slowly." in models.asked_gate[0]


async def test_the_words_of_people_without_access_trigger_nothing(sqlite_storage: Storage):
    models, clock = TwoModels("yes"), LastingMinute()
    blocked = Subject(SubjectKind.PERSON, "messenger:8")
    await sqlite_storage.write(lambda c: grant(c, blocked, AccessRole.BLOCKED, "messenger:7", clock()))
    access = Access(AccessMode.OPEN, owners=frozenset({"messenger:7"}))
    async with group_with(sqlite_storage, models, clock=clock, access=access) as bot:
        await say(bot, "ben: which floor?")
        assert models.asked_gate == []
        await say(bot, "which floor?", order=2)
        assert shown(bot) == ["An answer."]
    assert "Ben" not in models.asked_gate[0]


@pytest.mark.any_database
@pytest.mark.parametrize("by", ["a pause", "/listen off"])
async def test_who_silences_the_bot_while_it_decides_hears_nothing(storage: Storage, by: str):
    models = TwoModels("yes")
    context = await AgentContext.get_or_create(storage, GROUP)

    def silence(connection):
        if by == "a pause":
            set_pause(connection, context.id, Pause(storage.now()))
        else:
            set_listening(connection, CHAT, storage.now(), is_on=False)

    async def decide(prompt):
        await storage.write(silence)
        return models(prompt)

    async with group_with(storage, models, gate=gate_of(decide)) as bot:
        await say(bot, "which floor?")
        assert shown(bot) == []
    assert await decisions(storage) == [GateDecision.SILENCED]


@contextlib.asynccontextmanager
async def deciding(storage: Storage, models: TwoModels, **options):
    """Give a bot whose gate has been asked about a question of Ben, and answers when the block ends."""
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def decide(prompt):
        asked.set()
        await go_on.wait()
        return models(prompt)

    async with group_with(storage, models, gate=gate_of(decide), **options) as bot:
        await bot.write("ben: which floor?", order=1)
        await settle(storage, events=1, is_whole=False)
        bot.clock.pass_(seconds=5)
        await asked.wait()
        yield bot
        go_on.set()
        await settle(storage)
        assert shown(bot) == []


@pytest.mark.any_database
@pytest.mark.parametrize("mode", [AccessMode.OPEN, AccessMode.ALLOW])
async def test_who_is_blocked_while_the_bot_decides_about_their_words_is_not_answered(
    storage: Storage, mode: AccessMode
):
    access = Access(mode, owners=frozenset({"messenger:7"}), allowed=frozenset({CHAT}))
    async with deciding(storage, TwoModels("yes"), access=access) as bot:
        await storage.write(lambda each: access.revoke(each, "messenger:8", "messenger:7", bot.clock()))
    assert await decisions(storage) == [GateDecision.SILENCED]


@pytest.mark.any_database
async def test_a_group_that_is_thrown_out_while_the_bot_decides_is_not_answered(storage: Storage):
    access = Access(AccessMode.ALLOW, owners=frozenset({"messenger:7"}))
    group = Subject(SubjectKind.CHAT, CHAT)
    await storage.write(lambda each: grant(each, group, AccessRole.MEMBER, "messenger:7", storage.now()))
    async with deciding(storage, TwoModels("yes"), access=access) as bot:
        await storage.write(lambda each: access.revoke(each, CHAT, "messenger:7", bot.clock(), kind=SubjectKind.CHAT))
    assert await decisions(storage) == [GateDecision.SILENCED]


@pytest.mark.any_database
async def test_who_stops_the_bot_while_it_decides_is_not_answered_and_no_agent_is_asked(storage: Storage):
    models = TwoModels("yes")
    async with deciding(storage, models) as bot:
        await bot.stop_turn(order=2)
    assert (models.asked_agent, await history(storage)) == ([], ["which floor?"])


@pytest.mark.any_database
async def test_who_addresses_the_bot_while_it_decides_is_answered_and_nobody_else(storage: Storage):
    models, asked, go_on = TwoModels("yes"), asyncio.Event(), asyncio.Event()

    async def decide(prompt):
        asked.set()
        await go_on.wait()
        return models(prompt)

    async with group_with(storage, models, gate=gate_of(decide)) as bot:
        await bot.write("which floor?", order=1)
        await settle(storage, events=1, is_whole=False)
        bot.clock.pass_(seconds=5)
        await asked.wait()
        await bot.write("ben: @ which floor?", order=2)
        go_on.set()
        await settle(storage, events=2)
        assert shown(bot) == ["An answer."]
    assert await decisions(storage) == [GateDecision.SILENCED]
    assert await history(storage) == ["which floor?", "which floor?", "An answer."]


async def test_a_pause_that_begins_before_the_decision_keeps_it_from_being_made(sqlite_storage: Storage):
    models = TwoModels("yes")
    context = await AgentContext.get_or_create(sqlite_storage, GROUP)
    async with group_with(sqlite_storage, models) as bot:
        await bot.write("which floor?", order=1)
        deferred = text("SELECT count(*) FROM turns WHERE status = 'queued' AND attempts = 1")
        async with asyncio.timeout(60):
            while not await sqlite_storage.read(lambda c: c.execute(deferred).scalar_one()):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.01)
        pause = Pause(bot.clock())
        await sqlite_storage.write(lambda connection: set_pause(connection, context.id, pause))
        bot.clock.pass_(seconds=5)
        await settle(sqlite_storage, events=1)
    assert (models.asked_gate, await history(sqlite_storage)) == ([], ["which floor?"])


@pytest.mark.any_database
async def test_a_message_that_waits_for_its_decision_is_decided_about_by_the_next_process(storage: Storage):
    models, clock = TwoModels("yes", "Three."), LastingMinute()
    async with group_with(storage, models, clock=clock) as bot:
        await bot.write("which floor?", order=1)
    assert models.asked_gate == []
    clock.pass_(minutes=3)
    async with group_with(storage, models, clock=clock) as bot:
        await bot.messenger.shows("1", "Three.")
    assert len(models.asked_gate) == 1
