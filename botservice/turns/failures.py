"""What the steps of failures say: no answer of the model, steps that are used up, checks that were not passed."""

from typing import Final

from botservice.agent.checks import CHECK_FAILED
from botservice.conversation.agent_memory import AgentMemory, start_of_work
from botservice.conversation.field_values import StepError
from botservice.conversation.items import MemoryItem
from botservice.conversation.steps import FailedStep, TaskStep
from botservice.core.errors import LLMError
from botservice.telemetry.logs import redact

_USED_UP: Final = "MaxStepsError"
FAILURE_KIND: Final = "failure_kind"


def model_failure(error: LLMError) -> StepError:
    """Return the record of a failed model call, without secrets."""
    failure = StepError.of(error)
    return StepError(failure.type, redact(failure.message))


def used_up(max_steps: int) -> StepError:
    """Return the record of steps that are used up."""
    return StepError(_USED_UP, f"the {max_steps} steps that may run tools for one prompt are used up")


def is_used_up(memory: AgentMemory, task: TaskStep | None) -> bool:
    """Return whether the memory says that the steps of the current prompt are used up."""
    work = memory.steps[start_of_work(memory, task) :]
    return any(isinstance(step, FailedStep) and _kind(step.error) == _USED_UP for step in work)


def is_model_failure(step: MemoryItem) -> bool:
    """Return whether a step says that the model did not answer."""
    return isinstance(step, FailedStep) and _kind(step.error) not in (_USED_UP, CHECK_FAILED)


def unchecked(reason: str) -> StepError:
    """Return the record of an answer that no check lets through."""
    return StepError(CHECK_FAILED, reason)


def _kind(error: object) -> str | None:
    return error.type if isinstance(error, StepError) else None
