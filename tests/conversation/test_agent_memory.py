import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botservice.conversation.agent_memory import AgentMemory, Memory, completed_steps
from botservice.conversation.field_values import StepError, Timing
from botservice.conversation.items import MemoryItem
from botservice.conversation.steps import ActionStep, FinalAnswerStep, PlanningStep, SystemPromptStep, TaskStep
from botservice.core.errors import InvalidField
from botservice.core.messages import TokenUsage, ToolCall
from tests.conversation.strategies import items, steps, texts


@pytest.fixture
def memory():
    memory = AgentMemory("You are helpful.")
    memory.steps += [
        TaskStep("first"),
        ActionStep(1, observations="a"),
        FinalAnswerStep("one"),
        TaskStep("second"),
        PlanningStep("plan"),
        ActionStep(1, observations="b", model_input_messages=[{"role": "user", "content": "hi"}]),
        ActionStep(2),
    ]
    return memory


def test_the_system_prompt_is_a_step_and_may_be_assigned_as_text():
    memory = AgentMemory("a")
    assert memory.system_prompt == SystemPromptStep("a")
    memory.system_prompt = "b"
    assert memory.system_prompt.system_prompt == "b"
    assert AgentMemory(SystemPromptStep("c")).system_prompt == SystemPromptStep("c")


def test_steps_and_content_are_one_list_for_life(memory):
    held = memory.steps
    assert memory.content is held
    memory.add_memory_item(FinalAnswerStep("x"))
    assert held[-1] == FinalAnswerStep("x")
    memory.steps = memory.steps[:2]
    assert len(held) == 2
    memory.reset()
    assert held == []
    assert memory.steps is held
    assert memory.system_prompt == SystemPromptStep("You are helpful.")


def test_steps_are_edited_and_injected_like_a_list(memory):
    memory.steps.insert(4, ActionStep(0, observations="System was down for 2 hours yesterday"))
    del memory.steps[0]
    memory.steps[-1].observations = "edited"
    assert [step.step for step in completed_steps(memory)] == [0, 1, 2]
    assert completed_steps(memory)[-1].observations == "edited"


def test_full_steps_have_every_declared_field_and_succinct_ones_no_model_input(memory):
    full, succinct = memory.get_full_steps(), memory.get_succinct_steps()
    assert full[5]["model_input_messages"] == [{"role": "user", "content": "hi"}]
    assert full[5]["error"] is None
    assert full[5]["is_final_answer"] is False
    assert all("model_input_messages" not in step for step in succinct)
    assert succinct[5]["observations"] == "b"
    json.dumps(full, allow_nan=False)
    assert AgentMemory().get_full_steps() == []


def test_full_steps_are_plain_dictionaries_without_marks_of_types():
    began = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    step = ActionStep(
        1,
        timing=Timing(began, began + timedelta(seconds=1.5)),
        token_usage=TokenUsage(10, 5, cached_tokens=3),
        tool_calls=[ToolCall("c1", "add", {"a": 1, "at": "now"})],
        error=StepError("ValueError", "boom"),
        seen_at=began,
        raw=b"ab",
        odd=float("nan"),
        kind="mine",
    )
    [full] = AgentMemory("You are", [step]).get_full_steps()
    assert full["timing"] == {"start_time": 1767323045.0, "end_time": 1767323046.5, "duration": 1.5}
    assert full["token_usage"]["total_tokens"] == 15
    assert full["token_usage"]["input_tokens"] == 10
    assert full["tool_calls"][0]["name"] == "add"
    assert full["tool_calls"][0]["arguments"] == {"a": 1, "at": "now"}
    assert full["error"] == {"type": "ValueError", "message": "boom"}
    assert (full["seen_at"], full["raw"], full["odd"]) == ("2026-01-02T03:04:05+00:00", "YWI=", "nan")
    assert (full["kind"], full["$kind"]) == ("action", "mine")
    assert AgentMemory("", [ActionStep(1, timing=Timing(began))]).get_full_steps()[0]["timing"]["end_time"] is None


def test_completed_steps_are_the_actions_after_the_last_task(memory):
    assert completed_steps(memory) == memory.steps[5:]
    memory.steps.append(TaskStep("third"))
    assert completed_steps(memory) == []
    assert completed_steps(AgentMemory()) == []
    memory.steps.append(None)
    memory.steps.append(ActionStep(1))
    assert completed_steps(memory) == [ActionStep(1)]


@given(texts, st.lists(items | steps, max_size=4))
def test_json_is_an_exact_inverse(prompt, content):
    memory = AgentMemory(prompt, content)
    again = AgentMemory.from_json(memory.to_json())
    assert again == memory
    assert again.to_json() == memory.to_json()
    assert again.system_prompt == memory.system_prompt
    assert [type(item) for item in again.steps] == [type(item) for item in content]


def test_memories_are_compared_with_their_system_prompt(memory):
    assert AgentMemory("a") != AgentMemory("b")
    assert AgentMemory("a") == AgentMemory("a")
    assert AgentMemory("a") != Memory()
    assert Memory() != AgentMemory("a")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "3",
        "[]",
        "{}",
        '{"version": 2, "system_prompt": {"system_prompt": "x"}, "steps": []}',
        '{"version": 1, "system_prompt": "x", "steps": []}',
        '{"version": 1, "system_prompt": {"system_prompt": "x"}, "steps": {"a": 1}}',
        '{"version": 1, "system_prompt": {"system_prompt": "x"}, "steps": [1]}',
        '{"version": 1, "system_prompt": {"kind": "task", "version": 1, "task": "x"}, "steps": []}',
    ],
)
def test_other_json_is_refused_clearly(text):
    with pytest.raises(InvalidField):
        AgentMemory.from_json(text)


def test_an_unknown_kind_among_the_steps_is_kept():
    text = AgentMemory("x", [MemoryItem.from_dict({"kind": "dream", "version": 9, "a": 1})]).to_json()
    assert AgentMemory.from_json(text).to_json() == text
