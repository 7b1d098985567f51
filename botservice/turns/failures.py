"""Failures on the way to an answer, stored as steps before the turn goes on."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Final

from sqlalchemy import Connection

from botservice.agent.agent import FinishAction
from botservice.agent.checks import CHECK_FAILED
from botservice.conversation.agent_memory import AgentMemory, start_of_work
from botservice.conversation.context import AgentContext
from botservice.conversation.field_values import StepError, Timing
from botservice.conversation.items import MemoryItem
from botservice.conversation.steps import ActionStep, FailedStep, MemoryStep, TaskStep
from botservice.core.errors import LLMError
from botservice.telemetry.logs import redact
from botservice.turns.model_calls import record_answer, record_prompt
from botservice.turns.records import note_failure, note_step
from botservice.turns.run_options import RunOptions
from botservice.turns.saving import Saver, as_text
from botservice.turns.usage_recorder import UsageRecorder

_USED_UP: Final = "MaxStepsError"
CallBack = Callable[[MemoryStep], Awaitable[None]]


class Failures:
    """Stores failures in the memory of one turn, and shows them to the callbacks."""

    def __init__(
        self, options: RunOptions, context: AgentContext, saver: Saver, bill: UsageRecorder, call_back: CallBack
    ) -> None:
        self._clock = options.clock
        self._context = context
        self._saver = saver
        self._bill = bill
        self._call_back = call_back

    async def fail(
        self, error: StepError, started_at: datetime, *, model_output: str | None = None, kind: str | None = None
    ) -> None:
        """Store why a step failed; it does not count as one that was taken.

        Args:
            kind: Of a failed call of a model, the value of its `LLMFailure`.
        """
        context, number = self._context, self._context.last_step_number + 1
        step = FailedStep(number, timing=Timing(started_at, self._clock()), error=error, model_output=model_output)
        if kind is not None:
            step.set_value(FAILURE_KIND, kind)
        self._bill.attempts.write_failed(step, started_at, context.records.log)

        def write_failed(connection: Connection, _: Sequence[int]) -> None:
            note_failure(connection, self._turn_id, last_step_number=number)
            self._bill.write_failed(connection)

        def take_note(_: None) -> None:
            self._bill.attempts.clear()
            context.last_step_number = number

        context.memory.steps.append(step)
        await self._saver.save_with(write_failed, take_note)
        await self._call_back(step)

    async def refuse(self, action: FinishAction, refusal: str, started_at: datetime) -> ActionStep:
        """Store a refused answer with the reason, as a step like one that ran tools."""
        context = self._context
        number, taken = context.last_step_number + 1, context.steps_taken + 1
        step = ActionStep(number, timing=Timing(started_at, self._clock()), error=unchecked(refusal))
        step.set_values_from_dict({"model_output": as_text(action.output), "observations": refusal})
        record_answer(step, action)
        record_prompt(step, action.prompt, context.records.log)
        self._bill.attempts.write(step, started_at)

        def write_refused(connection: Connection, _: Sequence[int]) -> None:
            note_step(connection, self._turn_id, steps_taken=taken, last_step_number=number)
            self._bill.write(connection, started_at)

        def take_note(_: None) -> None:
            self._bill.confirm()
            context.last_step_number, context.steps_taken = number, taken

        context.memory.steps.append(step)
        await self._saver.save_with(write_refused, take_note)
        await self._call_back(step)
        return step

    async def take_back(self, step: ActionStep, refusal: str) -> None:
        """Store that what a final tool gave is not the answer."""
        step.set_values_from_dict({"is_final_answer": False, "error": unchecked(refusal)})
        step.observations = f"{step.observations}\n{refusal}"
        await self._saver.save()

    @property
    def _turn_id(self) -> int:
        turn_id = self._context.turn_id
        assert turn_id is not None, "a turn runs"  # noqa: S101 - an invariant
        return turn_id


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
