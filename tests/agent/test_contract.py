"""The contract's examples, word for word where that is possible."""

import pytest
from standins.tools import add

from botservice import (
    ActionStep,
    AgentContext,
    AgentService,
    FinalAnswerStep,
    FunctionsBasedAgent,
    MessageWindowMessageSelector,
    Role,
    ScriptedChatLLM,
    TaskStep,
    TokenWindowMessageSelector,
    ToolCall,
)

pytestmark = pytest.mark.any_database


async def test_the_history_of_the_contracts_example(storage):
    context = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": "42"})
    history = context.chat_history
    message = await history.append_user_message("My dog is called Rex", author="alice")
    await history.append_assistant_message("Nice name!")
    assert history.last_user_message == message
    assert [each.text for each in await history.messages()] == ["My dog is called Rex", "Nice name!"]
    assert [each.text for each in await history.messages(limit=1)] == ["Nice name!"]
    assert len(await history.select_messages(TokenWindowMessageSelector(max_tokens=2000))) == 2
    hits = await history.search("what is my pet called?", k=3)
    assert hits[0].message == message
    assert history.is_searchable()
    await history.delete_messages([message.id])
    assert [each.text for each in await history.messages()] == ["Nice name!"]
    await history.clear()
    assert await history.messages() == []


async def test_the_agent_of_the_contracts_example(storage):
    context = await AgentContext.get_or_create(storage, {"transport": "telegram", "chat_id": "42"})
    logged = []
    llm = ScriptedChatLLM(
        [ToolCall("1", "add", {"a": 2, "b": 3}), "It is 5", ToolCall("2", "add", {"a": 1, "b": 1}), "2"]
    )
    agent = FunctionsBasedAgent(
        tools=[add],
        llm=llm,
        message_selector=TokenWindowMessageSelector(max_tokens=4000),
        search_k=3,
        prompt="You are a calculator",
        planning_interval=None,
        memory_keys=(),
    )
    service = AgentService(agent=agent, storage=storage, max_steps=10, step_callbacks=[logged.append])
    answer = await service.prompt(context, "What is 2 + 3?")
    assert answer.text == "It is 5"
    assert answer.role is Role.ASSISTANT
    run = await service.start(context, "What is 1 + 1?")
    steps = []
    while run.answer is None:
        steps.append(await run.step())
    assert [type(step) for step in steps] == [ActionStep, FinalAnswerStep]
    assert run.answer.text == "2"
    assert await service.resume(context) is None
    assert [step.step_number for step in logged] == [1, 2]
    assert [message.text for message in await context.chat_history.messages()] == [
        "What is 2 + 3?",
        "It is 5",
        "What is 1 + 1?",
        "2",
    ]
    assert [type(step) for step in (await context.load_memory()).steps] == [TaskStep, ActionStep, FinalAnswerStep] * 2


async def test_a_prompt_has_its_parts_in_the_contracts_order(context, storage):
    history = context.chat_history
    await history.append_user_message("My dog is called Rex", author="alice")
    await history.append_assistant_message("Nice name!")
    llm = ScriptedChatLLM(["Fine weather.", ToolCall("1", "add", {"a": 2, "b": 3}), "Rex!"])
    agent = FunctionsBasedAgent(
        tools=[add], llm=llm, search_k=1, prompt="You are X", message_selector=MessageWindowMessageSelector(2)
    )
    service = AgentService(agent=agent, storage=storage)
    await service.prompt(context, "how is the weather?")
    await service.prompt(context, "what is my dog called?")
    first, second = llm.prompts[1:]
    assert [message["role"] for message in first] == ["system", "user", "assistant", "user", "user"]
    assert [message["content"] for message in first[1:3]] == ["how is the weather?", "Fine weather."]
    assert "alice: My dog is called Rex" in first[3]["content"]
    assert first[4]["content"] == "what is my dog called?"
    assert second[:5] == first
    assert second[5]["tool_calls"][0]["function"] == {"name": "add", "arguments": '{"a": 2, "b": 3}'}
    assert second[6] == {"role": "tool", "tool_call_id": "1", "content": "5"}


async def test_next_action_changes_nothing(context):
    llm = ScriptedChatLLM([ToolCall("1", "add", {"a": 2, "b": 3}), "five"])
    agent = FunctionsBasedAgent(tools=[add], llm=llm)
    await context.chat_history.append_user_message("What is 2 + 3?")
    action = await agent.next_action(context)
    assert [call.name for call in action.tool_calls] == ["add"]
    assert context.memory.is_empty()
    finish = await agent.next_action(context)
    assert finish.output == "five"
    assert llm.prompts[0] == llm.prompts[1] == await agent.build_prompt(context)
    assert len(await context.chat_history.messages()) == 1


async def test_completed_steps_are_empty_at_each_new_prompt(context, storage):
    llm = ScriptedChatLLM([ToolCall("", "add", {"a": 2, "b": 3}), "5", "hello"])
    service = AgentService(agent=FunctionsBasedAgent(tools=[add], llm=llm), storage=storage)
    await service.prompt(context, "What is 2 + 3?")
    assert [step.observations for step in context.completed_steps] == ["5"]
    run = await service.start(context, "hi")
    assert context.completed_steps == []
    assert run.memory is context.memory
    with pytest.raises(AttributeError):
        context.completed_steps = []
    await run.finish()
