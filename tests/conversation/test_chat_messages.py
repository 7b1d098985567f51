import json
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from botservice.conversation.chat_messages import INTERRUPTED, step_messages
from botservice.conversation.field_values import StepError, ToolResult
from botservice.conversation.items import MemoryItem
from botservice.conversation.steps import ActionStep, FinalAnswerStep, PlanningStep, SystemPromptStep, TaskStep
from botservice.core.messages import Attachment, ToolCall
from tests.conversation.strategies import names, steps, values

IMAGE = Attachment("image/png", data=b"x")
IMAGE_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,eA=="}}
ADD, SUB = ToolCall("c1", "add", {"a": 1}), ToolCall("c2", "sub", {})
FIVE, ONE = ToolResult("c1", "5"), ToolResult("c2", "1")


def results(step, **options):
    return [each["content"] for each in step_messages(step, **options) if each["role"] == "tool"]


def test_a_call_is_followed_by_its_result():
    step = ActionStep(1, tool_calls=[ADD], tool_results=[FIVE], observations="5", model_output="I add.")
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
    assert step_messages(step) == [
        {"role": "assistant", "content": "I add.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "5"},
    ]


def test_several_calls_have_one_result_each_in_call_order():
    step = ActionStep(1, tool_calls=[ADD, SUB], tool_results=[ONE, FIVE], observations="1\n5")
    assert results(step) == ["5", "1"]
    assert step_messages(step)[0]["content"] is None


def test_a_rewritten_observation_stands_as_the_last_calls_result():
    step = ActionStep(1, tool_calls=[ADD, SUB], tool_results=[FIVE, ONE], observations="5\n1")
    step.observations = f"{step.observations}\nALERT"
    assert results(step) == ["5", "5\n1\nALERT"]
    step.observations = ""
    assert results(step) == ["5", ""]
    step.observations = None
    assert results(step) == ["5", "1"]


def test_a_single_call_shows_the_observation():
    assert results(ActionStep(1, tool_calls=[ADD], observations="by hand")) == ["by hand"]
    assert results(ActionStep(1, tool_calls=[ADD], observations="")) == [""]
    assert results(ActionStep(1, tool_calls=[ADD], tool_results=[FIVE], observations="7")) == ["7"]


def test_a_call_without_result_was_interrupted():
    assert results(ActionStep(1, tool_calls=[ADD, SUB], tool_results=[FIVE], observations="5")) == ["5", INTERRUPTED]
    assert results(ActionStep(1, tool_calls=[ADD])) == [INTERRUPTED]


def test_an_observation_by_hand_without_results_is_told_once():
    first, last = results(ActionStep(1, tool_calls=[ADD, SUB], observations="both"))
    assert last == "both"
    assert first != INTERRUPTED
    assert "last call" in first


def test_an_error_without_observation_is_shown_as_result():
    error = StepError("ValueError", "boom")
    assert results(ActionStep(1, tool_calls=[ADD], error=error)) == ["Error: ValueError: boom"]
    assert results(ActionStep(1, tool_calls=[ADD], error=error, observations="failed")) == ["failed"]
    assert step_messages(ActionStep(1, error=error)) == [{"role": "user", "content": "Error: ValueError: boom"}]
    assert "boom" in step_messages(ActionStep(1, error={"type": "x", "message": "boom"}))[0]["content"]


def test_images_follow_the_results_as_one_user_message():
    linked = Attachment("image/jpeg", url="https://example.org/a.jpg")
    step = ActionStep(1, tool_calls=[ADD], tool_results=[FIVE], observations="5", observations_images=[IMAGE, linked])
    content = [IMAGE_PART, {"type": "image_url", "image_url": {"url": "https://example.org/a.jpg"}}]
    assert step_messages(step)[-1] == {"role": "user", "content": content}
    assert len(step_messages(step)) == 3


def test_a_step_without_calls_is_said_and_observed():
    step = ActionStep(1, model_output="hm", observations="System was down", observations_images=[IMAGE])
    assert step_messages(step) == [
        {"role": "assistant", "content": "hm"},
        {"role": "user", "content": "Observation: System was down"},
        {"role": "user", "content": [IMAGE_PART]},
    ]
    assert step_messages(ActionStep(1)) == []


def test_the_other_steps_are_messages_of_their_role():
    assert step_messages(TaskStep("add")) == [{"role": "user", "content": "New task: add"}]
    carry_out = {"role": "user", "content": "Now go on, and carry out this plan."}
    assert step_messages(PlanningStep("first")) == [{"role": "assistant", "content": "first"}, carry_out]
    assert step_messages(SystemPromptStep("You are")) == [{"role": "system", "content": "You are"}]
    assert step_messages(FinalAnswerStep("5")) == [{"role": "assistant", "content": "5"}]
    assert step_messages(FinalAnswerStep({"sum": 5})) == [{"role": "assistant", "content": '{"sum": 5}'}]
    assert step_messages(FinalAnswerStep(None)) == []
    assert step_messages(MemoryItem(a=1)) == []


def test_a_tasks_images_are_parts_of_its_message():
    content = step_messages(TaskStep("what is it?", task_images=[IMAGE]))[0]["content"]
    assert content == [{"type": "text", "text": "New task: what is it?"}, IMAGE_PART]


def test_summary_mode_leaves_out_what_was_told_and_thought():
    step = ActionStep(1, model_output="I add.", tool_calls=[ADD], tool_results=[FIVE], observations="5")
    assert step_messages(step, summary_mode=True)[0]["content"] is None
    assert results(step, summary_mode=True) == ["5"]
    assert step_messages(PlanningStep("x"), summary_mode=True) == []
    assert step_messages(SystemPromptStep("x"), summary_mode=True) == []
    assert step_messages(ActionStep(1, model_output="x"), summary_mode=True) == []
    assert len(step_messages(TaskStep("x"), summary_mode=True)) == 1


def test_ids_are_unique_within_a_step_and_match_their_results():
    calls = [ToolCall("x", "a"), ToolCall("x", "b"), ToolCall("x-2", "c"), ToolCall("", "d")]
    done = [ToolResult("x", "1"), ToolResult("x", "2"), ToolResult("x-2", "3"), ToolResult("", "4")]
    messages = step_messages(ActionStep(1, tool_calls=calls, tool_results=done, observations="1\n2\n3\n4"))
    ids = [call["id"] for call in messages[0]["tool_calls"]]
    assert ids == ["x", "x-3", "x-2", "call"]
    assert [message["tool_call_id"] for message in messages[1:]] == ids
    assert [message["content"] for message in messages[1:]] == ["1", "2", "3", "4"]


def test_malformed_arguments_become_an_empty_object():
    step = ActionStep(1, tool_calls=[ToolCall("1", "add", malformed_arguments="{a:")], observations="no JSON")
    assert step_messages(step)[0]["tool_calls"][0]["function"]["arguments"] == "{}"


def test_arguments_are_the_models_own_and_strict_json():
    arguments = {"$match": {"größe": 1}, "n": float("nan"), "big": 10**5000, "\ud800": "\ud800"}
    step = ActionStep(1, tool_calls=[ToolCall("1", "find it!", arguments)], observations="x")
    function = step_messages(step)[0]["tool_calls"][0]["function"]
    assert function["name"] == "find_it_"
    assert "größe" in function["arguments"]
    read = json.loads(function["arguments"], parse_constant=pytest.fail)
    assert read["$match"] == {"größe": 1}
    assert read["n"] == "nan"


def test_chosen_fields_are_notes_and_others_are_not_shown():
    step = ActionStep(1, observations="x", alert="disk", at=datetime(2025, 1, 1, tzinfo=UTC), secret="s", none=None)
    messages = step_messages(step, memory_keys=("alert", "at", "none", "missing"))
    assert messages[-1] == {"role": "user", "content": 'Notes: {"alert": "disk", "at": "2025-01-01T00:00:00+00:00"}'}
    assert "secret" not in str(messages)
    assert len(step_messages(step, memory_keys=("missing",))) == len(step_messages(step)) == 1
    assert step_messages(MemoryItem(a=1), memory_keys=["a"]) == [{"role": "user", "content": 'Notes: {"a": 1}'}]


@given(steps, st.booleans(), st.lists(names, max_size=2))
def test_every_step_gives_messages_that_can_be_sent(step, summary_mode, keys):
    before = step.to_json()
    messages = step_messages(step, summary_mode=summary_mode, memory_keys=keys)
    json.dumps(messages, ensure_ascii=False, allow_nan=False).encode()
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            assert message["tool_call_id"] == waiting.pop(0)
            continue
        assert not waiting
        waiting = [call["id"] for call in message.get("tool_calls", [])]
        assert len(set(waiting)) == len(waiting)
        for call in message.get("tool_calls", []):
            assert isinstance(json.loads(call["function"]["arguments"]), dict)
    assert not waiting
    assert step.to_json() == before


@given(
    st.dictionaries(
        st.sampled_from(
            [
                "timing",
                "model_input_messages",
                "tool_calls",
                "error",
                "model_output",
                "observations",
                "token_usage",
                "tool_results",
                "is_final_answer",
                "step_number",
            ]
        ),
        values,
    )
)
def test_whatever_a_callback_writes_the_next_prompt_can_be_built(fields):
    step = ActionStep(1)
    step.set_values_from_dict(fields)
    json.dumps(step_messages(step), ensure_ascii=False, allow_nan=False).encode()
