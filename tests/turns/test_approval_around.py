"""Calls that wait while things happen around them: linked accounts, moves, budgets, forgetting, restarts."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import update

from botservice import Author, tool
from botservice.core.policies import Scope, parse_limits
from botservice.core.states import EventKind
from botservice.people.budgets import Budgets
from botservice.people.queries import ensure_identity, join_identities
from botservice.privacy.forgetting import forget_person
from botservice.storage.tables.conversations import turns
from botservice.storage.tables.people import model_usage
from botservice.storage.tables.waiting import pending_calls
from botservice.turns.run_options import utc_now
from botservice.turns.turn import InboundEvent
from tests.turns.messenger import SetClock
from tests.turns.test_merging import until_moved
from tests.turns.test_waiting import ANNA, BOB, Group, keys, pay, shop

ANNA_AT_WORK = Author("messenger", "anna2", "Anna2")


async def link(storage, *authors):
    def join(connection):
        join_identities(connection, *[ensure_identity(connection, each, utc_now()) for each in authors])

    await storage.write(join)


async def statuses(bot):
    return [tuple(row) for row in await bot.read(turns.select().with_only_columns(turns.c.status, turns.c.outcome))]


@pytest.mark.any_database
async def test_a_linked_account_decides_in_the_chat_and_not_from_another_one(storage):
    async with shop(storage, pay()) as bot:
        await bot.say("pay Anna")
        (says,) = await bot.asked()
        assert not (await bot.press(says[0], ANNA_AT_WORK)).is_taken
        await link(storage, ANNA, ANNA_AT_WORK)
        await bot.say(says[0], "anna2", chat="2")
        await bot.shows(lambda texts: "with this number" in "".join(texts), chat="2")
        assert bot.till == []
        assert (await bot.press(says[0], ANNA_AT_WORK)).is_taken
        texts = await bot.shows(lambda texts: texts[-1] == "re pay Anna")
        assert "Decided by Anna2." in texts[0]
        assert bot.till == [5]


async def move(bot, to="2"):
    bot.order += 1
    raw = json.dumps(keys(to)).encode()
    await bot.office.inbox.accept("messenger", [InboundEvent("moved", keys("1"), bot.order, raw, EventKind.MOVE)])


@pytest.mark.any_database
@pytest.mark.parametrize("is_merged", [False, True], ids=["renamed", "merged"])
async def test_a_call_that_waits_moves_with_its_chat_and_is_decided_there(storage, is_merged):
    async with shop(storage, pay()) as bot:
        await bot.say("pay Anna")
        (says,) = await bot.asked()
        if is_merged:
            await bot.say("hello", chat="2")
            await bot.shows(lambda texts: texts == ["re hello"], chat="2")
        await move(bot)
        await until_moved(storage)
        await bot.say(says[0], chat="2")
        texts = await bot.shows(lambda texts: "re pay Anna" in texts[-1:], chat="2")
        assert bot.till == [5]
        assert any(each.startswith("Allowed for Anna") for each in texts), "it is said where people are now"
        assert ("re hello" in texts) == is_merged, "what was said there stays as it was"


async def test_what_has_no_budget_any_more_when_it_goes_on_is_done_and_says_so(storage):
    clock = SetClock(datetime(2026, 6, 1, tzinfo=UTC))
    budgets = Budgets({Scope.PERSON: parse_limits("9000 tokens/day")})
    async with shop(storage, pay(), clock=clock, budgets=budgets) as bot:
        await bot.say("pay Anna")
        (says,) = await bot.asked()
        spent = update(model_usage).values(input_tokens=1_000_000)
        await storage.write(lambda connection: connection.execute(spent) and None)
        assert (await bot.press(says[0])).is_taken
        texts = await bot.shows(lambda texts: len(texts) == 2)
        assert texts[0].startswith("Allowed for Anna")
        assert "budget" in texts[1].lower() or "limit" in texts[1].lower(), texts
        assert bot.till == [5]
        assert (await statuses(bot))[0][0] == "done"


@pytest.mark.parametrize("who", [ANNA, BOB], ids=["the asker", "another"])
async def test_what_is_forgotten_while_it_waits_is_not_done(storage, who):
    async with shop(storage, pay()) as bot:
        await bot.say("hello", "bob")
        await bot.shows(lambda texts: len(texts) == 1)
        await bot.say("pay Anna")
        (says,) = await bot.asked()
        await forget_person(storage, who)
        assert await bot.read(pending_calls.select().where(pending_calls.c.is_open)) == []
        assert not (await bot.press(says[0])).is_taken
        assert bot.till == []


@pytest.mark.any_database
async def test_an_edited_question_stays_as_it_was_asked_for(storage):
    async with shop(storage, pay()) as bot:
        await bot.say("pay Anna")
        (says,) = await bot.asked()
        bot.order += 1
        event = InboundEvent("edit", keys("1"), bot.order, b"anna: pay Bob 500", EventKind.EDIT, external_id="1:1")
        await bot.office.inbox.accept("messenger", [event])
        await bot.say("hello", "bob")
        await bot.shows(lambda texts: texts[-1] == "re hello")
        assert (await bot.press(says[0])).is_taken
        await bot.shows(lambda texts: len(texts) == 3)
        assert bot.till == [5]


@tool
async def unrelated() -> str:
    """Do nothing."""
    return ""


def changed(till):
    @tool(name="pay", needs_approval=True)
    async def pay_in(to: str, amount: int, currency: str) -> str:
        """Pay a person."""
        till.append((amount, currency))
        return "paid"

    return pay_in


@pytest.mark.any_database
@pytest.mark.parametrize(("kind", "says_so"), [("removed", "no tool"), ("changed", "have changed since")])
async def test_a_tool_that_is_not_as_it_was_when_the_turn_goes_on_is_not_run(storage, kind, says_so):
    paid, platform = [], Group()
    async with shop(storage, pay(), paid=paid, messenger=platform) as bot:
        await bot.say("pay Anna")
        (says,) = await bot.asked()
    tools = [unrelated] if kind == "removed" else [changed(paid)]
    async with shop(storage, pay(), messenger=platform, only_tools=tools) as bot:
        assert (await bot.press(says[0])).is_taken
        await bot.shows(lambda texts: texts[-1] == "re pay Anna")
        step = next(each for each in await read_steps_of(storage) if each.get_value("tool_calls"))
        assert says_so in step.tool_results[0].text.lower()
    assert paid == []


async def read_steps_of(storage):
    from botservice import AgentContext

    context = await AgentContext.get_or_create(storage, keys("1"))
    return (await context.load_memory()).steps


async def test_what_ran_out_of_time_while_no_process_ran_is_not_done(storage):
    paid, platform, clock = [], Group(), SetClock(datetime(2026, 6, 1, tzinfo=UTC))
    async with shop(storage, pay(), paid=paid, messenger=platform, clock=clock) as bot:
        await bot.say("pay Anna")
        (says,) = await bot.asked()
    clock.now += timedelta(hours=30)
    async with shop(storage, pay(), paid=paid, messenger=platform, clock=clock) as bot:
        assert not (await bot.press(says[0])).is_taken
        texts = await bot.shows(lambda texts: len(texts) == 2)
        assert texts[0].startswith("Expired for Anna, because nobody decided in time")
    assert paid == []
