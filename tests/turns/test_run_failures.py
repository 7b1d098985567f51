"""What keeps an agent from a step stands in the memory, and out of the model's sight."""

import pytest
from turns.bots import add, call, counting, make_service

from botservice import ActionStep, AgentContext, FailedStep, FinalAnswerStep, LLMError, MemoryItem, TaskStep, tool
from botservice.telemetry.logs import register_secret

pytestmark = pytest.mark.any_database

BROKEN = LLMError("the server is down")


async def test_a_model_error_stands_in_the_memory_and_not_in_the_next_prompt(context, storage):
    service, llm = make_service(storage, [call("add", a=1, b=1), *[BROKEN] * 3, "ok"])
    run = await service.start(context, "go")
    await run.step()
    with pytest.raises(LLMError):
        await run.step()
    failed = run.memory.steps[-1]
    assert isinstance(failed, FailedStep)
    assert str(failed.error) == "LLMError: the server is down"
    assert failed.timing.duration_seconds >= 0
    again = await AgentContext.get_or_create(storage, context.context_keys)
    assert again.memory.steps == run.memory.steps
    run = await service.resume(again)
    await run.finish()
    assert [step.step_number for step in again.completed_steps] == [1]
    assert "down" not in str(llm.prompts[-1])
    assert "down" not in str(run.write_memory_to_messages())


async def test_what_is_secret_in_a_model_error_is_not_kept(context, storage):
    register_secret("the-key-of-the-server")
    service, _ = make_service(storage, [LLMError("the-key-of-the-server is wrong", is_transient=False)])
    with pytest.raises(LLMError):
        await service.prompt(context, "go")
    assert str((await context.load_memory()).steps[-1].error) == "LLMError: [secret] is wrong"


async def test_used_up_steps_stand_in_the_memory_once_and_every_model_call_has_its_timing(context, storage):
    service, llm = make_service(storage, [*counting(2)[:2], *[BROKEN] * 3, "that is all"], max_steps=2)
    run = await service.start(context, "go")
    await run.step()
    await run.step()
    with pytest.raises(LLMError):
        await run.step()
    run = await service.resume(context)
    assert (await run.finish()).text == "that is all"
    kinds = [type(step) for step in run.memory.steps]
    assert kinds == [TaskStep, ActionStep, ActionStep, FailedStep, FailedStep, FinalAnswerStep]
    assert str(run.memory.steps[3].error) == (
        "MaxStepsError: the 2 steps that may run tools for one prompt are used up"
    )
    assert all(step.timing.duration_seconds >= 0 for step in run.memory.steps[1:])
    assert [step.step_number for step in run.memory.steps[1:5]] == [1, 2, 3, 4]
    assert "used up" not in str(llm.prompts[-1])


async def test_an_error_that_cannot_speak_is_an_observation(context, storage):
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no words")

    @tool
    async def sulk() -> str:
        raise Mute

    service, _ = make_service(storage, [call("sulk"), "never mind"], tools=[sulk])
    assert (await service.prompt(context, "go")).text == "never mind"
    (step,) = context.completed_steps
    assert step.observations == "Error: Mute: (the error has no readable message)"
    assert step.error.type == "Mute"


@pytest.mark.parametrize(
    ("value", "text"),
    [(7.2904, "7.2904"), (3, "3"), (True, "true"), ({"a": [1.5, None]}, '{"a": [1.5, null]}'), ("x", "x")],
)
async def test_a_final_answer_keeps_its_type_and_people_read_it_as_text(context, storage, value, text):
    @tool(is_final=True)
    async def measure() -> object:
        """Measure."""
        return value

    service, llm = make_service(storage, [call("measure"), "thanks"], tools=[measure])
    assert (await service.prompt(context, "how much?")).text == text
    step = (await context.load_memory()).steps[-1]
    assert step.output == value
    assert type(step.output) is type(value) or isinstance(value, dict)
    assert MemoryItem.from_json(step.to_json()) == step
    await (await service.start(context, "and?", reset=False)).finish()
    assert {"role": "assistant", "content": text} in llm.prompts[-1]


@pytest.mark.parametrize("how", ["start", "prompt"])
async def test_steps_put_into_a_contexts_memory_before_a_run_reach_the_model_and_are_stored(context, storage, how):
    service, llm = make_service(storage, ["hello", *counting(1)])
    await service.prompt(context, "hi")
    context.memory.steps.append(TaskStep("watch it"))
    context.memory.steps.insert(0, ActionStep(70, observations="System was down"))
    if how == "start":
        run = await service.start(context, "how is it?")
        again = await AgentContext.get_or_create(storage, context.context_keys)
        assert [type(step) for step in again.memory.steps] == [ActionStep, TaskStep, TaskStep], "stored at once"
        run = await service.resume(again)
        await run.finish()
        assert again.task.task == "how is it?"
    else:
        await service.prompt(context, "how is it?")
    said = [(message["role"], message["content"]) for message in llm.prompts[1][1:]]
    assert said == [("user", "Observation: System was down"), ("user", "New task: watch it"), ("user", "how is it?")]
    kinds = [type(step).__name__ for step in (await context.load_memory()).steps]
    assert kinds[2:] == ["ActionStep", "TaskStep", "TaskStep", "ActionStep", "FinalAnswerStep"]


async def test_steps_put_in_before_the_first_prompt_and_kept_ones_come_before_the_question(context, storage):
    service, llm = make_service(storage, ["hello", "again"])
    context.memory.steps.append(ActionStep(70, observations="first"))
    await service.prompt(context, "hi")
    context.memory.steps.append(ActionStep(71, observations="second"))
    await (await service.start(context, "and?", reset=False)).finish()
    assert [message["content"] for message in llm.prompts[1][1:]] == [
        "Observation: first",
        "New task: hi",
        "hello",
        "Observation: second",
        "and?",
    ]


async def test_what_is_put_in_is_for_the_prompt_that_comes_not_for_one_that_was_cut_off(context, storage):
    service, llm = make_service(storage, [call("add", a=1, b=1), "old", "new"])
    run = await service.start(context, "old one")
    await run.step()
    await run.close()
    context.memory.steps.append(ActionStep(70, observations="news"))
    await service.prompt(context, "new one")
    assert ["news" in str(prompt) for prompt in llm.prompts] == [False, False, True]


async def test_what_a_run_could_not_store_is_not_taken_for_put_in(context, storage):
    service, llm = make_service(storage, [*[BROKEN] * 3, "ok"])
    with pytest.raises(LLMError):
        await service.prompt(context, "go")
    await service.prompt(context, "again")
    assert [message["content"] for message in llm.prompts[-1][1:]] == ["again"]
    kinds = [type(step).__name__ for step in (await context.load_memory()).steps]
    assert kinds == ["TaskStep", "FailedStep", "TaskStep", "FinalAnswerStep"]


async def test_the_memory_and_the_context_write_the_messages_that_the_run_writes(context, storage):
    service, _ = make_service(storage, counting(1), tools=[add])
    run = await service.start(context, "go")
    await run.finish()
    for summary_mode in (False, True):
        written = run.write_memory_to_messages(summary_mode)
        assert written == context.write_memory_to_messages(summary_mode)
        assert written == (await context.load_memory()).write_memory_to_messages(summary_mode=summary_mode)
    assert written[0] == {"role": "user", "content": "New task: go"}


async def test_full_steps_say_duration_and_total_tokens(context, storage):
    service, _ = make_service(storage, counting(1))
    await service.prompt(context, "go")
    full = context.memory.get_full_steps()
    for step, record in zip(context.memory.steps[1:], full[1:], strict=True):
        assert record["timing"]["duration"] == step.timing.duration_seconds
        assert record["token_usage"]["total_tokens"] == step.token_usage.total_tokens > 0
