import asyncio
import threading

import pytest

from botservice import (
    ActionStep,
    AgentContext,
    ChatResponse,
    ClaimLost,
    RunInterrupted,
    ScriptedChatLLM,
    TaskStep,
    Tool,
    TurnInProgress,
    tool,
)
from tests.turns.bots import add, call, counting, make_service
from tests.turns.killable import neighbour_ended


class Hanging:
    """A model that says something and then hangs."""

    model = "hanging"

    def __init__(self, *pieces):
        self.pieces = pieces or ("Let me ", "think ")
        self.said = asyncio.Event()

    async def chat(self, messages, tools=(), *, on_text=None):
        for piece in self.pieces:
            on_text(piece)
        self.said.set()
        await asyncio.Event().wait()
        return ChatResponse("never")


async def interrupted(context, storage, llm):
    """Interrupt a run whose model has said something, and return it with its service and the step that hangs."""
    service, _ = make_service(storage, ScriptedChatLLM([]))
    service.agent.llm = llm
    run = await service.start(context, "go")
    step = asyncio.create_task(run.step())
    await llm.said.wait()
    run.interrupt()
    return service, run, step


@pytest.mark.any_database
async def test_during_a_model_call_what_was_said_is_kept(context, storage):
    service, run, step = await interrupted(context, storage, Hanging())
    for _ in range(2):
        with pytest.raises(RunInterrupted):
            await step
        step = asyncio.create_task(run.step())
    with pytest.raises(RunInterrupted):
        await step
    assert run.is_interrupted
    assert [message.text for message in await context.chat_history.messages()] == ["go", "Let me think"]
    assert await service.resume(context) is None


async def test_a_run_that_is_stopped_before_anything_can_be_seen_leaves_no_answer(context, storage):
    _, _, step = await interrupted(context, storage, Hanging("\u200b", "\ufeff "))
    with pytest.raises(RunInterrupted):
        await step
    assert [message.text for message in await context.chat_history.messages()] == ["go"]


async def test_during_tools_their_results_so_far_are_kept(context, storage):
    begun = asyncio.Event()

    @tool
    async def hang() -> str:
        """Hang."""
        await neighbour_ended(context)
        begun.set()
        await asyncio.Event().wait()

    service, llm = make_service(storage, [[call("add", a=1, b=1), call("hang")], "next"], tools=[add, hang])
    run = await service.start(context, "go")
    task = asyncio.create_task(run.finish())
    await begun.wait()
    run.interrupt()
    with pytest.raises(RunInterrupted):
        await task
    stored = (await context.load_memory()).steps
    assert [type(step) for step in stored] == [TaskStep, ActionStep]
    assert next(result.text for result in stored[1].tool_results) == "2"
    assert "Stopped by the person" in stored[1].tool_results[1].text
    assert stored[1].error.type == "RunInterrupted"
    assert (await service.prompt(context, "hello")).text == "next"
    assert len(llm.prompts) == 2


@pytest.mark.any_database
async def test_from_a_callback_the_step_is_kept_and_the_next_one_is_refused(context, storage):
    service, llm = make_service(
        storage, [["I look. ", call("add", a=1, b=1)], "x"], callbacks=[lambda step, agent: agent.interrupt()]
    )
    run = await service.start(context, "go")
    step = await run.step()
    assert step.observations == "2"
    with pytest.raises(RunInterrupted):
        await run.step()
    assert len(llm.prompts) == 1
    assert [message.text for message in await context.chat_history.messages()] == ["go", "I look."]
    assert [type(step) for step in (await context.load_memory()).steps] == [TaskStep, ActionStep]


@pytest.mark.any_database
async def test_from_a_callback_prompt_raises(context, storage):
    service, _ = make_service(storage, counting(2), callbacks=[lambda step, agent: agent.interrupt()])
    with pytest.raises(RunInterrupted):
        await service.prompt(context, "go")
    service, _ = make_service(storage, ["ok"], callbacks={TaskStep: lambda step, agent: agent.interrupt()})
    with pytest.raises(RunInterrupted):
        await service.prompt(context, "go")


@pytest.mark.any_database
async def test_before_the_first_step_nothing_is_asked(context, storage):
    service, llm = make_service(storage, ["never"])
    run = await service.start(context, "go")
    run.interrupt()
    with pytest.raises(RunInterrupted):
        await run.step()
    assert llm.prompts == []
    assert [message.text for message in await context.chat_history.messages()] == ["go"]


@pytest.mark.any_database
async def test_closing_an_interrupted_run_ends_its_turn(context, storage):
    service, _ = make_service(storage, ["never"])
    async with await service.start(context, "go") as run:
        run.interrupt()
    assert await service.resume(context) is None


@pytest.mark.any_database
async def test_interrupting_a_finished_run_changes_nothing(context, storage):
    service, _ = make_service(storage, ["ok"])
    run = await service.start(context, "go")
    await run.finish()
    run.interrupt()
    await run.close()
    assert run.answer.text == "ok"


@pytest.mark.any_database
async def test_from_another_thread(context, storage):
    begun = threading.Event()
    release = threading.Event()

    def wait() -> str:
        begun.set()
        release.wait(60)
        return "late"

    service, _ = make_service(storage, [call("wait"), "x"], tools=[Tool(wait)])
    run = await service.start(context, "go")
    task = asyncio.create_task(run.step())
    await asyncio.to_thread(begun.wait, 60)
    await asyncio.to_thread(run.interrupt)
    try:
        with pytest.raises(RunInterrupted):
            await asyncio.wait_for(task, 60)
    finally:
        release.set()
    assert "unknown" in context.memory.steps[1].observations


@pytest.mark.any_database
async def test_a_tool_that_interrupts_its_own_run_is_let_through(context, storage):
    runs = []

    @tool
    async def stop() -> str:
        """Stop."""
        runs[0].interrupt()
        return "stopping"

    service, _ = make_service(storage, [call("stop"), "x"], tools=[stop])
    runs.append(await service.start(context, "go"))
    assert (await runs[0].step()).observations == "stopping"
    with pytest.raises(RunInterrupted):
        await runs[0].step()


@pytest.mark.any_database
async def test_a_cancelled_step_leaves_the_turn_to_be_resumed(context, storage):
    llm = Hanging()
    service, _ = make_service(storage, counting(1))
    script, service.agent.llm = service.agent.llm, llm
    run = await service.start(context, "go")
    task = asyncio.create_task(run.step())
    await llm.said.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    service.agent.llm = script
    assert (await run.finish()).text == "done"


async def test_resuming_takes_a_paused_run_over_and_the_old_one_writes_nothing_more(context, storage):
    service, llm = make_service(storage, counting(2))
    old = await service.start(context, "go")
    await old.step()
    other = await AgentContext.get_or_create(storage, context.context_keys)
    new = await service.resume(other)
    old.memory.steps.append(ActionStep(99, observations="from the old one"))
    with pytest.raises(ClaimLost):
        await old.step()
    await old.close()
    assert (await new.finish()).text == "done"
    assert len(llm.prompts) == 3
    assert "from the old one" not in str((await other.load_memory()).steps)


@pytest.mark.any_database
async def test_a_run_in_the_middle_of_a_step_is_not_taken_over(context, storage):
    llm = Hanging()
    service, _ = make_service(storage, [])
    service.agent.llm = llm
    run = await service.start(context, "go")
    task = asyncio.create_task(run.step())
    await llm.said.wait()
    with pytest.raises(TurnInProgress):
        await service.resume(await AgentContext.get_or_create(storage, context.context_keys))
    run.interrupt()
    with pytest.raises(RunInterrupted):
        await task


@pytest.mark.any_database
async def test_whoever_waits_for_a_run_that_is_stopped_is_not_cancelled_with_it(context, storage):
    llm = Hanging()
    service, _ = make_service(storage, [])
    service.agent.llm = llm
    run = await service.start(context, "go")

    async def stop():
        await llm.said.wait()
        run.interrupt()

    stopping = asyncio.create_task(stop())
    with pytest.raises(RunInterrupted):
        await run.step()
    await stopping
    assert asyncio.current_task().cancelling() == 0


@pytest.mark.any_database
async def test_who_is_cancelled_while_a_run_is_stopped_stays_cancelled(context, storage):
    llm = Hanging()
    service, _ = make_service(storage, [])
    service.agent.llm = llm
    run = await service.start(context, "go")
    task = asyncio.create_task(run.step())
    await llm.said.wait()
    run.interrupt()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await run.close()
    assert [message.text for message in await context.chat_history.messages()] == ["go", "Let me think"]


@pytest.mark.any_database
async def test_a_tool_that_does_not_let_itself_be_cut_off_ends_and_then_the_run_does(context, storage):
    begun = asyncio.Event()

    @tool
    async def stubborn() -> str:
        """Do what was begun."""
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return "done all the same"

    service, _ = make_service(storage, [call("stubborn"), "never"], tools=[stubborn])
    run = await service.start(context, "go")
    task = asyncio.create_task(run.finish())
    await begun.wait()
    run.interrupt()
    with pytest.raises(RunInterrupted):
        await task
    assert task.cancelling() == 0
    steps = (await context.load_memory()).steps
    assert any(getattr(step, "observations", None) == "done all the same" for step in steps)
