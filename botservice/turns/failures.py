"""What keeps an agent from a step, as the memory keeps it."""

from typing import Final

from botservice.agents.checks import CHECK_FAILED
from botservice.errors import LLMError
from botservice.memory import AgentMemory, FailedStep, MemoryItem, StepError, TaskStep
from botservice.memory.agent_memory import start_of_work
from botservice.telemetry import redact

_USED_UP: Final = "MaxStepsError"


def model_failure(error: LLMError) -> StepError:
    """Return the record of a model that did not answer, without what is secret in it."""
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
