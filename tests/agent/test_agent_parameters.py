"""What people of other agent libraries hand to an agent: a name, callbacks, limits, a task put into memory by hand."""

import pytest

from botservice import (
    ActionStep,
    AgentContext,
    AgentService,
    FinalAnswerStep,
    FunctionsBasedAgent,
    MemoryStep,
    ScriptedChatLLM,
    TaskStep,
    TokenWindowMessageSelector,
    ToolCall,
    tool,
)
from botservice.agent.agent import Action, FinishAction
from botservice.config.settings import Settings
from botservice.core.errors import InvalidArgument, InvalidTool
from botservice.factories import build_service, govern

pytestmark = pytest.mark.any_database


@tool
async def count(n: int) -> int:
    """Count."""
    return n


CALL = ToolCall("", "count", {"n": 1})


def agent_of(*replies, **options):
    return FunctionsBasedAgent(tools=[count], llm=ScriptedChatLLM(list(replies)), **options)


async def test_callbacks_of_the_agent_run_before_those_of_the_service(context, storage):
    seen = []
    agent = agent_of(
        CALL, "done", step_callbacks={MemoryStep: lambda step: seen.append(f"agent {type(step).__name__}")}
    )
    callbacks = {
        ActionStep: lambda step: seen.append("service ActionStep"),
        FinalAnswerStep: lambda step: seen.append("service FinalAnswerStep"),
    }
    await AgentService(agent, storage, step_callbacks=callbacks).prompt(context, "go")
    assert seen == [
        "agent TaskStep",
        "agent ActionStep",
        "service ActionStep",
        "agent FinalAnswerStep",
        "service FinalAnswerStep",
    ]


@pytest.mark.parametrize(("of_service", "of_agent", "taken"), [(None, 1, 1), (2, 1, 2), (0, 1, 0), (None, None, 10)])
async def test_steps_are_limited_by_the_service_then_the_agent(context, storage, of_service, of_agent, taken):
    agent = agent_of(*[CALL] * taken, "done", max_steps=of_agent)
    await AgentService(agent, storage, max_steps=of_service).prompt(context, "go")
    assert len([step for step in context.completed_steps if step.tool_calls]) == taken


@pytest.mark.parametrize(("of_service", "of_agent", "expected"), [(None, None, 4), (None, 3, 3), (2, 3, 2)])
def test_a_served_service_takes_the_limit_of_the_settings_last(of_service, of_agent, expected):
    service = AgentService(agent_of("done", max_steps=of_agent), max_steps=of_service)
    settings = Settings(max_steps=4, _env_file=None)
    govern(settings, service)
    assert service.options.max_steps == expected
    built = build_service(settings)
    govern(settings, built)
    assert built.options.max_steps == 4


def test_a_limit_below_zero_and_an_unknown_verbosity_are_refused():
    with pytest.raises(ValueError, match="max_steps must be 0 or more"):
        agent_of(max_steps=-1)
    with pytest.raises(ValueError, match="verbosity_level must be 0, 1 or 2"):
        agent_of(verbosity_level=3)


async def test_an_agent_with_a_name_is_a_tool_as_it_is(context, storage):
    below = agent_of(CALL, "42", name="compute", description="Computes what it is asked.")
    above = FunctionsBasedAgent(
        tools=[below], llm=ScriptedChatLLM([ToolCall("", "compute", {"task": "6 x 7"}), "It is 42."])
    )
    assert above.tools["compute"].description == "Computes what it is asked."
    assert (await AgentService(above, storage).prompt(context, "6 x 7?")).text == "It is 42."
    assert context.completed_steps[0].observations == "42"
    assert below.as_tool("other").name == "other"
    with pytest.raises(InvalidTool, match="needs a name and a description"):
        FunctionsBasedAgent(tools=[agent_of("42")], llm=ScriptedChatLLM([]))


@pytest.mark.parametrize(
    ("level", "shown", "hidden"),
    [
        (0, (), ("-- Task", "count")),
        (1, ("-- Task", "-- Step 1", "count", "-- Answer", "done"), ("You are",)),
        (2, ("-- Step 1", "You are a counter."), ()),
    ],
)
async def test_steps_are_shown_as_they_happen(context, storage, capsys, level, shown, hidden):
    agent = agent_of(CALL, "done", verbosity_level=level, prompt="You are a counter.")
    run = await AgentService(agent, storage).start(context, "go")
    await run.step()
    first = capsys.readouterr().err
    await run.finish()
    printed = first + capsys.readouterr().err
    assert all(each in printed for each in shown)
    assert not any(each in printed for each in hidden)
    assert ("-- Step 1" in first) is (level > 0)


async def test_a_task_put_into_memory_is_what_a_run_begins_with(context, storage):
    context.memory.steps.append(TaskStep(task="Count to one."))
    agent = agent_of(CALL, "done")
    service = AgentService(agent, storage)
    run = await service.start(context)
    assert [type(step) for step in context.memory.steps] == [TaskStep]
    await run.step()
    await run.finish()
    asked = [message for message in agent.llm.prompts[0] if "Count to one." in str(message["content"])]
    assert len(asked) == 1
    assert [message.text for message in await context.chat_history.messages()] == ["Count to one.", "done"]
    loaded = await AgentContext.load(storage, context.id)
    assert [type(step) for step in loaded.memory.steps] == [TaskStep, ActionStep, FinalAnswerStep]
    assert [step.step_number for step in loaded.completed_steps] == [1]


async def test_a_task_given_again_stands_once(context, storage):
    context.memory.steps.append(TaskStep(task="Count."))
    agent = agent_of("done")
    await (await AgentService(agent, storage).start(context, "Count.")).finish()
    assert [step.task for step in context.memory.steps if isinstance(step, TaskStep)] == ["Count."]
    assert str(agent.llm.prompts[0]).count("Count.") == 1


async def test_steps_put_in_behind_a_task_are_work_on_it(context, storage):
    done = ActionStep(1, model_output="I have counted to three.")
    context.memory.steps += [TaskStep(task="Count."), done]
    agent = agent_of("done")
    run = await AgentService(agent, storage).start(context)
    assert context.completed_steps == [done]
    await run.finish()
    assert agent.llm.prompts[0][-1]["content"] == "I have counted to three."
    resumed = await AgentContext.load(storage, context.id)
    assert [step.model_output for step in resumed.completed_steps] == ["I have counted to three."]


async def test_a_run_without_a_task_says_what_to_do(context, storage):
    with pytest.raises(InvalidArgument, match="put a TaskStep into"):
        await AgentService(agent_of("done"), storage).start(context)


async def test_memory_knows_the_system_prompt_once_an_agent_has_the_context(context, storage):
    agent = agent_of("done", prompt="You are a counter.")
    assert context.memory.system_prompt.system_prompt == ""
    await agent.build_prompt(context)
    assert context.memory.system_prompt.system_prompt == "You are a counter."
    fresh = await AgentContext.get_or_create(storage, {"chat_id": "other"})
    await AgentService(agent, storage).start(fresh, "go")
    assert fresh.memory.system_prompt.system_prompt == "You are a counter."


class GuideAgent(FunctionsBasedAgent):
    async def next_action(self, context):
        question = context.chat_history.last_user_message
        messages = [{"role": "system", "content": self.prompt}]
        found = [hit.message for hit in await context.chat_history.search(question.text, k=3)]
        window = await context.chat_history.select_messages(self.message_selector)
        shown = {message.id: message for message in [*found, *window] if message.id != question.id}
        messages += [{"role": message.role.value, "content": message.text} for message in shown.values()]
        messages.append({"role": "user", "content": question.text})
        for step in context.completed_steps:
            messages += step.to_chat_messages()
        response = await self.llm.chat(messages, [each.schema for each in self.tools.values()])
        return Action(response.tool_calls) if response.tool_calls else FinishAction(response.text)


async def test_a_next_action_as_the_guide_has_it_shows_the_question_once(context, storage):
    agent = GuideAgent(
        tools=[count],
        llm=ScriptedChatLLM(["Noted.", CALL, "One."]),
        message_selector=TokenWindowMessageSelector(max_tokens=1000),
        prompt="You are a counter.",
    )
    service = AgentService(agent, storage)
    await service.prompt(context, "My number is one.")
    assert (await service.prompt(context, "What is my number?")).text == "One."
    last = agent.llm.prompts[-1]
    assert [message["role"] for message in last] == ["system", "user", "assistant", "user", "assistant", "tool"]
    assert [message["content"] for message in last[:4]] == [
        "You are a counter.",
        "My number is one.",
        "Noted.",
        "What is my number?",
    ]
    assert last[4]["tool_calls"][0]["function"]["name"] == "count"
