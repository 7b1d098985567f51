"""A claimed turn, one step at a time. Whatever a step did is stored when the step returns."""

import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self, TypeVar

from sqlalchemy import Connection

from botservice.agents import Action, Agent, FinishAction
from botservice.contexts import AgentContext
from botservice.errors import InvalidField, RunFinished, RunInterrupted, TurnInProgress
from botservice.memory import (
    ActionStep,
    AgentMemory,
    CallbackFailure,
    FinalAnswerStep,
    MemoryItem,
    MemoryStep,
    PlanningStep,
    StepCallbacks,
    Timing,
    step_messages,
)
from botservice.memory.agent_memory import start_of_work
from botservice.messages import Message
from botservice.storage import Claim
from botservice.telemetry import turn_logging
from botservice.tools import ToolOutcome
from botservice.turns import answer, journal
from botservice.turns.answer import new_answer, preview
from botservice.turns.asking import ask_model
from botservice.turns.calls import CallRunner, close_step, final_answer, stopped_outcomes
from botservice.turns.interruption import Interruption, WorkCut
from botservice.turns.prompts import record_prompt
from botservice.turns.records import note_step
from botservice.turns.retry import MODEL_RETRIES, RetryPolicy
from botservice.turns.saving import Saver
from botservice.turns.transport import Live, Payload
from botservice.turns.turn import Turn

logger = logging.getLogger(__name__)

T = TypeVar("T")
Clock = Callable[[], datetime]
DeliveryPlan = Callable[[Message], Sequence[Payload]]


def utc_now() -> datetime:
    """Return the present moment, aware."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What every run of a service shares."""

    agent: Agent
    callbacks: StepCallbacks
    max_steps: int
    clock: Clock = utc_now
    model_retries: RetryPolicy = MODEL_RETRIES


def no_deliveries(_: Message) -> Sequence[Payload]:
    """Return no message: the caller has the answer."""
    return []


class AgentRun:
    """A turn that is being worked on by whoever holds its claim.

    It owns no state that is not stored: another process may go on from the same place.

    Attributes:
        context: The conversation.
        memory: The steps; what is put in before a step is stored and reaches the model.
        answer: The answer, once there is one.
        turn_id: The turn's id, as it stands in the log.
    """

    def __init__(
        self,
        options: RunOptions,
        context: AgentContext,
        turn: Turn,
        claim: Claim,
        *,
        plan_deliveries: DeliveryPlan = no_deliveries,
        live: Live | None = None,
        on_end: Callable[[Claim], Awaitable[None]] | None = None,
    ) -> None:
        self.context = context
        self.memory: AgentMemory = context.memory
        self.answer: Message | None = None
        self.turn_id = turn.id
        self._options = options
        self._turn = turn
        self._claim = claim
        self._plan_deliveries = plan_deliveries
        self._live = live
        self._on_end = on_end
        self._saver = Saver(context, claim)
        self._interruption = Interruption()
        self._said: list[str] = []
        self._open: ActionStep | None = None
        if context.open_step is not None and isinstance(context.open_step.item, ActionStep):
            self._open = context.open_step.item
        self._final = self._find_final()
        self._is_new = context.steps_taken == 0 and self._open is None
        self._is_stepping = False
        self._is_stopped = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def is_interrupted(self) -> bool:
        """Whether somebody asked it to stop."""
        return self._interruption.is_asked

    async def step(self) -> MemoryStep:
        """Do the next thing and return its record: an `ActionStep`, or the `FinalAnswerStep` with which answer is set.

        Raises:
            RunInterrupted: the run was interrupted; what was said is kept.
            RunFinished: the run has its answer already.
            LLMError: the model did not answer; the step may be tried again.
            ClaimLost: somebody else goes on with this turn.
            TurnInProgress: another task is in the middle of a step of this run.
        """
        if self.answer is not None:
            raise RunFinished(f"turn {self.turn_id} has its answer: run.answer")
        if self._is_stopped:
            raise RunInterrupted(f"turn {self.turn_id} was stopped")
        if self._is_stepping:
            raise TurnInProgress(f"a step of turn {self.turn_id} is under way: await it first")
        self._claim.check()
        self._is_stepping, self._claim.is_idle = True, False
        self.context.on_text = self._hear
        try:
            with turn_logging(self.turn_id):
                return await self._step()
        except WorkCut:
            await self._stop()
            raise RunInterrupted(f"turn {self.turn_id} was stopped") from None
        finally:
            self.context.on_text = None
            self._is_stepping, self._claim.is_idle = False, True

    async def finish(self) -> Message:
        """Do step after step until there is an answer, and return it. Raises what `step` does."""
        while self.answer is None:
            await self.step()
        return self.answer

    def interrupt(self) -> None:
        """Stop the run: a model call or tools that are under way are cancelled; `step` raises RunInterrupted.

        May be called from any thread.
        """
        self._interruption.ask()

    def write_memory_to_messages(self, summary_mode: bool = False) -> list[dict[str, Any]]:  # noqa: FBT001, FBT002 - contract
        """Return the memory as chat-completions messages, the system prompt first.

        Args:
            summary_mode: Leave out the system prompt, plans and what the model said beside its calls.
        """
        steps = [self.memory.system_prompt, *self.memory.steps]
        return [message for step in steps for message in step_messages(step, summary_mode=summary_mode)]

    async def close(self) -> None:
        """Let go of the context. An unfinished turn stays as it is: `resume` goes on with it."""
        if self.is_interrupted and self.answer is None and not self._is_stopped and self._claim.is_held:
            await self._stop()
        await self._end()

    async def _step(self) -> MemoryStep:
        await self._saver.save(self._open)
        await self._announce_task()
        if self._open is not None:
            return await self._run_calls(self._open, is_resumed=True)
        if self._final is not None and self._final.is_final_answer:
            return await self._answer(final_answer(self._final, self._options.agent.tools))
        if self.context.steps_taken >= self._options.max_steps:
            return await self._answer(await self._ask(self._options.agent.finish))
        await self._plan()
        started_at = self._options.clock()
        action = await self._ask(self._options.agent.next_action)
        if isinstance(action, FinishAction):
            return await self._answer(action, started_at)
        return await self._act(action, started_at)

    async def _announce_task(self) -> None:
        """Show the task to the callbacks, as the first step that is stored."""
        is_new, self._is_new = self._is_new, False
        task = self.context.task
        if is_new and task is not None and self.context.records.row_id(task) is not None:
            await self._call_back(task)

    async def _ask(self, call: Callable[[AgentContext], Coroutine[Any, Any, T]]) -> T:
        """Return what the agent says, with the retries that the model's failures deserve."""

        def begin() -> Coroutine[Any, Any, T]:
            self._said.clear()
            return call(self.context)

        return await ask_model(begin, self._options.model_retries, self._interruption)

    async def _plan(self) -> None:
        interval = self._options.agent.planning_interval
        taken = self.context.steps_taken
        if interval is None or taken % interval or self._count_plans() > taken // interval:
            return
        started_at = self._options.clock()
        plan = await self._ask(self._options.agent.plan)
        step = PlanningStep(plan.text, timing=Timing(started_at, self._options.clock()), token_usage=plan.token_usage)
        record_prompt(step, plan.prompt, self.context.records.log)
        self.memory.steps.append(step)
        await self._saver.save()
        await self._call_back(step)

    async def _act(self, action: Action, started_at: datetime) -> ActionStep:
        context = self.context
        number, taken = context.last_step_number + 1, context.steps_taken + 1
        step = ActionStep(number, timing=Timing(started_at), tool_calls=tuple(action.tool_calls))
        step.set_values_from_dict({"model_output": action.model_output, "token_usage": action.token_usage})
        record_prompt(step, action.prompt, context.records.log)

        def write_open(connection: Connection, row_ids: Sequence[int]) -> None:
            journal.write_started(connection, context.id, row_ids[-1], range(len(action.tool_calls)))
            note_step(connection, self.turn_id, steps_taken=taken, last_step_number=number)

        def take_note(_: None) -> None:
            self._open = step
            context.last_step_number, context.steps_taken = number, taken

        await self._saver.save_with(write_open, take_note, step)
        return await self._run_calls(step, is_resumed=False)

    async def _run_calls(self, step: ActionStep, *, is_resumed: bool) -> ActionStep:
        """Run the calls of an open step that have no result yet, and close it."""
        ended = await self._read_ended(step) if is_resumed else {}
        runner = CallRunner(self._options.agent.tools, self.context, self._claim, self._row_id(step), self._live)
        try:
            work = runner.run(step.tool_calls or (), ended, is_resumed=is_resumed)
            outcomes = await self._interruption.guard(work)
        except WorkCut:
            await self._close(step, stopped_outcomes(step, {**ended, **runner.outcomes}))
            raise
        await self._close(step, outcomes)
        return step

    async def _close(self, step: ActionStep, outcomes: Sequence[ToolOutcome]) -> None:
        close_step(step, outcomes, self._options.agent.tools, self._options.clock())
        row_id = self._row_id(step)
        self.memory.steps.append(step)
        self._open = self.context.open_step = None
        if step.is_final_answer:
            self._final = step
        await self._saver.save_with(lambda connection, _: journal.delete_calls(connection, row_id), _ignore)
        await self._call_back(step)

    async def _answer(self, action: FinishAction, started_at: datetime | None = None) -> FinalAnswerStep:
        now = self._options.clock()
        step = FinalAnswerStep(action.output, token_usage=action.token_usage)
        if action.prompt:
            record_prompt(step, action.prompt, self.context.records.log)
        if started_at is not None:
            step.timing = Timing(started_at, now)
        new = await new_answer(self.turn_id, action, now)
        payloads = self._plan_deliveries(preview(new))

        def write_answer(connection: Connection, _: Sequence[int]) -> Message:
            return answer.write_answer(connection, self._turn, new, payloads, now)

        self.memory.steps.append(step)
        try:
            await self._saver.save_with(write_answer, self._take_answer)
        finally:
            if self.answer is None:  # it is not stored: nothing was answered
                self.memory.steps[:] = [each for each in self.memory.steps if each is not step]
        await self._call_back(step)
        await self._end()
        return step

    def _take_answer(self, message: Message) -> None:
        self.answer = message

    async def _stop(self) -> None:
        """End the turn as stopped, with what was said until then."""
        with turn_logging(self.turn_id):
            if self._open is not None:
                await self._close(self._open, stopped_outcomes(self._open, await self._read_ended(self._open)))
            now = self._options.clock()
            said = "".join(self._said).strip()
            new = await new_answer(self.turn_id, FinishAction(said), now) if said else None
            payloads = self._plan_deliveries(preview(new)) if new else []
            self._is_stopped = True
            await self._saver.save_with(
                lambda connection, _: answer.write_stopped(connection, self._turn, new, payloads, now), _ignore
            )
            await self._end()

    async def _call_back(self, step: MemoryStep) -> None:
        """Show a stored step to the callbacks, and store what they change."""
        failures = await self._options.callbacks.run(step, self)
        if not all(isinstance(item, MemoryItem | None) for item in self.memory.steps):
            self.memory.steps[:] = [item for item in self.memory.steps if isinstance(item, MemoryItem)]
            failures.append(
                CallbackFailure(
                    "step_callbacks", InvalidField.__name__, "it put something else than a step into memory.steps"
                )
            )
            logger.warning("step_callback_put_no_step")
        if failures:
            step.set_value("callback_errors", failures)
        await self._saver.save(self._open)

    def _find_final(self) -> ActionStep | None:
        """Return the step whose tool gave the answer, where a process ended between that and the answer."""
        done = self.context.completed_steps
        return next((step for step in reversed(done) if step.is_final_answer and self._is_own(step)), None)

    def _count_plans(self) -> int:
        """Return how many plans the current prompt's work has."""
        work = self.memory.steps[start_of_work(self.memory, self.context.task) :]
        return sum(1 for step in work if isinstance(step, PlanningStep) and self._is_own(step))

    def _is_own(self, step: MemoryItem) -> bool:
        return self.context.records.is_own(step)

    def _row_id(self, step: ActionStep) -> int:
        row_id = self.context.records.row_id(step)
        assert row_id is not None, "an open step is stored"  # noqa: S101 - an invariant
        return row_id

    async def _read_ended(self, step: ActionStep) -> Mapping[int, ToolOutcome]:
        row_id = self._row_id(step)
        return await self.context.storage.read(lambda connection: journal.read_ended(connection, row_id))

    def _hear(self, piece: str) -> None:
        self._said.append(piece)
        if self._live is not None:
            self._live.on_text(piece)

    async def _end(self) -> None:
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            await on_end(self._claim)


def _ignore(_: object) -> None:
    return None
