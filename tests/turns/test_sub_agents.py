"""Agents that work for another agent."""

import asyncio
import io
from datetime import UTC, datetime

import pytest
from rich.console import Console
from sqlalchemy import select
from turns.bots import NO_WAITING, add, call, make_service

from botservice import (
    ActionStep,
    AgentContext,
    AgentService,
    Author,
    FailedStep,
    FinalAnswerStep,
    FunctionsBasedAgent,
    InvalidTool,
    LLMError,
    MemoryItem,
    NoMessages,
    PlanningStep,
    RunInterrupted,
    ScriptedChatLLM,
    TaskStep,
    sub_runs,
    tool,
)
from botservice.core.errors import BudgetExceeded
from botservice.core.policies import Scope, parse_limits
from botservice.people.budgets import Budgets
from botservice.people.usage import UsageBy
from botservice.people.usage_queries import list_usage
from botservice.storage.tables.people import budget_reservations

LEAST = {"search_k": 3, "prompt": "You research"}


def make_pair(storage, above, below, *, tools=(add,), budgets=None, as_tool=None, **options):
    """Return a service whose agent has another one as a tool, and both models."""
    llm, sub_llm = ScriptedChatLLM(above), ScriptedChatLLM(below, model="small")
    researcher = FunctionsBasedAgent(tools=tools, llm=sub_llm, **{**LEAST, **options})
    research = researcher.as_tool("research", "Researches.", **(as_tool or {}))
    agent = FunctionsBasedAgent(tools=[research, add], llm=llm, prompt="You lead", message_selector=NoMessages())
    return AgentService(agent=agent, storage=storage, model_retries=NO_WAITING, budgets=budgets), llm, sub_llm


def ask(task, call_id=""):
    return call("research", call_id, task=task)


@pytest.mark.any_database
async def test_an_agent_works_for_another_with_steps_and_a_memory_of_its_own(context, storage):
    await context.chat_history.append_user_message("My secret is 42", author=Author("telegram", "1", "Ann"))
    service, llm, sub_llm = make_pair(storage, [ask("add 1 and 2"), "three"], [call("add", a=1, b=2), "It is 3."])
    run = await service.start(context, "what is my secret plus?", author=Author("telegram", "1", "Ann"))
    answer = await run.finish()
    assert answer.text == "three"
    (step,) = context.completed_steps
    assert step.observations == "It is 3."
    (below,) = sub_runs(step)
    assert (below.name, below.call_id) == ("research", step.tool_calls[0].id)
    assert below.memory.system_prompt.system_prompt == "You research"
    assert [type(each) for each in below.memory.steps] == [TaskStep, ActionStep, FinalAnswerStep]
    assert below.memory.steps[1].observations == "3"
    assert below.memory.steps[1].timing.duration_seconds >= 0
    assert below.memory.steps[2].model_input_messages == sub_llm.prompts[-1], "which has the earlier ones in it"
    assert [message["content"] for message in sub_llm.prompts[0]] == ["You research", "add 1 and 2"]
    assert "secret" not in str(sub_llm.prompts)
    assert "It is 3." in str(llm.prompts[-1])
    assert "You research" not in str(llm.prompts)


@pytest.mark.any_database
async def test_what_was_done_is_stored_under_the_turn_and_shown_by_replay(context, storage):
    service, *_ = make_pair(storage, [ask("add 1 and 2"), "three"], [call("add", a=1, b=2), "It is 3."])
    await service.prompt(context, "go")
    again = await AgentContext.get_or_create(storage, context.context_keys)
    (step,) = again.completed_steps
    assert sub_runs(step) == sub_runs(context.completed_steps[0])
    assert MemoryItem.from_json(step.to_json()) == step
    paper = Console(file=io.StringIO(), width=100)
    again.memory.replay(console=paper)
    shown = paper.file.getvalue()
    assert "Agent research" in shown
    assert "Call add" in shown
    assert "It is 3." in shown
    again.memory.replay(detailed=True, console=paper)
    assert "You research" in paper.file.getvalue()


@pytest.mark.any_database
async def test_tokens_are_the_turns(context, storage):
    service, *_ = make_pair(storage, [ask("x"), "done"], [call("add", a=1, b=2), "3"])
    run = await service.start(context, "go")
    await run.finish()
    below = sub_runs(context.completed_steps[0])[0].memory.steps
    counted = [*run.result.steps, *below]
    total = sum(step.token_usage.total_tokens for step in counted if step.get_value("token_usage"))
    assert run.result.token_usage.total_tokens == total
    lines = await storage.read(lambda c: list_usage(c, UsageBy.MODEL, datetime(2020, 1, 1, tzinfo=UTC)))
    assert {line.subject: line.calls for line in lines} == {"scripted": 2, "small": 2}
    assert sum(line.input_tokens + line.output_tokens for line in lines) == total


@pytest.mark.any_database
async def test_a_budget_that_does_not_reach_ends_the_work(context, storage):
    budgets = Budgets({Scope.SERVICE: parse_limits("1000 tokens/day")}, answer_tokens=300)
    sub = [call("add", a=1, b=2)] * 9
    service, _, sub_llm = make_pair(storage, [[ask("x", "a"), ask("y", "b")], "done"], sub, budgets=budgets)
    with pytest.raises(BudgetExceeded):
        await service.prompt(context, "go " + "on " * 100)
    assert len(sub_llm.prompts) < 9


@pytest.mark.any_database
async def test_several_work_side_by_side(context, storage):
    both = asyncio.Barrier(2)

    @tool
    async def meet() -> str:
        """Meet the other one."""
        async with asyncio.timeout(60):
            await both.wait()
        return "met"

    calls = [ask("one", "a"), ask("two", "b")]

    def reply(prompt):
        return f"{prompt[1]['content']} done" if prompt[-1]["role"] == "tool" else call("meet")

    service, _llm, _ = make_pair(storage, [calls, "done"], reply, tools=[meet])
    await service.prompt(context, "go")
    (step,) = context.completed_steps
    assert [run.call_id for run in sub_runs(step)] == ["a", "b"]
    assert [result.text for result in step.tool_results] == ["one done", "two done"]


@pytest.mark.any_database
async def test_max_steps_of_its_own_plans_checks_and_limits(context, storage):
    @tool(max_calls=1)
    async def look() -> str:
        """Look."""
        return "seen"

    replies = iter([call("look"), "wrong", call("look"), "right"])

    def reply(prompt):
        return "a plan" if "write down" in str(prompt[-1]["content"]) else next(replies)

    service, _, sub_llm = make_pair(
        storage,
        [ask("x"), "done"],
        reply,
        tools=[look],
        as_tool={"max_steps": 3},
        planning_interval=5,
        final_answer_checks=[lambda answer: answer != "wrong"],
    )
    await service.prompt(context, "go")
    (step,) = context.completed_steps
    assert step.observations == "right"
    steps = sub_runs(step)[0].memory.steps
    kinds = [TaskStep, PlanningStep, ActionStep, ActionStep, ActionStep, FailedStep, FinalAnswerStep]
    assert [type(each) for each in steps] == kinds
    assert "may be called once" in steps[4].observations
    assert "Check <lambda> failed" in steps[3].observations
    assert str(steps[5].error).startswith("MaxStepsError: the 3 steps")
    assert sub_llm.tools[-1] == []


async def test_what_a_final_tool_gave_below_is_checked_and_taken_back_as_in_a_turn(context, storage):
    @tool(is_final=True)
    async def hand_in(number: int) -> int:
        """Hand the result in."""
        return number

    service, _, sub_llm = make_pair(
        storage,
        [ask("x"), "done"],
        [call("hand_in", number=3), call("hand_in", number=4)],
        tools=[hand_in],
        as_tool={"max_steps": 2},
        final_answer_checks=[lambda answer: answer == 4],
    )
    await service.prompt(context, "go")
    (step,) = context.completed_steps
    assert step.observations == "4"
    steps = sub_runs(step)[0].memory.steps
    assert [type(each) for each in steps] == [TaskStep, ActionStep, ActionStep, FinalAnswerStep]
    assert [each.is_final_answer for each in steps[1:3]] == [False, True]
    assert "Check <lambda> failed" in sub_llm.prompts[-1][-1]["content"]


@pytest.mark.any_database
async def test_a_model_that_stays_away_below_is_an_observation_above(context, storage):
    service, _llm, _ = make_pair(storage, [ask("x"), "sorry"], [call("add", a=1, b=1), *[LLMError("down")] * 3])
    assert (await service.prompt(context, "go")).text == "sorry"
    (step,) = context.completed_steps
    assert step.observations == "Error: LLMError: down"
    kinds = [type(each) for each in sub_runs(step)[0].memory.steps]
    assert kinds == [TaskStep, ActionStep, FailedStep], "what was done until then is kept"


@pytest.mark.any_database
async def test_a_run_out_of_time_keeps_what_was_done(context, storage):
    @tool(timeout_seconds=60)
    async def hang() -> None:
        """Hang."""
        await asyncio.Event().wait()

    script = [call("add", a=1, b=1), call("hang")]
    service, *_ = make_pair(storage, [ask("x"), "sorry"], script, tools=[add, hang], as_tool={"timeout_seconds": 0.5})
    assert (await service.prompt(context, "go")).text == "sorry"
    (step,) = context.completed_steps
    assert "did not end within 0.5 seconds" in step.observations
    assert isinstance(sub_runs(step)[0].memory.steps[0], TaskStep)


@pytest.mark.any_database
async def test_files_and_final_tools_below_are_the_calls_result(context, storage):
    @tool(is_final=True)
    async def draw() -> list[object]:
        """Draw."""
        from botservice import Attachment

        return ["a picture", Attachment("image/png", "p.png", data=b"x" * 2000)]

    service, *_ = make_pair(storage, [ask("x"), "done"], [call("draw")], tools=[draw])
    await service.prompt(context, "go")
    again = await AgentContext.get_or_create(storage, context.context_keys)
    (step,) = again.completed_steps
    assert step.observations_images[0].data == b"x" * 2000
    assert sub_runs(step)[0].memory.steps[1].observations_images == step.observations_images


@pytest.mark.any_database
async def test_depth_is_bounded(context, storage):
    llm = ScriptedChatLLM(lambda prompt: prompt[-1]["content"] if prompt[-1]["role"] == "tool" else ask("deeper"))
    agent = FunctionsBasedAgent(llm=llm, prompt="", search_k=0)
    agent.tools = {"research": agent.as_tool("research", "Itself.")}
    service = AgentService(agent=agent, storage=storage, model_retries=NO_WAITING)
    answer = await service.prompt(context, "go")
    assert "3 deep" in answer.text
    step = context.completed_steps[0]
    for _ in range(3):
        (run,) = sub_runs(step)
        step = run.memory.steps[1]
    assert not sub_runs(step)


@pytest.mark.any_database
@pytest.mark.parametrize("idempotent", [False, True])
async def test_a_call_that_was_cut_off_is_interrupted_or_made_anew(context, storage, idempotent):
    is_down = asyncio.Event()

    @tool
    async def look(context: AgentContext) -> str:
        """Look."""
        if not is_down.is_set():
            is_down.set()
            await asyncio.Event().wait()
        return "seen"

    script = [call("look"), *([call("look"), "found"] if idempotent else [])]
    service, _llm, _ = make_pair(storage, [ask("x"), "done"], script, tools=[look], as_tool={"idempotent": idempotent})
    run = await service.start(context, "go")
    work = asyncio.create_task(run.step())
    async with asyncio.timeout(60):
        await is_down.wait()
    work.cancel()
    await asyncio.wait([work])
    context = await AgentContext.get_or_create(storage, context.context_keys)
    run = await service.resume(context)
    assert (await run.finish()).text == "done"
    (step,) = context.completed_steps
    assert step.observations == "found" if idempotent else "outcome of this call is unknown" in step.observations
    assert len(sub_runs(step)) == idempotent


@pytest.mark.any_database
async def test_a_tool_below_has_the_conversation_and_not_its_messages(context, storage):
    seen = []

    @tool
    async def look(context: AgentContext) -> str:
        """Look."""
        seen.append((context.id, [each.text for each in await context.chat_history.messages()]))
        context.metadata["seen"] = True
        return "seen"

    service, *_ = make_pair(storage, [ask("x"), "done"], [call("look"), "found"], tools=[look])
    await service.prompt(context, "go")
    assert seen == [(context.id, [])]
    again = await AgentContext.get_or_create(storage, context.context_keys)
    assert again.metadata == {"seen": True}


async def test_an_agent_tool_elsewhere_than_in_a_turn_says_so(context):
    from botservice.agent.tool_executor import execute

    agent = FunctionsBasedAgent(llm=ScriptedChatLLM(["x"]))
    research = agent.as_tool("research", "Researches.")
    assert research.schema["function"]["description"] == "Researches."
    assert list(research.schema["function"]["parameters"]["properties"]) == ["task"]
    outcome = await execute({"research": research}, ask("x", "1"), context)
    assert "works within a turn" in outcome.text
    with pytest.raises(InvalidTool, match="max_steps"):
        agent.as_tool("research", "Researches.", max_steps=-1)


@pytest.mark.any_database
async def test_a_turn_without_other_agents_has_nothing_of_them(context, storage):
    service, _ = make_service(storage, [call("add", a=1, b=1), "2"])
    await service.prompt(context, "go")
    assert "sub_runs" not in context.completed_steps[0].attributes
    assert sub_runs(context.memory.steps[0]) == []


@pytest.mark.any_database
async def test_a_stop_reaches_an_agent_below_and_gives_back_what_was_reserved(context, storage):
    is_asked = asyncio.Event()

    async def hang(_):
        is_asked.set()
        await asyncio.Event().wait()

    budgets = Budgets({Scope.SERVICE: parse_limits("100000 tokens/day")}, answer_tokens=300)
    service, *_ = make_pair(storage, [ask("x")], [call("add", a=1, b=2), hang], budgets=budgets)
    run = await service.start(context, "go")
    work = asyncio.create_task(run.step())
    async with asyncio.timeout(60):
        await is_asked.wait()
    run.interrupt()
    with pytest.raises(RunInterrupted):
        await work
    open_ones = await storage.read(lambda connection: connection.execute(select(budget_reservations)).all())
    assert open_ones == []
    assert run.result.state == "interrupted"
