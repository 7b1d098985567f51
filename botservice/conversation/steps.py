"""The steps of an agent's work.

MemoryItem
└── MemoryStep
    ├── SystemPromptStep    what the agent was told to be
    ├── TaskStep            what a person asked
    ├── PlanningStep        what the model means to do
    ├── ActionStep          one model call, its tool calls and what they gave
    │   └── FailedStep      what kept the agent from a step
    ├── FinalAnswerStep     the answer
    └── UnknownStep         a record of a newer version, or of a class that is not imported
"""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from botservice.conversation.field_codec import FrozenDict, encode, freeze
from botservice.conversation.field_values import StepError, Timing, ToolResult
from botservice.conversation.items import MemoryItem
from botservice.core.messages import Attachment, TokenUsage, ToolCall


class MemoryStep(MemoryItem, kind="step"):
    """A step of an agent's work: its declared fields, and any free ones."""

    __slots__ = ()


class SystemPromptStep(MemoryStep, kind="system_prompt"):
    """The system prompt."""

    __slots__ = ()

    system_prompt: str


class TaskStep(MemoryStep, kind="task"):
    """A question; the steps after it are work on it.

    Attributes:
        unasked_by: The model that decided to answer although nobody asked, in a group.
    """

    __slots__ = ()
    _images: ClassVar[str | None] = "task_images"

    task: str
    task_images: Sequence[Attachment] | None = None
    unasked_by: str | None = None


class PlanningStep(MemoryStep, kind="planning"):
    """The model's plan."""

    __slots__ = ()

    plan: str
    model_input_messages: Sequence[Mapping[str, Any]] | None = None
    prompt_sections: Mapping[str, Sequence[int]] | None = None
    timing: Timing | None = None
    token_usage: TokenUsage | None = None
    model: str | None = None
    finish_reason: str | None = None
    model_items: Sequence[Mapping[str, Any]] | None = None
    model_attempts: Sequence[Mapping[str, Any]] | None = None
    prompt_facts: Mapping[str, Any] | None = None


class ActionStep(MemoryStep, kind="action"):
    """One model call, the tool calls that it requested, and their results.

    Attributes:
        step_number: Also readable and writable as `step`.
        model_input_messages: The prompt in the format of chat.completions.
        prompt_sections: Their sources, such as `{"found": (1, 2), "window": (2, 6)}`: for each section the index of its
            first message, and the index after its last. A replay shows it.
        tool_calls: The calls in the model's order; set before they run.
        error: The error of a tool or the model; `StepError.of(exception)` creates one.
        observations: The results of the tools, joined by newlines in the order of the calls.
        tool_results: One for each call that ended, in the order of the calls.
        model: The model that answered.
        finish_reason: Why the answer ended: stop, tool_calls, length, refusal or filtered.
        model_items: The model's raw output that it needs again, such as encrypted reasoning.
        model_attempts: Each attempt to call the model: seconds since the start of the step, and the error.
        prompt_facts: How the prompt was built: search results with scores, parts that did not fit, offered tools. If
            the step before has the same values, only that step has them.
        action_output: The value of the result, if a tool returned one.
        sub_runs: The work of agents that were called as tools; `sub_runs(step)` reads it.
    """

    __slots__ = ()
    _aliases: ClassVar[dict[str, str]] = {"step": "step_number"}
    _images: ClassVar[str | None] = "observations_images"

    step_number: int
    timing: Timing | None = None
    model_input_messages: Sequence[Mapping[str, Any]] | None = None
    prompt_sections: Mapping[str, Sequence[int]] | None = None
    tool_calls: Sequence[ToolCall] | None = None
    error: StepError | None = None
    model_output: str | None = None
    observations: str | None = None
    observations_images: Sequence[Attachment] | None = None
    action_output: Any = None
    token_usage: TokenUsage | None = None
    model: str | None = None
    finish_reason: str | None = None
    model_items: Sequence[Mapping[str, Any]] | None = None
    model_attempts: Sequence[Mapping[str, Any]] | None = None
    prompt_facts: Mapping[str, Any] | None = None
    is_final_answer: bool = False
    tool_results: Sequence[ToolResult] | None = None
    sub_runs: Sequence[Mapping[str, Any]] | None = None


class FailedStep(ActionStep, kind="failed"):
    """The reason why a step failed: the model did not answer, or the steps are used up. No model sees it."""

    __slots__ = ()


class FinalAnswerStep(MemoryStep, kind="final_answer"):
    """The answer as text or as the value of a final tool, with its model call if there was one."""

    __slots__ = ()

    output: Any
    model_input_messages: Sequence[Mapping[str, Any]] | None = None
    prompt_sections: Mapping[str, Sequence[int]] | None = None
    timing: Timing | None = None
    token_usage: TokenUsage | None = None
    model: str | None = None
    finish_reason: str | None = None
    model_items: Sequence[Mapping[str, Any]] | None = None
    model_attempts: Sequence[Mapping[str, Any]] | None = None
    prompt_facts: Mapping[str, Any] | None = None


class UnknownStep(MemoryStep, kind="unknown"):
    """A record that this version cannot read. It is kept and written back unchanged.

    Its fields are the JSON values of the record. `to_dict` gives the original record with your changes.
    """

    __slots__ = ("_record",)

    _record: FrozenDict

    def __init__(self, record: Mapping[str, Any]) -> None:
        super().__init__()
        frozen = freeze(record, "record")
        object.__setattr__(self, "_record", frozen)
        self._fields.update(frozen)

    @classmethod
    def _of_record(cls, record: Mapping[str, Any]) -> Self:
        return cls(record)

    def _encoded(self, *, full: bool = True) -> dict[str, Any]:
        fields = {key: value for key, value in self._fields.items() if full or key != "model_input_messages"}
        return {key: value if self._is_original(key) else encode(value) for key, value in fields.items()}

    def _is_original(self, key: str) -> bool:
        return key in self._record and self._fields[key] is self._record[key]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.to_dict(),)
