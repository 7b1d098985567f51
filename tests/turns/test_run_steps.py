import asyncio
import gc
import itertools

import pytest

from botservice import (
    Action,
    ActionStep,
    Agent,
    AgentContext,
    AgentService,
    FinalAnswerStep,
    FinishAction,
    PlanningStep,
    RunFinished,
    TaskStep,
    ToolCall,
    TurnInProgress,
)
from tests.turns.bots import add, call, counting, make_service, without_ids


@pytest.mark.any_database
@pytest.mark.parametrize("max_steps", [0, 1, 3])
async def test_max_steps_is_exact_and_one_more_call_without_tools_answers(context, storage, max_steps):
    service, llm = make_service(storage, [*counting(max_steps, "that is it"), "too many"], max_steps=max_steps)
    answer = await service.prompt(context, "go")
    assert answer.text == "that is it"
    assert len(context.completed_steps) == max_steps
    assert len(llm.prompts) == max_steps + 1
    assert [bool(tools) for tools in llm.tools] == [True] * max_steps + [False]


@pytest.mark.any_database
async def test_a_model_that_wants_tools_for_ever_still_gives_an_answer(context, storage):
    service, llm = make_service(storage, lambda _: call("add", a=1, b=1), max_steps=2)
    answer = await service.prompt(context, "go")
    assert "no answer yet" in answer.text
    assert len(llm.prompts) == 3


async def test_deleted_and_injected_steps_do_not_change_how_many_are_left(context, storage):
    def forget(step, agent):
        agent.memory.reset()

    service, _ = make_service(storage, counting(3), max_steps=3, callbacks=[forget])
    run = await service.start(context, "go")
    run.memory.steps += [ActionStep(1, observations="x"), ActionStep(2, observations="y", is_final_answer=True)]
    await run.finish()
    assert [type(step) for step in run.memory.steps] == [FinalAnswerStep]
    assert context.steps_taken == 3

    service, _ = make_service(storage, [call("add", a=1, b=1), "done"], max_steps=3)
    run = await service.start(context, "again")
    await run.step()
    run.memory.reset()
    run = await service.resume(context)
    assert context.steps_taken == 1
    assert (await run.finish()).text == "done"


@pytest.mark.any_database
async def test_numbers_do_not_repeat_over_prompts_whatever_is_put_in_or_deleted(context, storage):
    service, _ = make_service(storage, counting(2) + counting(2) + counting(1))
    await service.prompt(context, "one")
    run = await service.start(context, "two")
    run.memory.steps.append(ActionStep(1, observations="put in"))
    await run.step()
    await run.step()
    del run.memory.steps[-1]
    await run.finish()
    again = await AgentContext.get_or_create(storage, context.context_keys)
    await service.prompt(again, "three")
    numbers = [step.step_number for step in (await context.load_memory()).steps if isinstance(step, ActionStep)]
    assert numbers == [1, 2, 1, 3, 5]


@pytest.mark.any_database
async def test_deleting_and_resetting_is_stored(context, storage):
    service, llm = make_service(storage, counting(3))
    run = await service.start(context, "go")
    await run.step()
    await run.step()
    run.memory.delete_memory_item(1)
    await run.step()
    assert without_ids(llm.prompts[-1])[2:] == [("assistant", ["add"]), ("tool", "3")]
    assert [step.step for step in (await context.load_memory()).steps[1:]] == [2, 3]
    run.memory.reset()
    await run.step()
    assert without_ids(llm.prompts[-1]) == [("system", "You are X"), ("user", "go")]
    assert (await context.load_memory()).steps == run.memory.steps
    assert [type(step) for step in run.memory.steps] == [FinalAnswerStep]


@pytest.mark.any_database
async def test_steps_may_be_moved_and_put_between_others(context, storage):
    service, llm = make_service(storage, counting(3))
    run = await service.start(context, "go")
    await run.step()
    await run.step()
    task, first, second = run.memory.steps
    run.memory.steps[:] = [task, second, ActionStep(9, observations="between"), first]
    await run.step()
    assert without_ids(llm.prompts[-1])[2:] == [
        ("assistant", ["add"]),
        ("tool", "3"),
        ("user", "Observation: between"),
        ("assistant", ["add"]),
        ("tool", "2"),
    ]
    assert (await context.load_memory()).steps == run.memory.steps


@pytest.mark.any_database
async def test_many_steps_put_into_one_place_keep_their_order(context, storage):
    service, _ = make_service(storage, counting(2))
    run = await service.start(context, "go")
    await run.step()
    for number in range(70):
        run.memory.steps.insert(1, ActionStep(number))
        if number % 10 == 0:
            await run._work.save()
    await run.step()
    assert [step.step for step in (await context.load_memory()).steps[1:]] == [*range(69, -1, -1), 1, 2]


CARRY_OUT = "Now go on, and carry out this plan."


def _neighbours(prompt):
    return itertools.pairwise(message["role"] for message in prompt)


@pytest.mark.any_database
@pytest.mark.parametrize(("interval", "expected"), [(1, "PAPAPAPF"), (2, "PAAPAF"), (5, "PAAAF"), (None, "AAAF")])
async def test_a_plan_is_made_before_the_first_step_and_after_every_so_many(context, storage, interval, expected):
    steps = iter(counting(3))
    service, llm = make_service(
        storage,
        lambda prompt: "a plan" if "write down" in str(prompt[-1]["content"]) else next(steps),
        planning_interval=interval,
    )
    run = await service.start(context, "go")
    returned = []
    while run.answer is None:
        returned.append(await run.step())
    assert [type(step) for step in returned] == [ActionStep] * 3 + [FinalAnswerStep]
    kinds = {ActionStep: "A", PlanningStep: "P", FinalAnswerStep: "F"}
    stored = (await context.load_memory()).steps[1:]
    assert "".join(kinds[type(step)] for step in stored) == expected
    plans = [step for step in stored if isinstance(step, PlanningStep)]
    assert all(step.plan == "a plan" and step.token_usage and step.timing.duration_seconds >= 0 for step in plans)
    if plans:
        assert plans[0].model_input_messages == llm.prompts[0]
        assert llm.tools[0] == []
        assert without_ids(llm.prompts[1])[-2:] == [("assistant", "a plan"), ("user", CARRY_OUT)]
        assert not any(pair == ("tool", "user") for prompt in llm.prompts for pair in _neighbours(prompt))


@pytest.mark.any_database
async def test_a_resumed_turn_does_not_plan_twice(context, storage):
    service, llm = make_service(storage, ["a plan", *counting(1)], planning_interval=3)
    run = await service.start(context, "go")
    await run.step()
    run = await service.resume(context)
    await run.finish()
    assert len(llm.prompts) == 3


@pytest.mark.any_database
async def test_each_step_is_stored_when_it_is_returned(context, storage):
    service, llm = make_service(storage, counting(2))
    run = await service.start(context, "go")
    assert [type(step) for step in (await context.load_memory()).steps] == [TaskStep]
    first = await run.step()
    assert (await context.load_memory()).steps == run.memory.steps == [TaskStep("go"), first]
    assert first.step_number == first.step == 1
    assert first.timing.duration_seconds >= 0
    assert first.token_usage.total_tokens > 0
    assert first.model_input_messages == llm.prompts[0]
    await run.finish()
    memory = await context.load_memory()
    assert memory == run.memory
    assert memory.system_prompt.system_prompt == "You are X"
    assert type(memory).from_json(memory.to_json()) == memory
    with pytest.raises(RunFinished):
        await run.step()


@pytest.mark.any_database
async def test_a_memory_is_written_as_messages(context, storage):
    service, _ = make_service(storage, [["I add. ", call("add", a=1, b=1)], "2"])
    run = await service.start(context, "go")
    await run.finish()
    assert without_ids(run.write_memory_to_messages()) == [
        ("system", "You are X"),
        ("user", "New task: go"),
        ("assistant", ["add"]),
        ("tool", "2"),
        ("assistant", "2"),
    ]
    short = run.write_memory_to_messages(True)
    assert short[0]["content"] == "New task: go"
    assert short[1]["content"] is None


@pytest.mark.any_database
async def test_a_context_has_one_open_turn(context, storage):
    service, _ = make_service(storage, [*counting(1), "b"])
    run = await service.start(context, "a")
    other = await AgentContext.get_or_create(storage, context.context_keys)
    for start in (service.start, service.prompt):
        with pytest.raises(TurnInProgress):
            await start(other, "b")
    await run.finish()
    assert (await service.prompt(other, "b")).text == "b"


@pytest.mark.any_database
async def test_two_steps_of_one_run_at_once_are_refused(context, storage):
    entered, leave = asyncio.Event(), asyncio.Event()

    async def reply(prompt):
        entered.set()
        await leave.wait()
        return "ok"

    service, _ = make_service(storage, [reply])
    run = await service.start(context, "a")
    first = asyncio.create_task(run.step())
    await entered.wait()
    with pytest.raises(TurnInProgress):
        await run.step()
    leave.set()
    await first
    assert run.answer.text == "ok"


async def test_a_run_that_is_left_or_forgotten_gives_its_context_back(context, storage):
    service, _ = make_service(storage, [*counting(1, "a"), "b"])
    async with await service.start(context, "a") as run:
        await run.step()
    run = await service.resume(context)
    del run
    gc.collect()
    await storage.write(lambda connection: None)
    answer = await service.prompt(context, "b")
    assert answer.text == "b"
    assert [message.text for message in await context.chat_history.messages()] == ["a", "a", "b", "b"]


@pytest.mark.any_database
async def test_an_agent_of_ones_own_says_what_to_do_next(context, storage):
    class Counter(Agent):
        def __init__(self):
            self.tools = {"add": add}

        async def next_action(self, context):
            done = context.completed_steps
            if len(done) < 2:
                return Action([ToolCall(f"c{len(done)}", "add", {"a": len(done), "b": 1})])
            return FinishAction(" and ".join(step.observations for step in done))

        async def finish(self, context):
            return FinishAction("no more")

    service = AgentService(agent=Counter(), storage=storage)
    assert (await service.prompt(context, "go")).text == "1 and 2"
    short = AgentService(agent=Counter(), storage=storage, max_steps=1)
    assert (await short.prompt(context, "go")).text == "no more"
    assert (await context.load_memory()).steps[1].model_input_messages == []
