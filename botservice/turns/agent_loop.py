"""The loop of an agent's work: what comes after a step, until there is an answer, and what steps that fail say."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, TypeVar

from botservice.agent.agent import Action, Agent, FinishAction, ModelReply
from botservice.agent.final_answer_checks import CHECK_FAILED, find_refusal
from botservice.conversation.agent_memory import AgentMemory, start_of_work
from botservice.conversation.context import AgentContext
from botservice.conversation.field_values import StepError
from botservice.conversation.items import MemoryItem
from botservice.conversation.steps import ActionStep, FailedStep, FinalAnswerStep, MemoryStep, PlanningStep, TaskStep
from botservice.core.errors import LLMError
from botservice.telemetry.logs import redact
from botservice.texts import in_language
from botservice.turns.answer_message import as_text, is_declined
from botservice.turns.model_calls import Interruption
from botservice.turns.running_calls import final_answer

T = TypeVar("T", bound=ModelReply)
AskAgent = Callable[[AgentContext], Coroutine[Any, Any, T]]


class AgentLoop(ABC):
    """An agent's work on a task, one step at a time; a subclass asks the model, runs calls and keeps the steps.

    Attributes:
        agent: Who works.
        context: What the agent sees.
        memory: Its steps.
        run: What checks and callbacks are given as agent.
        last_acted: The step whose calls ended last, also where a callback took it out of the memory.
    """

    def __init__(
        self,
        agent: Agent,
        context: AgentContext,
        max_steps: int,
        clock: Callable[[], datetime],
        interruption: Interruption,
    ) -> None:
        self.agent = agent
        self.context = context
        self.memory = context.memory
        self.run: object = None
        self.last_acted: ActionStep | None = None
        self._max_steps = max_steps
        self._clock = clock
        self._interruption = interruption

    async def next_step(self) -> MemoryStep:
        """Do what comes next and return its record: with a `FinalAnswerStep` the work is done.

        Raises:
            LLMError: the model did not answer; that is kept as a step.
            WorkCut: it was interrupted.
        """
        context = self.context
        given = await self._find_given() if context.steps_taken else None
        if given is not None:
            return await self.keep_answer(given)
        if context.steps_taken >= self._max_steps:
            return await self._finish()
        if self.agent.planning_interval is not None:
            await self._plan(self.agent.planning_interval)
        started_at = self._clock()
        action = await self._ask(self.agent.next_action, started_at)
        if isinstance(action, Action):
            self.last_acted = await self.act(action, started_at)
            return self.last_acted
        refusal = await self._find_refusal(action)
        if refusal is None:
            return await self.keep_answer(self.with_files(action), started_at)
        step = ActionStep(context.last_step_number + 1, error=unchecked(refusal))
        step.set_values_from_dict({"model_output": as_text(action.output), "observations": refusal})
        await self.keep(step, started_at, action)
        return step

    def count_plans(self) -> int:
        """Return how many plans the work on the current prompt has."""
        work = self.memory.steps[start_of_work(self.memory, self.context.task) :]
        return sum(1 for step in work if isinstance(step, PlanningStep) and self.is_own(step))

    @abstractmethod
    async def ask(self, call: AskAgent[T]) -> T:
        """Return what the agent says, with the retries that its model's failures deserve, and pay for it."""

    @abstractmethod
    async def act(self, action: Action, started_at: datetime) -> ActionStep:
        """Run the calls that the model wants, and keep the step."""

    @abstractmethod
    async def keep(self, step: MemoryStep, started_at: datetime, said: ModelReply | None = None) -> None:
        """Keep a step that runs no calls, before the next one begins.

        Args:
            said: What the model said; None for a step that failed.
        """

    @abstractmethod
    async def keep_answer(self, action: FinishAction, started_at: datetime | None = None) -> FinalAnswerStep:
        """Give the answer, and keep it as the last step.

        Args:
            started_at: When the model was asked for it; None if a final tool gave it.
        """

    async def save(self) -> None:
        """Keep what was changed in earlier steps."""

    def is_own(self, step: MemoryItem) -> bool:  # noqa: ARG002 - others need it
        """Return whether a step comes from this work; others were put in."""
        return True

    def with_files(self, action: FinishAction) -> FinishAction:
        """Return what the model answers with the files that belong to it."""
        return action

    def _count(self, step: MemoryStep) -> None:
        """Count a step that is kept; one that failed is not one that was taken."""
        if isinstance(step, ActionStep):
            self.context.last_step_number = step.step_number
            self.context.steps_taken += not isinstance(step, FailedStep)

    async def _find_given(self) -> FinishAction | None:
        """Return the answer that a final tool gave; one that does not pass its checks is an observation from now on."""
        done = [*self.context.completed_steps, *([] if self.last_acted is None else [self.last_acted])]
        step = next((each for each in reversed(done) if each.is_final_answer and self.is_own(each)), None)
        if step is None:
            return None
        given = final_answer(step, await self.agent.tools_for(self.context))
        refusal = await self._find_refusal(given)
        if refusal is None:
            return given
        step.set_values_from_dict({"is_final_answer": False, "error": unchecked(refusal)})
        step.observations = f"{step.observations}\n{refusal}"
        await self.save()
        return None

    async def _plan(self, interval: int) -> None:
        taken = self.context.steps_taken
        if taken % interval or self.count_plans() > taken // interval:
            return
        started_at = self._clock()
        plan = await self._ask(self.agent.plan, started_at)
        await self.keep(PlanningStep(plan.text), started_at, plan)

    async def _finish(self) -> FinalAnswerStep:
        """Answer without any more tools, because the steps are used up."""
        started_at = self._clock()
        if not is_used_up(self.memory, self.context.task):
            await self._fail(used_up(self._max_steps), started_at)
        action = self.with_files(await self._ask(self.agent.finish, started_at))
        refusal = await self._find_refusal(action)
        if refusal is not None:
            await self._fail(unchecked(refusal), started_at, model_output=as_text(action.output))
            said = in_language("answer.unchecked", self.context.language)
            action = replace(action, output=said, attachments=(), finish_reason=None)
        return await self.keep_answer(action, started_at)

    async def _ask(self, call: AskAgent[T], started_at: datetime) -> T:
        try:
            return await self.ask(call)
        except LLMError as error:
            await self._fail(model_failure(error), started_at, **{FAILURE_KIND: error.kind.value})
            raise

    async def _fail(self, error: StepError, started_at: datetime, **values: str) -> None:
        """Keep why a step failed."""
        step = FailedStep(self.context.last_step_number + 1, error=error)
        step.set_values_from_dict(values)
        await self.keep(step, started_at)

    async def _find_refusal(self, action: FinishAction) -> str | None:
        """Return why an answer has another form than is wanted, or fails a check of the agent; None if it passes."""
        if is_declined(self.context, action):
            return None
        form = self.context.output_form
        refusal = None if form is None else form.find_refusal(action.output)
        if refusal is not None:
            return refusal
        checks = self.agent.final_answer_checks
        if not checks:
            return None
        return await self._interruption.guard(find_refusal(checks, action.output, self.memory, self.run))


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
