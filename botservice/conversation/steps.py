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

from botservice.conversation.field_codec import encode
from botservice.conversation.field_values import FrozenDict, FrozenList, StepError, Timing, ToolResult, freeze
from botservice.conversation.items import MemoryItem
from botservice.core.messages import Attachment, TokenUsage, ToolCall


class MemoryStep(MemoryItem, kind="step"):
    """A step of an agent's work: its declared fields, and any free ones."""

    __slots__ = ()


class SystemPromptStep(MemoryStep, kind="system_prompt"):
    """What the agent was told to be."""

    __slots__ = ()

    system_prompt: str


class TaskStep(MemoryStep, kind="task"):
    """What a person asked; the steps after it are work on it."""

    __slots__ = ()
    _images: ClassVar[str | None] = "task_images"

    task: str
    task_images: Sequence[Attachment] | None = None


class PlanningStep(MemoryStep, kind="planning"):
    """What the model means to do next."""

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
    """One model call, the tool calls it asked for, and what they gave.

    Attributes:
        step_number: Also readable and writable as `step`.
        model_input_messages: The prompt, as chat-completions messages.
        prompt_sections: Which of them came from where, such as `{"found": (1, 2), "window": (2, 6)}`: the first one of
            each section, and the one after its last. A replay shows it.
        tool_calls: In the model's order; here before they run.
        error: What failed, a tool or the model; `StepError.of(exception)` makes one.
        observations: What the tools gave, joined by newlines in the order of the calls.
        tool_results: One for each call that ended, in the order of the calls.
        model: The model that answered.
        finish_reason: Why it ended: stop, tool_calls, length, refusal or filtered.
        model_items: What it gave, word for word, where it wants to read that again, such as its sealed reasoning.
        model_attempts: How the model was asked, each time: in seconds since the step began, with what went wrong.
        prompt_facts: How the prompt was made: what was found, with scores; what did not fit; which tools were offered.
            Where the step before it has the same, it stands there alone.
        action_output: The value behind the observation, where a tool gave one.
        sub_runs: What agents did that were called as tools; `sub_runs(step)` reads it.
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
    """What kept the agent from a step: its model did not answer, or its steps are used up. No model sees it."""

    __slots__ = ()


class FinalAnswerStep(MemoryStep, kind="final_answer"):
    """The answer, as text or as the value that a final tool gave, and the model call that gave it, if one did."""

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
    """A record that this version cannot read, kept whole: it is written back as it came.

    Its fields are the record's JSON values. What is assigned or deleted is written back too.
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

    def to_dict(self, *, full: bool = True) -> dict[str, Any]:
        """Return the record as it came, with what was changed since."""
        fields = {key: value for key, value in self._fields.items() if full or key != "model_input_messages"}
        return {key: _as_it_came(value) if self._is_original(key) else encode(value) for key, value in fields.items()}

    def _is_original(self, key: str) -> bool:
        return key in self._record and self._fields[key] is self._record[key]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.to_dict(),)


def _as_it_came(value: Any) -> Any:
    if isinstance(value, FrozenDict):
        return {key: _as_it_came(element) for key, element in value.items()}
    return [_as_it_came(element) for element in value] if isinstance(value, FrozenList) else value
