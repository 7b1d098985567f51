import copy
import json
import pickle
from datetime import UTC, datetime
from typing import ClassVar

import pytest
from hypothesis import given

from botservice.conversation.field_values import StepError, Timing, ToolResult
from botservice.conversation.items import MemoryItem, revision_of
from botservice.conversation.steps import (
    ActionStep,
    FinalAnswerStep,
    MemoryStep,
    PlanningStep,
    SystemPromptStep,
    TaskStep,
    UnknownStep,
)
from botservice.core.errors import InvalidField
from botservice.core.messages import Attachment, TokenUsage, ToolCall
from tests.conversation.strategies import steps

IMAGE = Attachment("image/png", "cat.png", data=b"\x89PNG")


class Check(MemoryStep):
    url: str
    status: int = 200
    tags: list = []  # noqa: RUF012 - frozen by the class
    note: str
    limit: ClassVar[int] = 5

    def is_healthy(self):
        return self.status < 400


class NamedCheck(Check, kind="test-check", version=2):
    pass


def full_action():
    return ActionStep(
        3,
        timing=Timing(datetime(2025, 1, 1, tzinfo=UTC)),
        model_input_messages=[{"role": "user", "content": "hi"}],
        tool_calls=[ToolCall("c1", "add", {"a": 1})],
        error=StepError("ValueError", "boom"),
        model_output="thinking",
        observations="5",
        observations_images=[IMAGE],
        action_output={"sum": 5},
        token_usage=TokenUsage(1, 2),
        is_final_answer=True,
        tool_results=[ToolResult("c1", "5", duration_seconds=0.1)],
        alert="free",
    )


def test_each_step_takes_its_first_field_by_position_and_by_name():
    assert SystemPromptStep("x") == SystemPromptStep(system_prompt="x")
    assert TaskStep("x") == TaskStep(task="x")
    assert PlanningStep("x") == PlanningStep(plan="x")
    assert ActionStep(1) == ActionStep(step_number=1)
    assert FinalAnswerStep(None) == FinalAnswerStep(output=None)


@pytest.mark.parametrize("cls", [SystemPromptStep, TaskStep, PlanningStep, ActionStep, FinalAnswerStep, Check])
def test_the_first_field_is_required_and_the_only_one_by_position(cls):
    with pytest.raises(InvalidField, match="needs its field"):
        cls()
    with pytest.raises(InvalidField, match="position"):
        cls(1, 2)
    step = cls("x")
    with pytest.raises(InvalidField, match="required"):
        delattr(step, step.attributes[0])


def test_unset_fields_read_as_none_and_are_not_attributes():
    step = ActionStep(1)
    for name in ("timing", "tool_calls", "error", "observations", "model_input_messages", "tool_results"):
        assert getattr(step, name) is None
        assert step.get_value(name) is None
    assert step.is_final_answer is False
    assert step.attributes == ["step_number"]
    assert step.filter(["error", "step_number"]) == {"step_number": 1}
    assert step.to_dict() == {"kind": "action", "version": 1, "step_number": 1}


def test_a_field_set_to_its_default_is_unset_again():
    step = ActionStep(1, error=StepError("a", "b"), is_final_answer=True)
    before = revision_of(step)
    step.error = None
    step.is_final_answer = False
    assert step == ActionStep(1, error=None) == ActionStep(1)
    assert revision_of(step) == before + 2


def test_the_step_of_an_action_is_its_number():
    step = ActionStep(4)
    assert step.step == step.get_value("step") == 4
    assert step.filter(["step"]) == {"step": 4}
    step.step = 5
    assert step.step_number == 5
    assert ActionStep(step=6).step_number == 6
    assert TaskStep("x").get_value("step") is None


def test_steps_take_free_fields_at_any_time():
    step = ActionStep(1, alert="x")
    step.failures = 3
    assert ActionStep.from_json(step.to_json()) == step
    assert step.attributes == ["step_number", "alert", "failures"]
    with pytest.raises(InvalidField, match="ActionStep"):
        step.filter = 1


def test_fields_called_kind_and_version_are_free_on_steps_too():
    step = TaskStep("x", kind="click", version="2.0")
    assert step.to_dict()["kind"] == "task"
    again = MemoryItem.from_json(step.to_json())
    assert (again.kind, again.version) == ("click", "2.0")
    assert again == step


@given(steps)
def test_json_is_an_exact_inverse_for_every_kind(step):
    assert step == step  # noqa: PLR0124 - NaN inside must not matter
    for again in (
        MemoryItem.from_json(step.to_json()),
        type(step).from_dict(json.loads(json.dumps(step.to_dict()))),
        pickle.loads(pickle.dumps(step)),
        copy.deepcopy(step),
    ):
        assert again == step
        assert type(again) is type(step)
        assert again.to_json() == step.to_json()


def test_images_and_errors_survive():
    step = MemoryStep.from_json(full_action().to_json())
    assert step == full_action()
    assert step.observations_images == [IMAGE]
    assert step.error == StepError("ValueError", "boom")
    assert step.tool_calls[0].arguments == {"a": 1}


def test_the_succinct_record_lacks_the_models_input_alone():
    step = full_action()
    assert step.to_dict().keys() - step.to_dict(full=False).keys() == {"model_input_messages"}


def test_reading_as_another_class_is_refused():
    with pytest.raises(InvalidField, match="not a TaskStep"):
        TaskStep.from_json(ActionStep(1).to_json())
    assert ActionStep.from_dict({"step_number": 1}) == ActionStep(1)
    with pytest.raises(InvalidField, match="step_number"):
        MemoryItem.from_dict({"kind": "action", "version": 1})


def test_a_damaged_record_is_refused():
    with pytest.raises(InvalidField, match="bytes"):
        MemoryItem.from_dict({"kind": "task", "version": 1, "task": {"$bytes": "?"}})


def test_a_class_of_the_users_declares_its_fields():
    step = Check("http://x")
    assert (step.status, step.tags, step.note) == (200, (), None)
    assert step.is_healthy()
    step.status = 500
    assert not step.is_healthy()
    assert Check("http://y").status == 200
    for name in ("limit", "is_healthy"):
        with pytest.raises(InvalidField):
            step.set_value(name, 1)
    again = MemoryItem.from_json(step.to_json())
    assert type(again) is Check
    assert again == step


def test_a_class_below_an_action_is_an_action():
    class Probe(ActionStep):
        latency_seconds: float = 0.0

    step = Probe(1, latency_seconds=0.5, observations="ok")
    assert step.step == 1
    assert isinstance(MemoryItem.from_json(step.to_json()), Probe)
    assert MemoryItem.from_json(step.to_json()) == step


def test_a_kind_has_one_class():
    assert NamedCheck("x").to_dict()["kind"] == "test-check"
    assert NamedCheck("x").to_dict()["version"] == 2
    assert NamedCheck.from_dict({"kind": "test-check", "version": 1, "url": "x"}) == NamedCheck("x")
    with pytest.raises(InvalidField, match="test-check"):
        type("Impostor", (MemoryStep,), {}, kind="test-check")
    with pytest.raises(InvalidField, match="action"):
        type("Impostor", (MemoryStep,), {}, kind="action")


def test_two_classes_of_one_name_in_two_modules_do_not_clash():
    first = type("Namesake", (MemoryStep,), {"__module__": "one"})
    second = type("Namesake", (MemoryStep,), {"__module__": "two"})
    assert type(MemoryItem.from_json(first().to_json())) is first
    assert type(MemoryItem.from_json(second().to_json())) is second
    record = {**first().to_dict(), "kind": "__main__:Namesake"}
    assert type(MemoryItem.from_dict(record)) is UnknownStep


def test_a_class_is_found_again_after_its_module_was_run_as_a_script():
    record = {**Check("x").to_dict(), "kind": "__main__:Check"}
    assert MemoryItem.from_dict(record) == Check("x")


UNKNOWN = [
    {"kind": "dream", "version": 1, "content": "x", "$odd": {"$newer": [1, 2.5, None]}, "weird key": {"a": [True]}},
    {"kind": "action", "version": 2, "step_number": 1, "observations": {"$vector": "x"}},
    {"kind": "action", "version": 1, "step_number": 1, "observations": {"$vector": "x"}},
    {"version": 1, "kind": "gone.module:Check2", "url": "x"},
]


@pytest.mark.parametrize("record", UNKNOWN)
def test_a_record_of_an_unknown_kind_is_written_back_unchanged(record):
    step = MemoryItem.from_dict(record)
    assert type(step) is UnknownStep
    for again in (step, copy.deepcopy(step), pickle.loads(pickle.dumps(step)), MemoryItem.from_json(step.to_json())):
        assert again.to_dict() == record
        assert list(again.to_dict()) == list(record)
        assert again == step
    assert step.kind == record["kind"]
    assert step.get_value("step_number") == record.get("step_number")


def test_what_is_changed_on_an_unknown_step_is_written_too():
    step = MemoryItem.from_dict(UNKNOWN[0])
    step.seen_at = datetime(2025, 1, 1, tzinfo=UTC)
    del step.content
    again = MemoryItem.from_json(step.to_json())
    assert again.to_dict() == {
        **{key: value for key, value in UNKNOWN[0].items() if key != "content"},
        "seen_at": {"$datetime": "2025-01-01T00:00:00+00:00"},
    }


def test_a_record_whose_field_is_a_method_by_now_is_still_read():
    step = MemoryItem.from_dict({"kind": "task", "version": 1, "task": "x", "filter": 3})
    assert step.get_value("filter") == 3
    assert step.to_dict()["filter"] == 3
