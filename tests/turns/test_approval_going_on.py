"""Calls that wait, where something goes wrong before they go on: what was not allowed does not run because of that."""

import asyncio
from itertools import chain, repeat

import pytest
from sqlalchemy import update

from botservice import AgentContext, tool
from botservice.commands.standard import standard_commands
from botservice.core.states import TurnStatus
from botservice.storage.tables.conversations import turns
from botservice.storage.tables.waiting import pending_calls
from botservice.turns import unanswered_turns
from botservice.turns.administration import retry_turn
from botservice.turns.inbox import Inbox
from botservice.turns.resuming import SuspendedTurns
from tests.turns.bots import call, make_service
from tests.turns.messenger import office
from tests.turns.test_approval import KEYS, Till, ask, pay
from tests.turns.test_waiting import Group, Shop, answering


def failing(times, function):
    """Return a function that fails so many times before it does what function does."""
    left = chain(repeat(True, times), repeat(False))

    def fail(*arguments):
        if next(left):
            raise RuntimeError("it broke")
        return function(*arguments)

    return fail


class Flickering:
    """A toolset of one tool that is not there when it is looked for some of the times."""

    def __init__(self, found, *missing):
        self.found, self.missing, self.looks = found, missing, 0

    async def tools(self):
        self.looks += 1
        return [] if self.looks in self.missing else [self.found]

    async def close(self):
        pass


def open_shop(storage, till, platform):
    options = {"messenger": platform, "tools": [till.pay], "commands": standard_commands()}
    return office(storage, answering(pay()), **options)


async def set_running(storage, turn_id):
    query = update(turns).where(turns.c.id == turn_id).values(status=TurnStatus.RUNNING.value)
    await storage.write(lambda connection: connection.execute(query) and None)


@pytest.mark.any_database
@pytest.mark.parametrize("broken", ["attending", "the transport"])
async def test_what_was_denied_does_not_run_after_an_error_on_the_way(storage, monkeypatch, broken):
    monkeypatch.setattr(unanswered_turns, "turn_delay", lambda *_: 0.0)
    till, platform = Till(idempotent=True), Group()
    async with open_shop(storage, till, platform) as opened:
        bot = Shop(opened, till, Inbox(storage, opened.worker.wake))
        await bot.say("pay Anna")
        (says,) = await bot.asked()
        if broken == "attending":
            monkeypatch.setattr(SuspendedTurns, "attend", failing(1, SuspendedTurns.attend))
        else:
            platform.live = failing(1, platform.live)
        await bot.press(says[1])
        await bot.shows(lambda texts: texts[-1] == "re pay Anna")
    assert till.paid == []


@pytest.mark.any_database
async def test_a_turn_that_is_given_up_waits_no_more_and_does_not_run_what_was_denied_when_it_is_retried(
    storage, monkeypatch
):
    delays = iter([0.0])
    monkeypatch.setattr(unanswered_turns, "turn_delay", lambda *_: next(delays, None))
    till, platform = Till(idempotent=True), Group()
    async with open_shop(storage, till, platform) as opened:
        bot = Shop(opened, till, Inbox(storage, opened.worker.wake))
        await bot.say("pay Anna")
        (says,) = await bot.asked()
        platform.live = failing(2, platform.live)
        await bot.press(says[1])
        await bot.shows(lambda texts: len(texts) > 1)
        (turn,) = await bot.read(turns.select())
        assert turn.status == TurnStatus.SET_ASIDE
        assert [each.is_open for each in await bot.read(pending_calls.select())] == [False]
        await retry_turn(storage, turn.id, storage.now())
        opened.worker.wake(turn.context_id)
        await bot.shows(lambda texts: texts[-1] == "re pay Anna")
    assert till.paid == []


async def test_what_nobody_allowed_does_not_run_whatever_its_turn_was_taken_for(context, storage):
    till = Till(idempotent=True)
    service, llm = make_service(storage, [pay(), "as you like"], tools=[till.pay])
    pending = await ask(service, context)
    await set_running(storage, pending.turn_id)
    assert (await (await service.resume(context)).finish()).text == "as you like"
    assert till.paid == []
    assert "nobody allowed this call" in llm.prompts[1][-1]["content"]


@pytest.mark.any_database
async def test_a_tool_that_comes_after_it_was_judged_who_is_asked_does_not_run(context, storage):
    till = Till()
    options = {"tools": [], "toolsets": [Flickering(till.pay, 2)]}
    service, _ = make_service(storage, [pay(), "done"], **options)
    assert (await service.prompt(context, "pay Anna")).text == "done"
    assert till.paid == []


@pytest.mark.any_database
async def test_a_tool_that_comes_while_another_call_waits_does_not_run_unasked(context, storage):
    till, gifts = Till(), []

    @tool(needs_approval=True)
    async def give(what: str) -> str:
        """Give something."""
        gifts.append(what)
        return "given"

    script = [[pay(), call("give", what="a car")], "done"]
    service, llm = make_service(storage, script, tools=[till.pay], toolsets=[Flickering(give, 2)])
    pending = await ask(service, context)
    await service.decide(context, pending.calls[0].id)
    assert (await (await service.resume(context)).finish()).text == "done"
    assert (till.paid, gifts) == ([("Anna", 5)], [])
    assert "nobody was asked" in llm.prompts[1][-1]["content"]


@pytest.mark.any_database
@pytest.mark.parametrize("was_asked", [True, False])
async def test_after_a_crash_a_call_runs_again_if_it_was_allowed_and_not_if_it_needs_a_word_by_now(
    context, storage, was_asked
):
    begun = asyncio.Event()

    @tool(name="pay", needs_approval=was_asked, idempotent=True)
    async def hang(to: str, amount: int) -> str:
        """Pay a person."""
        begun.set()
        await asyncio.Event().wait()

    service, _ = make_service(storage, [pay()], tools=[hang])
    if was_asked:
        pending = await ask(service, context)
        await service.decide(context, pending.calls[0].id)
        run = await service.resume(context)
    else:
        run = await service.start(context, "pay Anna")
    work = asyncio.create_task(run.finish())
    await begun.wait()
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    await run.close()
    till = Till(idempotent=True)
    again, llm = make_service(storage, ["done"], tools=[till.pay])
    other = await AgentContext.get_or_create(storage, KEYS)
    assert (await (await again.resume(other)).finish()).text == "done"
    assert till.paid == ([("Anna", 5)] if was_asked else [])
    assert ("not made again" in llm.prompts[0][-1]["content"]) is not was_asked
