"""Calls of tools that ask first: nothing runs before a person's word, and what was shown is what runs, once."""

import asyncio
from concurrent.futures import Future
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any

import pytest
from pydantic import SecretStr

from botservice import (
    ActionStep,
    AgentContext,
    ApprovalPending,
    Author,
    BotServiceError,
    FunctionsBasedAgent,
    Later,
    NoMessages,
    ResultPending,
    RunInterrupted,
    ScriptedChatLLM,
    Tool,
    ToolCall,
    tool,
)
from botservice.background.maintenance import Maintenance
from botservice.storage.tables.waiting import pending_calls
from botservice.turns.administration import drop_turn, list_turns, retry_turn
from tests.turns.bots import add, call, make_service

KEYS = {"transport": "test", "chat_id": "1"}


class Till:
    """Payments that were made."""

    def __init__(self, needs_approval=True, **options):
        self.paid = []

        @tool(needs_approval=needs_approval, **options)
        async def pay(to: str, amount: int) -> str:
            """Pay a person."""
            self.paid.append((to, amount))
            return f"paid {amount} to {to}"

        self.pay = pay


def _cancelled():
    future = Future()
    future.cancel()
    return future


def pay(amount=5, to="Anna"):
    return call("pay", to=to, amount=amount)


async def ask(service, context, text="pay Anna", author=None):
    with pytest.raises(ApprovalPending) as raised:
        await service.prompt(context, text, author=author)
    return raised.value


@pytest.mark.any_database
async def test_a_call_that_asks_first_runs_once_when_it_is_allowed(context, storage):
    till = Till()
    service, llm = make_service(storage, [pay(), "done"], tools=[till.pay])
    pending = await ask(service, context)
    assert [(each.name, dict(each.arguments)) for each in pending.calls] == [("pay", {"to": "Anna", "amount": 5})]
    assert till.paid == []
    assert await service.decide(context, pending.calls[0].id, allow=True)
    assert not await service.decide(context, pending.calls[0].id, allow=True), "pressed twice counts once"
    run = await service.resume(context)
    assert run.turn_id == pending.turn_id
    answer = await run.finish()
    assert (answer.text, till.paid) == ("done", [("Anna", 5)])
    assert llm.prompts[1][-1]["content"] == "paid 5 to Anna"
    assert await service.resume(context) is None


@pytest.mark.any_database
async def test_a_call_that_is_denied_never_runs_and_the_model_is_told(context, storage):
    till = Till()
    service, llm = make_service(storage, [pay(), "as you like"], tools=[till.pay])
    pending = await ask(service, context)
    await service.decide(context, pending.calls[0].id, allow=False)
    answer = await (await service.resume(context)).finish()
    assert (answer.text, till.paid) == ("as you like", [])
    assert "did not allow" in llm.prompts[1][-1]["content"]


async def test_another_process_goes_on_with_what_was_allowed(context, storage):
    till = Till()
    service, _ = make_service(storage, [pay()], tools=[till.pay])
    pending = await ask(service, context)
    other = await AgentContext.get_or_create(storage, KEYS)
    again, _ = make_service(storage, ["done"], tools=[till.pay])
    with pytest.raises(ApprovalPending):
        await again.resume(other)
    await again.decide(other, pending.calls[0].number)
    assert (await (await again.resume(other)).finish()).text == "done"
    assert till.paid == [("Anna", 5)]


class Mode(Enum):
    LOOK = "look"
    WIPE = "wipe"


@dataclass
class Target:
    host: str


PRICES = {object(): 1}
CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)


def touch_disk(mode: Mode = Mode.WIPE, amount: int = 500, *, force: bool = False, target: Target | None = None) -> str:
    """Do something to a disk."""
    return "ran"


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("judge", "arguments", "asks"),
    [
        (lambda given, _: given["mode"] is Mode.WIPE, {"mode": "wipe"}, True),
        (lambda given, _: given["mode"] == "wipe", {"mode": "wipe"}, True),
        (lambda given, _: given["mode"] == "wipe", {"mode": "look"}, False),
        (lambda given, _: given["mode"].value == "wipe", {"mode": "wipe"}, True),
        (lambda given, _: given["mode"].value == "wipe", {"mode": "look"}, False),
        (lambda given, _: given["force"] is True, {"force": "yes"}, True),
        (lambda given, _: given.get("amount", 0) > 100, {"mode": "look"}, True),
        (lambda given, _: given.get("amount", 0) > 100, {"amount": "50"}, False),
        (lambda given, _: given["target"].host == "prod", {"target": {"host": "prod"}}, True),
        (lambda given, _: given["target"]["host"] == "prod", {"target": {"host": "prod"}}, True),
        (lambda given, _: given["target"]["host"] == "prod", {"target": {"host": "test"}}, False),
        (lambda given, _: given["nothing"], {"mode": "look"}, True),
    ],
)
async def test_a_function_that_says_which_calls_ask_gets_what_the_tool_gets(context, storage, judge, arguments, asks):
    service, _ = make_service(
        storage, [call("touch_disk", **arguments), "done"], tools=[Tool(touch_disk, needs_approval=judge)]
    )
    if asks:
        assert [each.name for each in (await ask(service, context)).calls] == ["touch_disk"]
    else:
        assert (await service.prompt(context, "touch it")).text == "done"


def sealed(key: SecretStr) -> str:
    """Pay."""
    return "ran"


def circular(text: str, tree: Any = CIRCLE) -> str:
    """Pay."""
    return "ran"


def keyed_by_objects(text: str, prices: Any = PRICES) -> str:
    """Pay."""
    return "ran"


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("function", "judge", "arguments", "asks"),
    [
        (sealed, lambda given, _: given["key"].startswith("live_"), {"key": "live_1"}, True),
        (sealed, lambda given, _: given["key"].startswith("live_"), {"key": "test_1"}, False),
        (circular, lambda given, _: given["text"] == "pay", {"text": "pay"}, True),
        (circular, lambda given, _: given["text"] == "pay", {"text": "look"}, False),
        (keyed_by_objects, lambda given, _: given["text"] == "pay", {"text": "pay"}, True),
    ],
)
async def test_a_function_that_says_which_calls_ask_sees_what_the_model_gave(
    context, storage, function, judge, arguments, asks
):
    made = Tool(function, name="pay", needs_approval=judge)
    service, _ = make_service(storage, [call("pay", **arguments), "done"], tools=[made])
    if asks:
        await ask(service, context)
    else:
        assert (await service.prompt(context, "pay")).text == "done"


@pytest.mark.any_database
@pytest.mark.parametrize("name", [None, True, b"call"])
async def test_a_call_is_not_decided_without_its_name(context, storage, name):
    service, _ = make_service(storage, [call("touch_disk"), "done"], tools=[Tool(touch_disk, needs_approval=True)])
    await ask(service, context)
    with pytest.raises(BotServiceError, match="a call is named by its id, a text, or by its number, not by"):
        await service.decide(context, name, allow=True)
    with pytest.raises(BotServiceError, match="allow must be True or False, not 'no'"):
        await service.decide(context, 1, allow="no")


@pytest.mark.any_database
async def test_the_chat_goes_on_meanwhile_and_the_turn_ends_its_prompts_with_its_own_question(context, storage):
    till = Till()
    service, llm = make_service(storage, [pay(), "sunny", call("add", a=1, b=2), "done"], tools=[till.pay, add])
    pending = await ask(service, context, "pay Anna")
    assert (await service.prompt(context, "how is the weather?")).text == "sunny"
    await service.decide(context, pending.calls[0].id)
    await (await service.resume(context)).finish()
    asked = [each["content"] for each in llm.prompts[2] if each["role"] == "user"]
    assert asked[-1] == "pay Anna"
    assert [each["role"] for each in llm.prompts[3][-5:]] == ["user", "assistant", "tool", "assistant", "tool"]
    memory = await context.load_memory()
    kinds = [type(step).__name__ for step in memory.steps]
    assert kinds == ["TaskStep", "ActionStep", "ActionStep", "FinalAnswerStep", "TaskStep", "FinalAnswerStep"]


@pytest.mark.any_database
async def test_steps_that_are_put_into_a_turn_that_goes_on_stand_with_it(context, storage):
    till = Till()
    service, _ = make_service(storage, [pay(), "sunny", call("add", a=1, b=2), "done"], tools=[till.pay, add])
    pending = await ask(service, context, "pay Anna")
    await service.prompt(context, "how is the weather?")
    await service.decide(context, pending.calls[0].id)
    run = await service.resume(context)
    await run.step()
    run.memory.steps.insert(0, ActionStep(70, observations="put in first"))
    run.memory.steps.insert(2, ActionStep(71, observations="put in"))
    run.memory.steps[0].observations = "put in as the first"
    answer = await run.finish()
    assert answer.text == "done"
    memory = await context.load_memory()
    shown = [
        step.get_value("observations") or step.get_value("task") or step.get_value("output") for step in memory.steps
    ]
    assert shown == [
        *("put in as the first", "pay Anna", "put in", "paid 5 to Anna", "3", "done"),
        *("how is the weather?", "sunny"),
    ]


@pytest.mark.any_database
async def test_after_the_time_that_it_had_a_call_is_not_made(context, storage):
    till, now = Till(), [datetime(2026, 6, 1, tzinfo=UTC)]
    service, llm = make_service(storage, [pay(), "too late"], tools=[till.pay], clock=lambda: now[0])
    pending = await ask(service, context)
    now[0] += timedelta(hours=25)
    assert not await service.decide(context, pending.calls[0].id)
    assert (await (await service.resume(context)).finish()).text == "too late"
    assert till.paid == []
    assert "in time" in llm.prompts[1][-1]["content"]


@pytest.mark.any_database
async def test_the_calls_of_a_step_wait_together_and_each_has_its_own_word(context, storage):
    till = Till()
    script = [[pay(1), call("add", a=1, b=1), pay(2)], "done"]
    service, llm = make_service(storage, script, tools=[till.pay, add])
    pending = await ask(service, context)
    assert [each.arguments["amount"] for each in pending.calls] == [1, 2]
    await service.decide(context, pending.calls[0].id, allow=False)
    with pytest.raises(ApprovalPending) as still:
        await (await service.resume(context)).finish()
    assert [each.arguments["amount"] for each in still.value.calls] == [2]
    await service.decide(context, pending.calls[1].id)
    await (await service.resume(context)).finish()
    assert till.paid == [("Anna", 2)]
    results = [each["content"] for each in llm.prompts[1] if each["role"] == "tool"]
    assert results[1:] == ["2", "paid 2 to Anna"]


@pytest.mark.any_database
@pytest.mark.parametrize(
    ("judge", "asks"),
    [
        (lambda arguments, _: arguments["amount"] > 100, False),
        (lambda arguments, _: arguments["amount"] > 1, True),
        (lambda arguments, _: arguments["nothing"], True),
        (lambda *_: _cancelled().result(), True),
    ],
    ids=["no", "yes", "it fails", "what it waits for is cancelled"],
)
async def test_a_judgement_decides_who_is_asked_and_one_that_fails_asks(context, storage, judge, asks):
    till = Till(judge)
    service, _ = make_service(storage, [pay(), "done"], tools=[till.pay])
    if asks:
        await ask(service, context)
    else:
        await service.prompt(context, "pay")
    assert till.paid == ([] if asks else [("Anna", 5)])


@pytest.mark.any_database
async def test_a_judgement_may_take_its_time_and_changes_nothing_of_what_runs(context, storage):
    async def judge(arguments, where):
        assert where.context_keys == KEYS
        arguments["amount"] = 1_000
        await asyncio.sleep(0)
        return True

    till = Till(judge)
    service, _ = make_service(storage, [pay(), "done"], tools=[till.pay])
    pending = await ask(service, context)
    await service.decide(context, pending.calls[0].id)
    await (await service.resume(context)).finish()
    assert till.paid == [("Anna", 5)]


@pytest.mark.any_database
async def test_nobody_is_asked_about_what_cannot_be_made(context, storage):
    till = Till(max_calls=1)
    wrong = ToolCall("x", "pay", {}, "{not json")
    service, _ = make_service(storage, [call("pay", to="Anna"), wrong, "done"], tools=[till.pay])
    assert (await service.prompt(context, "pay")).text == "done"
    service, _ = make_service(storage, [[pay(1), pay(2)], "done"], tools=[till.pay])
    pending = await ask(service, context)
    assert [each.arguments["amount"] for each in pending.calls] == [1]


@pytest.mark.any_database
async def test_what_is_always_allowed_asks_no_more_for_this_person_here(context, storage):
    till, anna, bob = Till(), Author("test", "1", "Anna"), Author("test", "2", "Bob")
    service, _ = make_service(storage, [pay(), "done", pay(), "done", pay()], tools=[till.pay])
    pending = await ask(service, context, author=anna)
    await service.decide(context, pending.calls[0].id, always=True)
    await (await service.resume(context)).finish()
    assert (await service.prompt(context, "again", author=anna)).text == "done"
    assert len(till.paid) == 2
    await ask(service, context, author=bob)


@pytest.mark.any_database
async def test_what_nobody_waits_for_cannot_be_decided(context, storage):
    service, _ = make_service(storage, [])
    with pytest.raises(BotServiceError, match="no call 'x' awaits"):
        await service.decide(context, "x")
    with pytest.raises(BotServiceError, match="nothing called 'x'"):
        await service.hand_in(context, "x", 1)


@pytest.mark.any_database
@pytest.mark.parametrize("is_raised", [False, True])
async def test_a_result_that_comes_later_is_handed_in_and_the_turn_goes_on(context, storage, is_raised):
    @tool
    async def export() -> str:
        """Export."""
        if is_raised:
            raise Later("job 1")
        return Later("job 1")

    service, llm = make_service(storage, [[call("export"), call("add", a=1, b=1)], "hm", "done"], tools=[export, add])
    with pytest.raises(ResultPending) as raised:
        await service.prompt(context, "export it")
    assert raised.value.calls[0].id == "job 1"
    assert (await service.prompt(context, "and?")).text == "hm"
    other = await AgentContext.get_or_create(storage, KEYS)
    assert await service.hand_in(other, "job 1", {"rows": 7})
    assert not await service.hand_in(other, "job 1", {"rows": 8})
    assert (await (await service.resume(other)).finish()).text == "done"
    assert [each["content"] for each in llm.prompts[2][-2:]] == ['{"rows": 7}', "2"]


@pytest.mark.any_database
async def test_a_failure_that_comes_later_tells_no_secret(context, storage):
    export = Tool(lambda: Later("job 1"), name="export", description="Export.")
    service, llm = make_service(storage, [call("export"), "done"], tools=[export])
    with pytest.raises(ResultPending):
        await service.prompt(context, "export it")
    await service.hand_in(context, "job 1", ConnectionError("https://h.example/?token=1234-5678 is refused"))
    await (await service.resume(context)).finish()
    told = "Error: ConnectionError: https://h.example/?token=[secret] is refused"
    assert llm.prompts[1][-1]["content"] == told


@pytest.mark.any_database
async def test_a_result_that_never_comes_is_said_to_the_model(context, storage):
    @tool
    async def export() -> str:
        """Export."""
        raise Later("job 1", hours=0.5)

    now = [datetime(2026, 6, 1, tzinfo=UTC)]
    storage.now = lambda: now[0]
    service, llm = make_service(storage, [call("export"), "sorry"], tools=[export])
    with pytest.raises(ResultPending):
        await service.prompt(context, "export it")
    now[0] += timedelta(hours=1)
    assert (await (await service.resume(context)).finish()).text == "sorry"
    assert "no result came" in llm.prompts[1][-1]["content"]


@pytest.mark.any_database
async def test_an_agent_that_works_for_another_asks_nobody_and_says_what_is_to_be_done(context, storage):
    till = Till()
    inner = FunctionsBasedAgent(
        tools=[till.pay], llm=ScriptedChatLLM([pay(), "please pay Anna 5"]), message_selector=NoMessages(), search_k=0
    )
    script = [call("cashier", task="pay Anna"), "I am to pay Anna 5."]
    service, llm = make_service(storage, script, tools=[inner.as_tool("cashier", "Pays")])
    assert (await service.prompt(context, "pay Anna")).text == "I am to pay Anna 5."
    assert till.paid == []
    assert llm.prompts[1][-1]["content"] == "please pay Anna 5"
    assert "needs the word of a person" in inner.llm.prompts[1][-1]["content"]


@pytest.mark.any_database
async def test_what_is_parked_is_listed_for_whom_and_can_be_dropped(context, storage):
    till = Till()
    service, _ = make_service(storage, [pay()], tools=[till.pay])
    pending = await ask(service, context, author=Author("test", "1", "Anna"))
    (listed,) = await list_turns(storage)
    assert (listed.id, listed.status) == (pending.turn_id, "suspended")
    assert "approval of pay (#1), asked by Anna" in listed.waits_for[0]
    with pytest.raises(BotServiceError, match="waits for approval"):
        await retry_turn(storage, pending.turn_id, storage.now())
    await drop_turn(storage, pending.turn_id, storage.now())
    with pytest.raises(RunInterrupted):
        await (await service.resume(context)).finish()
    assert await list_turns(storage) == []
    assert till.paid == []


@pytest.mark.any_database
async def test_upkeep_leaves_what_waits_alone_however_old_it_is(context, storage):
    till, now = Till(), [datetime(2026, 6, 1, tzinfo=UTC)]
    storage.now = lambda: now[0]
    service, _ = make_service(storage, [pay(), "done"], tools=[till.pay])
    service.options = replace(service.options, approval_lasts=timedelta(days=400))
    pending = await ask(service, context)
    now[0] += timedelta(days=100)
    await Maintenance(storage, rest=lambda _: asyncio.sleep(0)).run_once()
    assert await service.decide(context, pending.calls[0].id)
    assert (await (await service.resume(context)).finish()).text == "done"
    now[0] += timedelta(days=100)
    await Maintenance(storage, rest=lambda _: asyncio.sleep(0)).run_once()
    assert await storage.read(lambda connection: connection.execute(pending_calls.select()).all()) == []
