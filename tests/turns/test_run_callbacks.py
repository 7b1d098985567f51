import json

import pytest

from botservice import (
    ActionStep,
    AgentContext,
    Attachment,
    FinalAnswerStep,
    InvalidField,
    MemoryStep,
    PlanningStep,
    TaskStep,
    forget_old_images,
    tool,
)
from tests.turns.bots import call, counting, make_service, without_ids

pytestmark = pytest.mark.any_database


async def test_a_list_is_called_for_action_steps_after_they_are_stored(context, storage):
    seen = []

    async def look(step):
        seen.append((step, (await context.load_memory()).steps[-1]))

    service, _ = make_service(storage, counting(2), callbacks=[look])
    await service.prompt(context, "go")
    assert [type(step) for step, _ in seen] == [ActionStep] * 2
    assert all(step == stored for step, stored in seen)


async def test_a_dict_is_called_for_every_kind_of_step_most_specific_class_first(context, storage):
    seen = []
    callbacks = {
        MemoryStep: lambda step: seen.append("any"),
        ActionStep: [lambda step: seen.append("action 1"), lambda step, agent: seen.append("action 2")],
        TaskStep: lambda step: seen.append(f"task {step.task}"),
        PlanningStep: lambda step: seen.append("plan"),
        FinalAnswerStep: lambda step, agent: seen.append(f"answer {agent.answer.text}"),
    }
    script = ["a plan", *counting(1, "ok")]
    service, _ = make_service(storage, script, callbacks=callbacks, planning_interval=5)
    await service.prompt(context, "go")
    assert seen == ["task go", "any", "plan", "any", "action 1", "action 2", "any", "answer ok", "any"]


async def test_a_callback_gets_the_run_with_its_memory_and_its_context(context, storage):
    seen = []

    def look(step, agent):
        seen.append((agent.memory is agent.context.memory, agent.context is context, agent.memory.steps[-1] is step))

    service, _ = make_service(storage, counting(1), callbacks=[look])
    run = await service.start(context, "go")
    assert run.memory is context.memory
    await run.finish()
    assert seen == [(True, True, True)]


async def test_what_a_callback_changes_is_stored_and_is_what_the_next_prompt_sees(context, storage):
    def change(step, agent):
        step.observations = f"{step.observations} ALERT"
        for earlier in agent.memory.steps[1:-1]:
            earlier.observations = "forgotten"
            earlier.mood = "calm"

    service, llm = make_service(storage, counting(3), callbacks=[change])
    await service.prompt(context, "go")
    assert without_ids(llm.prompts[1])[-1] == ("tool", "2 ALERT")
    assert [text for _, text in without_ids(llm.prompts[3])[3::2]] == ["forgotten", "forgotten", "4 ALERT"]
    stored = (await context.load_memory()).steps
    assert [step.observations for step in stored[1:4]] == ["forgotten", "forgotten", "4 ALERT"]
    assert stored[1].mood == "calm"
    assert [step.model_input_messages for step in stored[1:]] == llm.prompts


async def test_an_edited_observation_stands_as_the_last_calls_result(context, storage):
    def change(step):
        step.observations = "both are fine"

    service, llm = make_service(storage, [[call("add", a=1, b=1), call("add", a=2, b=2)], "ok"], callbacks=[change])
    await service.prompt(context, "go")
    assert [text for _, text in without_ids(llm.prompts[1])[3:]] == ["2", "both are fine"]


@pytest.mark.parametrize("error", [ValueError("oh"), KeyError])
async def test_one_that_raises_is_recorded_and_loses_nothing(context, storage, error, caplog):
    called = []

    def broken(step):
        step.before = "kept"
        raise error

    service, _ = make_service(storage, counting(2), callbacks=[broken, called.append])
    assert (await service.prompt(context, "go")).text == "done"
    assert len(called) == 2
    stored = (await context.load_memory()).steps[1]
    [failure] = stored.callback_errors
    assert failure.callback.endswith("broken")
    assert failure.type == (error if isinstance(error, type) else type(error)).__name__
    assert stored.before == "kept"
    assert "step_callback_failed" in caplog.text


async def test_what_is_no_step_is_taken_out_again_and_recorded(context, storage):
    def put(step, agent):
        agent.memory.steps.append("not a step")
        step.kept = "yes"

    service, _ = make_service(storage, counting(1), callbacks=[put])
    assert (await service.prompt(context, "go")).text == "done"
    stored = (await context.load_memory()).steps
    assert stored == context.memory.steps
    assert stored[1].kept == "yes"
    assert stored[1].callback_errors[0].type == "InvalidField"


async def test_what_is_no_step_is_refused_at_the_next_step(context, storage):
    service, _ = make_service(storage, counting(1))
    run = await service.start(context, "go")
    run.memory.steps.append("not a step")
    with pytest.raises(InvalidField):
        await run.step()
    run.memory.steps.pop()
    assert (await run.finish()).text == "done"


async def test_a_change_in_place_fails_loudly(context, storage):
    def change(step):
        step.tool_calls[0].arguments["a"] = 5

    service, _ = make_service(storage, counting(1), callbacks=[change])
    await service.prompt(context, "go")
    assert context.completed_steps[0].callback_errors[0].type == "TypeError"


async def test_a_callback_may_inject_steps_and_change_the_metadata(context, storage):
    def inject(step, agent):
        agent.context.metadata["steps"] = step.step_number
        agent.memory.steps.append(ActionStep(50, observations="by the way"))

    service, llm = make_service(storage, counting(1), callbacks=[inject])
    await service.prompt(context, "go")
    assert without_ids(llm.prompts[1])[-1] == ("user", "Observation: by the way")
    again = await AgentContext.get_or_create(storage, context.context_keys)
    assert again.metadata == {"steps": 1}
    assert again.memory.steps == context.memory.steps


async def test_images_older_than_the_newest_two_leave_the_prompt_and_not_the_record(context, storage):
    @tool
    async def look(number: int) -> Attachment:
        """Look."""
        return Attachment("image/png", data=f"image {number}".encode())

    script = [*(call("look", number=number) for number in range(4)), "ok"]
    service, llm = make_service(storage, script, tools=[look], callbacks=[forget_old_images])
    await service.prompt(context, "go")
    counts = [json.dumps(prompt).count("data:image/png") for prompt in llm.prompts]
    assert counts == [0, 1, 2, 2, 2]
    stored = (await context.load_memory()).steps
    assert [step.observations_images is None for step in stored[1:5]] == [True, True, False, False]
    assert [step.model_input_messages for step in stored[1:]] == llm.prompts


async def test_a_callback_of_the_wrong_form_is_refused_at_once(sqlite_storage):
    with pytest.raises(InvalidField, match="must take"):
        make_service(sqlite_storage, [], callbacks=[lambda: None])


async def test_a_reminder_of_the_task_may_be_changed_without_losing_the_question(context, storage):
    service, llm = make_service(storage, counting(1), callbacks={TaskStep: lambda step: step.set_value("mood", "calm")})
    await service.prompt(context, "go")
    assert (await context.load_memory()).steps[0].mood == "calm"
    assert without_ids(llm.prompts[0])[-1] == ("user", "go")
