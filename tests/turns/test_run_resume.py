from pathlib import Path

import pytest
from crash.warm import processes
from standins.patience import PATIENT

from botservice import ActionStep, AgentContext, FinalAnswerStep, ScriptedChatLLM, Storage, TaskStep
from tests.turns.bots import call, make_service, without_ids
from tests.turns.killable import KEYS, make_tools, reply, run_until_death

SCRIPT = [
    call("once", "a", n=1),
    [call("twice", "b", n=2), call("once", "c", n=3)],
    [call("once", "d", n=4), call("twice", "e", n=5)],
    "answered",
]
RESULTS = ["once 1 ran", "twice 2 ran", "once 3 ran", "once 4 ran", "twice 5 ran"]


@pytest.fixture
def kill(storage_url, tmp_path):
    """Run the bot in a process of its own until it kills itself."""

    def run(script=SCRIPT, **options):
        child = processes.Process(target=run_until_death, args=(storage_url, log(tmp_path), script, options))
        child.start()
        child.join(60)
        assert child.exitcode == -9

    return run


def log(tmp_path):
    return str(tmp_path / "ran.txt")


def ran(tmp_path):
    path = Path(log(tmp_path))
    return path.read_text().splitlines() if path.exists() else []


async def resume(storage, tmp_path, script=SCRIPT):
    context = await AgentContext.get_or_create(storage, KEYS)
    service, llm = make_service(storage, ScriptedChatLLM(reply(script)), tools=make_tools(log(tmp_path)))
    return await service.resume(context), llm


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
async def test_between_any_two_steps_finished_ones_are_used_and_not_repeated(kill, storage_url, tmp_path, steps):
    kill(steps=steps)
    async with Storage.open(storage_url, limits=PATIENT) as storage:
        run, llm = await resume(storage, tmp_path)
        assert len(run.context.completed_steps) == steps
        assert (await run.finish()).text == "answered"
        assert len(llm.prompts) == len(SCRIPT) - steps
        assert [text for role, text in without_ids(llm.prompts[-1]) if role == "tool"] == RESULTS
        memory = await run.context.load_memory()
        assert [type(step) for step in memory.steps] == [TaskStep, *[ActionStep] * 3, FinalAnswerStep]
        assert [step.step_number for step in memory.steps[1:4]] == [1, 2, 3]
        assert [message.text for message in await run.context.chat_history.messages()] == ["go", "answered"]
        shown = memory.steps[-1].model_input_messages
        assert shown == llm.prompts[-1]
    assert sorted(ran(tmp_path)) == ["once 1", "once 3", "once 4", "twice 2", "twice 5"]


@pytest.mark.any_database
async def test_during_a_model_call_that_call_is_made_again(kill, storage_url, tmp_path):
    kill(dies_before=2)
    async with Storage.open(storage_url, limits=PATIENT) as storage:
        run, llm = await resume(storage, tmp_path)
        await run.finish()
        assert len(llm.prompts) == 2
    assert len(ran(tmp_path)) == 5


@pytest.mark.any_database
async def test_during_a_tool_ended_calls_count_and_the_cut_off_one_is_not_run_again(kill, storage_url, tmp_path):
    kill(dies_in="once 3")
    async with Storage.open(storage_url, limits=PATIENT) as storage:
        run, _ = await resume(storage, tmp_path)
        step = await run.step()
        assert step.step_number == 2
        assert step.tool_results[0].text == "twice 2 ran"
        assert "outcome of this call is unknown" in step.tool_results[1].text
        assert step.error.type == "Interrupted"
        assert (await run.finish()).text == "answered"
    assert ran(tmp_path).count("twice 2") == 1
    assert ran(tmp_path).count("once 3") == 1


@pytest.mark.any_database
async def test_during_an_idempotent_tool_it_runs_again(kill, storage_url, tmp_path):
    kill(dies_in="twice 5")
    async with Storage.open(storage_url, limits=PATIENT) as storage:
        run, llm = await resume(storage, tmp_path)
        await run.finish()
        assert [text for role, text in without_ids(llm.prompts[-1]) if role == "tool"] == RESULTS
    assert ran(tmp_path).count("twice 5") == 2
    assert ran(tmp_path).count("once 4") == 1


@pytest.mark.any_database
async def test_in_a_callback_the_step_is_stored(kill, storage_url, tmp_path):
    kill(in_callback=2)
    async with Storage.open(storage_url, limits=PATIENT) as storage:
        run, _ = await resume(storage, tmp_path)
        assert [step.step_number for step in run.context.completed_steps] == [1, 2]
        await run.finish()
    assert len(ran(tmp_path)) == 5


@pytest.mark.any_database
async def test_between_a_final_tool_and_the_answer_the_model_is_not_asked(kill, storage_url, tmp_path):
    script = [call("submit", n=7)]
    kill(script, steps=1)
    async with Storage.open(storage_url, limits=PATIENT) as storage:
        run, llm = await resume(storage, tmp_path, script)
        assert (await run.finish()).text == "submit 7 ran"
        assert llm.prompts == []
    assert ran(tmp_path) == ["submit 7"]


@pytest.mark.any_database
async def test_after_the_answer_there_is_nothing_to_resume(kill, storage_url, tmp_path):
    kill()
    async with Storage.open(storage_url, limits=PATIENT) as storage:
        run, _ = await resume(storage, tmp_path)
        assert run is None
        context = await AgentContext.get_or_create(storage, KEYS)
        assert context.completed_steps[-1].step_number == 3


@pytest.mark.slow
async def test_killed_again_and_again_the_turn_still_ends_and_nothing_runs_twice(kill, storage_url, tmp_path):
    kill(steps=0)
    kill(resumes=True, steps=1)
    kill(resumes=True, dies_in="twice 2")
    kill(resumes=True, dies_before=2)
    kill(resumes=True, in_callback=3)
    async with Storage.open(storage_url, limits=PATIENT) as storage:
        run, _ = await resume(storage, tmp_path)
        assert (await run.finish()).text == "answered"
        memory = await run.context.load_memory()
        assert [step.step_number for step in memory.steps[1:4]] == [1, 2, 3]
    counts = {line: ran(tmp_path).count(line) for line in ran(tmp_path)}
    assert counts == {"once 1": 1, "twice 2": 2, "once 3": 1, "once 4": 1, "twice 5": 1}


@pytest.mark.any_database
async def test_days_later_a_pending_call_gets_its_result_from_whoever_has_it(kill, storage_url, tmp_path):
    kill(steps=1)
    async with Storage.open(storage_url, limits=PATIENT) as storage:
        run, llm = await resume(storage, tmp_path)
        run.memory.steps[-1].observations = "once 1: approved on Tuesday"
        await run.finish()
        assert without_ids(llm.prompts[0])[-1] == ("tool", "once 1: approved on Tuesday")


@pytest.mark.any_database
async def test_a_conversation_without_a_turn_has_nothing_to_resume(context, storage):
    service, _ = make_service(storage, [])
    assert await service.resume(context) is None
    run = await service.start(context, "go")
    assert run is not None
