"""Words about calls that nobody meant: said too early, by others, or with a name that several calls have."""

import asyncio

import pytest

from botservice import (
    AgentContext,
    ApprovalPending,
    BotServiceError,
    Later,
    ResultPending,
    ScriptedChatLLM,
    ToolCall,
    tool,
)
from botservice.commands.standard import standard_commands
from botservice.storage.tables.waiting import pending_calls
from botservice.turns.call_decisions import Decider, decide_now, order_of
from botservice.turns.inbox import Inbox
from botservice.turns.turn import InboundEvent
from tests.turns.bots import call, make_service
from tests.turns.messenger import office
from tests.turns.test_waiting import ANNA, OLGA, Group, Shop, keys, pay, shop


async def statuses(storage):
    rows = await storage.read(lambda connection: connection.execute(pending_calls.select()).all())
    return [each.status for each in sorted(rows, key=lambda row: row.id)]


async def decide_as(storage, decider, says, now=None):
    context = await AgentContext.get_or_create(storage, keys("1"))
    now = now or storage.now()
    return await storage.write(
        lambda connection: decide_now(connection, context.id, order_of(says), decider, "en", now)
    )


async def ask_by_program(storage, author=None, *ids):
    """Have a program ask for payments that no chat shows."""

    @tool(needs_approval=True)
    async def pay(to: str, amount: int) -> str:
        """Pay a person."""
        return "paid"

    script = [ToolCall(each, "pay", {"to": "Mallory", "amount": 9}) for each in ids or ("call_0",)]
    service, _ = make_service(storage, [*script, "done"], tools=[pay])
    context = await AgentContext.get_or_create(storage, keys("1"))
    for _ in script:
        with pytest.raises(ApprovalPending) as raised:
            await service.prompt(context, "pay", author=author)
    return service, context, raised.value


@pytest.mark.any_database
@pytest.mark.parametrize("typed", ["/allow", "/allow all", "/allow always"])
async def test_a_word_typed_behind_a_turn_is_not_about_what_that_asks_later(storage, typed):
    began, go_on, till = asyncio.Event(), asyncio.Event(), []

    async def answer(prompt):
        if any(each.get("tool_calls") for each in prompt):
            return "done"
        if "slow" not in [each["content"] for each in prompt if each["role"] == "user"][-1]:
            return call("pay", amount=5)
        began.set()
        await go_on.wait()
        return call("pay", amount=9999)

    @tool(needs_approval=True)
    async def pay(amount: int) -> str:
        """Pay."""
        till.append(amount)
        return "paid"

    model, commands = ScriptedChatLLM(answer), standard_commands()
    async with office(storage, model, messenger=Group(), tools=[pay], commands=commands) as opened:
        bot = Shop(opened, till, Inbox(storage, opened.worker.wake))
        await bot.say("pay Anna")
        await bot.asked()
        await bot.say("slow question")
        await began.wait()
        await bot.say(typed)
        go_on.set()
        texts = await bot.shows(lambda texts: "done" in texts)
        assert texts[0].startswith("Allowed for Anna")
        assert texts[1].startswith("May I do this for Anna")
        assert await statuses(storage) == ["allowed", "waiting"]
        assert till == [5]


async def test_a_word_worked_off_twice_means_the_same_call(storage):
    async with shop(storage, [pay(1), pay(2)]) as bot:
        await bot.say("pay Anna")
        await bot.asked(2)
        anna = Decider(ANNA, said_at=storage.now())
        assert (await decide_as(storage, anna, "/deny")).is_taken
        assert not (await decide_as(storage, anna, "/deny")).is_taken
        assert await statuses(storage) == ["waiting", "denied"]


@pytest.mark.any_database
async def test_who_decides_is_told_what_was_really_decided(storage):
    async with shop(storage, pay()) as bot:
        await bot.say("pay Anna")
        ((allow, deny, _),) = await bot.asked()
        said = [
            InboundEvent(f"1:{order}", keys("1"), order, f"anna: {says}".encode(), group_key="album")
            for order, says in ((8, deny), (9, allow))
        ]
        await bot.office.inbox.accept("messenger", said)
        texts = await bot.shows(
            lambda texts: "re pay Anna" in texts and any("already decided" in each for each in texts)
        )
        assert "Denied: pay" in texts
        assert "Allowed: pay" not in texts
        assert bot.till == []


@pytest.mark.any_database
async def test_what_no_message_has_shown_is_allowed_by_nobody_in_the_chat(storage):
    async with shop(storage) as bot:
        _, _, pending = await ask_by_program(storage)
        number = pending.calls[0].number
        for typed in ("/allow", "/allow all", f"/allow {number}"):
            count = len(bot.platform.visible.get("1", []))
            await bot.say(typed, "mallory")
            await bot.shows(lambda texts, count=count: len(texts) > count)
        assert await statuses(storage) == ["waiting"]
        assert not (await decide_as(storage, Decider(ANNA, is_private=True), f"/allow {number}")).is_taken
        assert (await bot.press(f"/deny {number}", OLGA)).is_taken


@pytest.mark.any_database
async def test_what_was_asked_for_in_somebodys_name_is_theirs_by_its_number(storage):
    _, _, pending = await ask_by_program(storage, ANNA)
    assert not (await decide_as(storage, Decider(ANNA), "/allow")).is_taken
    assert (await decide_as(storage, Decider(ANNA), f"/allow {pending.calls[0].number}")).is_taken


@pytest.mark.any_database
async def test_a_name_that_several_calls_have_decides_none_of_them(storage):
    service, context, pending = await ask_by_program(storage, None, "call_0", "call_0")
    assert "call.number" in str(pending)
    with pytest.raises(BotServiceError, match="say its number: 1, 2"):
        await service.decide(context, pending.calls[0].id)
    assert await statuses(storage) == ["waiting", "waiting"]
    assert await service.decide(context, pending.calls[0].number, allow=False)
    assert await statuses(storage) == ["waiting", "denied"]
    assert await service.decide(context, "call_0"), "one waits that is called so"


@pytest.mark.any_database
async def test_a_result_for_a_name_that_several_wait_under_is_given_to_none(storage):
    @tool
    async def export() -> str:
        """Export."""
        return Later("job")

    service, _ = make_service(storage, [[call("export"), call("export")], "done"], tools=[export])
    context = await AgentContext.get_or_create(storage, keys("1"))
    with pytest.raises(ResultPending) as raised:
        await service.prompt(context, "export twice")
    with pytest.raises(BotServiceError, match="say its number"):
        await service.hand_in(context, "job", 1)
    for each in raised.value.calls:
        assert await service.hand_in(context, each.number, 1)
    assert (await (await service.resume(context)).finish()).text == "done"
