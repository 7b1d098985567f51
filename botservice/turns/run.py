"""A claimed turn, one step at a time. Whatever a step did is stored when the step returns."""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self, TypeVar

from sqlalchemy import Connection

from botservice.agents import Action, Agent, FinishAction, Plan, Prompt
from botservice.contexts import AgentContext, write_metadata
from botservice.errors import LLMError, RunFinished, RunInterrupted
from botservice.memory import (
    ActionStep,
    AgentMemory,
    FinalAnswerStep,
    FrozenList,
    MemoryStep,
    PlanningStep,
    StepCallbacks,
    TaskStep,
    Timing,
    step_messages,
)
from botservice.messages import Attachment, Message
from botservice.storage import Claim
from botservice.telemetry import turn_logging
from botservice.tools import ToolOutcome
from botservice.turns import answer, journal
from botservice.turns.answer import new_answer, preview
from botservice.turns.calls import CallRunner, close_step, stopped_outcomes
from botservice.turns.records import note_progress
from botservice.turns.retry import MODEL_RETRIES, RetryPolicy, model_delay
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
        self._open: ActionStep | None = None
        if context.open_step is not None and isinstance(context.open_step.item, ActionStep):
            self._open = context.open_step.item
        self._said: list[str] = []
        self._busy: asyncio.Task[Any] | None = None
        self._is_interrupted = False
        self._is_ended = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def is_interrupted(self) -> bool:
        """Whether somebody asked it to stop."""
        return self._is_interrupted

    async def step(self) -> MemoryStep:
        """Do the next thing and return its record: an `ActionStep`, or the `FinalAnswerStep` with which answer is set.

        Raises:
            RunInterrupted: the run was interrupted; what was said is kept.
            RunFinished: the run has its answer already.
            LLMError: the model did not answer; the step may be tried again.
            ClaimLost: somebody else goes on with this turn.
        """
        if self.answer is not None:
            raise RunFinished(f"turn {self.turn_id} has its answer: run.answer")
        self._claim.check()
        self._claim.is_idle = False
        self.context.on_text = self._hear
        try:
            with turn_logging(self.turn_id):
                if self._is_interrupted:
                    await self._stop()
                return await self._interruptible(self._step())
        finally:
            self.context.on_text = None
            self._claim.is_idle = True

    async def finish(self) -> Message:
        """Do step after step until there is an answer, and return it. Raises what `step` does."""
        while self.answer is None:
            await self.step()
        return self.answer

    def interrupt(self) -> None:
        """Stop the run: a model call or tools that are under way are cancelled; `step` raises RunInterrupted."""
        self._is_interrupted = True
        if self._busy is not None and self._busy is not asyncio.current_task():
            self._busy.cancel()

    def write_memory_to_messages(self, *, summary_mode: bool = False) -> list[dict[str, Any]]:
        """Return the memory as chat-completions messages, the system prompt first.

        Args:
            summary_mode: Leave out the system prompt, plans and what the model said beside its calls.
        """
        steps = [self.memory.system_prompt, *self.memory.steps]
        return [message for step in steps for message in step_messages(step, summary_mode=summary_mode)]

    async def close(self) -> None:
        """Let go of the context. An unfinished turn stays as it is: `resume` goes on with it."""
        if self._is_interrupted and not self._is_ended and self._claim.is_held:
            with turn_logging(self.turn_id):
                with contextlib.suppress(RunInterrupted):
                    await self._stop()
        await self._end()

    async def _interruptible(self, work: Awaitable[MemoryStep]) -> MemoryStep:
        """Return what work returns; the parts of it that may be cut off are run by `_cancellable`."""
        try:
            return await work
        except asyncio.CancelledError:
            if self._is_interrupted and not _is_cancelled_from_outside():
                await self._stop()
            raise

    async def _cancellable(self, work: Awaitable[T]) -> T:
        """Return what work returns; `interrupt` cancels it. Everything outside of this, storing above all, is finished."""
        self._busy = asyncio.ensure_future(work)  # type: ignore[arg-type]  # an awaitable of this class's own
        try:
            return await self._busy
        except asyncio.CancelledError:
            if not self._busy.cancelled():
                self._busy.cancel()
                await asyncio.wait([self._busy])
            raise
        finally:
            self._busy = None

    async def _step(self) -> MemoryStep:
        await self._store()
        if self._open is not None:
            return await self._run_calls(self._open, await self._read_ended(self._open))
        done = self.context.completed_steps
        if done and done[-1].is_final_answer:
            return await self._answer(FinishAction(_final_output(done[-1]), _final_attachments(done[-1])))
        if len(done) >= self._options.max_steps:
            return await self._answer(await self._ask(self._options.agent.finish))
        await self._plan(len(done))
        started_at = self._options.clock()
        action = await self._ask(self._options.agent.next_action)
        if isinstance(action, FinishAction):
            return await self._answer(action, started_at)
        return await self._act(action, started_at)

    async def _ask(self, call: Callable[[AgentContext], Awaitable[T]]) -> T:
        """Return what the agent says, with the retries that the model's failures deserve."""
        first_failure: float | None = None
        failed = 0
        policy = self._options.model_retries
        while True:
            self._said.clear()
            try:
                if first_failure is None:
                    return await self._cancellable(call(self.context))
                async with asyncio.timeout(max(0.0, first_failure + policy.total_seconds - time.monotonic())):
                    return await self._cancellable(call(self.context))
            except TimeoutError:
                raise LLMError("the model sent nothing in time") from None
            except LLMError as error:
                failed += 1
                first_failure = first_failure or time.monotonic()
                delay = model_delay(policy, error, failed, time.monotonic() - first_failure)
                logger.warning("model.failed", extra={"reason": str(error), "wait_seconds": delay})
                if delay is None:
                    raise
                await self._cancellable(asyncio.sleep(delay))

    async def _plan(self, done: int) -> None:
        interval = self._options.agent.planning_interval
        if interval is None or done % interval or _count_plans(self.memory) > done // interval:
            return
        started_at = self._options.clock()
        plan: Plan = await self._ask(self._options.agent.plan)
        step = PlanningStep(
            plan.text,
            model_input_messages=self._record(plan.prompt),
            timing=Timing(started_at, self._options.clock()),
            token_usage=plan.token_usage,
        )
        self.memory.steps.append(step)
        await self._store()
        await self._call_back(step)

    async def _act(self, action: Action, started_at: datetime) -> ActionStep:
        self.context.last_step_number += 1
        step = ActionStep(
            self.context.last_step_number,
            timing=Timing(started_at),
            model_input_messages=self._record(action.prompt),
            tool_calls=tuple(action.tool_calls),
            model_output=action.model_output,
            token_usage=action.token_usage,
        )
        self._open = step

        def write_open(connection: Connection, row_ids: Sequence[int]) -> None:
            journal.write_started(connection, self.context.id, row_ids[-1], range(len(action.tool_calls)))
            note_progress(connection, self.turn_id)

        await self._store(write_open)
        return await self._run_calls(step, {})

    async def _run_calls(self, step: ActionStep, ended: Mapping[int, ToolOutcome]) -> ActionStep:
        """Run the calls of an open step that have no result yet, and close it."""
        row_id = self.context.records.row_id(step)
        assert row_id is not None, "an open step is stored"  # noqa: S101 - an invariant
        runner = CallRunner(self._options.agent.tools, self.context, self._claim, row_id, self._live)
        is_resumed = self.context.open_step is not None
        try:
            outcomes = await self._cancellable(runner.run(step.tool_calls or (), ended, is_resumed=is_resumed))
        except asyncio.CancelledError:
            if self._is_interrupted and not _is_cancelled_from_outside():
                await self._close(step, row_id, stopped_outcomes(step, runner.outcomes))
            raise
        await self._close(step, row_id, outcomes)
        await self._call_back(step)
        return step

    async def _close(self, step: ActionStep, row_id: int, outcomes: Sequence[ToolOutcome]) -> None:
        close_step(step, outcomes, self._options.agent.tools, self._options.clock())
        self.memory.steps.append(step)
        self._open = None
        self.context.open_step = None
        await self._store(lambda connection, _: journal.delete_calls(connection, row_id))

    async def _answer(self, action: FinishAction, started_at: datetime | None = None) -> FinalAnswerStep:
        now = self._options.clock()
        step = FinalAnswerStep(action.output)
        if action.prompt:
            step.model_input_messages = self._record(action.prompt)
        if action.token_usage is not None:
            step.token_usage = action.token_usage
        if started_at is not None:
            step.timing = Timing(started_at, now)
        self.memory.steps.append(step)
        new = await new_answer(self.turn_id, action, now)
        payloads = self._plan_deliveries(preview(new))

        def write_answer(connection: Connection, _: Sequence[int]) -> Message:
            return answer.write_answer(connection, self._turn, new, payloads, now)

        self.answer = await self._store(write_answer)
        self._is_ended = True
        await self._call_back(step)
        await self._end()
        return step

    async def _stop(self) -> None:
        """End the turn as stopped, with what was said until then."""
        now = self._options.clock()
        said = "".join(self._said).strip()
        new = await new_answer(self.turn_id, FinishAction(said), now) if said else None
        payloads = self._plan_deliveries(preview(new)) if new else []
        opened, self._open = self._open, None
        if opened is not None:
            close_step(opened, stopped_outcomes(opened), self._options.agent.tools, now)
            self.memory.steps.append(opened)
        await self._store(
            lambda connection, _: answer.write_stopped(connection, self._turn, new, payloads, now)
        )
        self._is_ended = True
        await self._end()
        raise RunInterrupted(f"turn {self.turn_id} was stopped")

    async def _store(self, also: Callable[[Connection, Sequence[int]], T] | None = None) -> T | None:
        """Store what is new in memory and metadata, together with what also writes; nothing happens if there is none."""
        context = self.context
        changes = context.records.changes(self.memory.steps, self._open)
        metadata = context.changed_metadata()
        if not changes and metadata is None and also is None:
            return None

        def operation(connection: Connection) -> tuple[list[int], T | None]:
            row_ids = context.records.apply(connection, changes)
            if metadata is not None:
                write_metadata(connection, context.id, metadata)
            return row_ids, also(connection, row_ids) if also is not None else None

        def confirm(row_ids: Sequence[int]) -> None:
            context.records.confirm(changes, row_ids)
            if metadata is not None:
                context.confirm_metadata(metadata)

        writing = asyncio.ensure_future(
            context.storage.write(operation, fence=self._claim, sort_key=(context.id,))
        )
        try:
            row_ids, result = await asyncio.shield(writing)
        except asyncio.CancelledError:
            row_ids, _ = await writing  # a write that was issued happens: know of it before going away
            confirm(row_ids)
            raise
        confirm(row_ids)
        return result

    async def _call_back(self, step: MemoryStep) -> None:
        failures = await self._options.callbacks.run(step, self)
        if failures:
            step.set_value("callback_errors", failures)
        await self._store()

    async def _read_ended(self, step: ActionStep) -> Mapping[int, ToolOutcome]:
        row_id = self.context.records.row_id(step)
        return await self.context.storage.read(lambda connection: journal.read_ended(connection, row_id or 0))

    def _record(self, prompt: Sequence[Mapping[str, Any]]) -> FrozenList:
        window = prompt.window if isinstance(prompt, Prompt) else None
        return self.context.records.log.record(prompt, window)

    def _hear(self, piece: str) -> None:
        self._said.append(piece)
        if self._live is not None:
            self._live.on_text(piece)

    async def _end(self) -> None:
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            await on_end(self._claim)


def _is_cancelled_from_outside() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _final_output(step: ActionStep) -> str:
    output = step.action_output
    return output if isinstance(output, str) else answer.as_text(output)


def _final_attachments(step: ActionStep) -> Sequence[Attachment]:
    return [*(step.observations_images or ()), *(step.get_value("observations_files") or ())]



def _count_plans(memory: AgentMemory) -> int:
    """Return how many plans were made for the current task."""
    count = 0
    for step in reversed(memory.steps):
        if isinstance(step, TaskStep):
            break
        count += isinstance(step, PlanningStep)
    return count
