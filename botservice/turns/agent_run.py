"""A claimed turn, one step at a time, and what comes of it. Whatever a step did is stored when the step returns."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from types import TracebackType
from typing import Any, Self, TypeVar

from botservice.conversation.agent_memory import AgentMemory, start_of_work
from botservice.conversation.context import AgentContext
from botservice.conversation.field_values import Timing
from botservice.conversation.items import MemoryItem
from botservice.conversation.steps import FinalAnswerStep, MemoryStep
from botservice.conversation.sub_runs import usage_of
from botservice.core.errors import RunFinished, RunInterrupted, TurnGrew, TurnInProgress, TurnWaiting
from botservice.core.messages import Message, TokenUsage, ToolCall
from botservice.core.states import Outcome
from botservice.storage.claims import Claim
from botservice.telemetry.instrumentation import in_turn
from botservice.turns.agent_loop import is_model_failure, is_used_up
from botservice.turns.model_calls import Interruption, WorkCut
from botservice.turns.run_options import RunOptions
from botservice.turns.transport import Live, NoTransport, Transport
from botservice.turns.turn import Delivery, Turn, tell_end
from botservice.turns.turn_work import TurnWork

T = TypeVar("T")
_PARAGRAPH = "\n\n"


class RunState(StrEnum):
    """How a run ended."""

    SUCCESS = "success"
    MAX_STEPS_ERROR = "max_steps_error"  # there is an answer, given without more tools
    INTERRUPTED = "interrupted"
    ERROR = "error"  # the model did not answer; the step may be tried again


@dataclass(frozen=True, slots=True)
class RunResult:
    """The result of a run.

    Attributes:
        output: The answer of the agent or a final tool; None if there is none.
        token_usage: The tokens of all model calls, including those of sub-agents.
        timing: The start and end of the turn.
        steps: The steps of this prompt, its task first.
    """

    output: Any
    state: RunState
    token_usage: TokenUsage
    timing: Timing
    steps: Sequence[MemoryItem]


def read_result(
    context: AgentContext, *, began_at: datetime, answer: Message | None, is_stopped: bool
) -> RunResult | None:
    """Return what came of the run of a context's current turn; None while it goes on."""
    start = start_of_work(context.memory, context.task)
    steps = [step for step in context.memory.steps[max(0, start - 1) :] if step is not None]
    state = _state(context, steps, is_answered=answer is not None, is_stopped=is_stopped)
    if state is None:
        return None
    final = next((step.output for step in reversed(steps) if isinstance(step, FinalAnswerStep)), None)
    ends = [timing.end_time for step in steps if isinstance(timing := step.get_value("timing"), Timing)]
    ended_at = answer.created_at if answer is not None else max(filter(None, ends), default=began_at)
    output = None if answer is None else final
    return RunResult(output, state, usage_of(steps) or TokenUsage(0, 0), Timing(began_at, ended_at), tuple(steps))


def _state(
    context: AgentContext, steps: Sequence[MemoryItem], *, is_answered: bool, is_stopped: bool
) -> RunState | None:
    if is_answered:
        return RunState.MAX_STEPS_ERROR if is_used_up(context.memory, context.task) else RunState.SUCCESS
    if is_stopped:
        return RunState.INTERRUPTED
    return RunState.ERROR if steps and is_model_failure(steps[-1]) else None


class AgentRun:
    """A claimed turn in progress.

    All its state is stored, so another process can continue from the same place.

    Attributes:
        context: The conversation.
        memory: The steps; items that you add before a step are stored and sent to the model.
        turn_id: The turn's id, as in the log.
    """

    def __init__(
        self,
        options: RunOptions,
        context: AgentContext,
        turn: Turn,
        claim: Claim,
        *,
        transport: Transport = NoTransport(),  # noqa: B008 - it has no state
        live: Live | None = None,
        on_end: Callable[[Claim], Awaitable[None]] | None = None,
    ) -> None:
        self.context = context
        self.memory: AgentMemory = context.memory
        self.turn_id = turn.id
        self._began_at = turn.due_at
        self._turn = turn
        self._clock = options.clock
        self._claim = claim
        self._on_end = on_end
        self._may_pause = on_end is not None  # a program has it: nothing else stops between two steps
        self._interruption = Interruption()
        self._work = TurnWork(options, context, turn, claim, transport, live, self._interruption)
        self._is_stepping = False
        self._is_stopped = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def answer(self) -> Message | None:
        """The answer, once there is one."""
        return self._work.answer

    @property
    def result(self) -> RunResult | None:
        """The result with state, tokens, timing and steps; None while it runs."""
        return read_result(self.context, began_at=self._began_at, answer=self.answer, is_stopped=self._is_stopped)

    @property
    def begun(self) -> Delivery | None:
        """The started message of the answer, for the caller to send now."""
        return self._work.begun

    @property
    def is_interrupted(self) -> bool:
        """Whether it was asked to stop."""
        return self._interruption.is_asked

    async def step(self) -> MemoryStep:
        """Run the next step and return its record: an `ActionStep`, or the `FinalAnswerStep` that sets the answer.

        Raises:
            RunInterrupted: the run was interrupted; the text so far is stored.
            ApprovalPending: a call awaits approval; ResultPending: it awaits a result. The turn is suspended.
            RunFinished: the run already has its answer.
            LLMError: the model did not answer; you can repeat the step.
            ClaimLost: another process continues this turn.
            TurnInProgress: another task runs a step of this run.
        """
        if self.answer is not None:
            raise RunFinished(f"turn {self.turn_id} has its answer: run.answer")
        if self._is_stopped:
            raise RunInterrupted(f"turn {self.turn_id} was stopped")
        if self._is_stepping:
            raise TurnInProgress(f"a step of turn {self.turn_id} is under way: await it first")
        if self._work.waiting is not None:
            raise self._work.waiting
        self._claim.check()
        self._is_stepping, self._claim.is_idle = True, False
        self._claim.worked_on_by = asyncio.current_task()
        try:
            with in_turn(self._turn.identity):
                if self._may_pause:
                    await self._work.save()  # what the program has put in or changed since
                step = await self._work.step(self)
        except WorkCut:
            if self._interruption.is_beginning_again and not self.is_interrupted:
                await self._work.pay_cut_off()
                raise TurnGrew(f"more of the question of turn {self.turn_id} has come") from None
            await self._stop()
            raise RunInterrupted(f"turn {self.turn_id} was stopped") from None
        except TurnWaiting:
            await self._end()
            raise
        finally:
            self._is_stepping, self._claim.is_idle = False, self._may_pause
            self._claim.worked_on_by = None
        if self.answer is not None:
            tell_end(self._turn, self._work.outcome, self._clock())
            await self._end()
        return step

    async def finish(self) -> Message:
        """Run steps until there is an answer, and return it. Raises the same errors as `step`."""
        while self.answer is None:
            await self.step()
        return self.answer

    async def stream(self) -> AsyncIterator[str]:
        """Run steps until there is an answer, and yield the model's text as it arrives.

        Texts of different model calls are separate paragraphs. The answer is the last one, also if it came at once,
        from a final tool or after checks. If the caller stops iterating, the turn stays open and `resume` continues
        it. Raises the same errors as `step`.
        """
        pieces = _Pieces()
        self._work.listen(pieces)
        work = asyncio.create_task(pieces.feed(self.finish))
        try:
            async for piece in pieces:
                yield piece
            rest = pieces.rest_of((await work).text)
            if rest:
                yield rest
        finally:
            work.cancel()
            await asyncio.gather(work, return_exceptions=True)
            self._work.listen(None)

    def interrupt(self) -> None:
        """Stop the run: cancel a running model call or tools; `step` raises RunInterrupted.

        May be called from any thread.
        """
        self._interruption.ask()

    @property
    def may_begin_again(self) -> bool:
        """Whether the model has written nothing yet, and no tool has run."""
        return self._work.is_untouched and self.answer is None

    def begin_again(self) -> None:
        """Cancel the model call, unless text was written or a tool has run: `step` raises TurnGrew."""
        if self.may_begin_again:
            self._interruption.begin_again()

    def write_memory_to_messages(
        self,
        summary_mode: bool = False,  # noqa: FBT001, FBT002 - contract
    ) -> list[dict[str, Any]]:
        """Convert the memory into chat-completions messages, the system prompt first.

        Args:
            summary_mode: Leave out the system prompt, plans and the text that the model wrote along with calls.
        """
        return self.memory.write_memory_to_messages(summary_mode)

    async def close(self) -> None:
        """Release the context. An unfinished turn stays open, and `resume` continues it."""
        if self.is_interrupted and self.answer is None and not self._is_stopped and self._claim.is_held:
            await self._stop()
        await self._end()

    async def _stop(self) -> None:
        """End the turn as stopped, with what was said until then."""
        self._is_stopped = True
        with in_turn(self._turn.identity):
            await self._work.stop(self)
        tell_end(self._turn, Outcome.STOPPED, self._clock())
        await self._end()

    async def _end(self) -> None:
        on_end, self._on_end = self._on_end, None
        if on_end is not None:
            await on_end(self._claim)


class _Pieces(Live):
    """Shows a turn's progress to a program: an asynchronous iterator of texts that ends with the work on the turn."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._current = ""  # what the model has said in this call
        self._is_begun = False

    def on_text(self, piece: str) -> None:
        """Take the next piece of the answer."""
        if not piece:
            return
        self._queue.put_nowait(piece if self._current or not self._is_begun else _PARAGRAPH + piece)
        self._current += piece
        self._is_begun = True

    def on_activity(self, activity: str) -> None:  # noqa: ARG002 - only texts are shown
        """Take note that the model has said what it had to say before this."""
        self._current = ""

    def on_progress(self, call: ToolCall, text: str) -> None:
        """Do nothing: only texts are shown."""

    def on_restart(self) -> None:
        """Take note that the answer begins again."""
        self._current = ""

    async def close(self) -> None:
        """Do nothing: the end comes with the end of the work."""

    async def feed(self, work: Callable[[], Awaitable[T]]) -> T:
        """Return the result of work, and end the iteration then."""
        try:
            return await work()
        finally:
            self._queue.put_nowait(None)

    def rest_of(self, answer: str) -> str:
        """Return the part of an answer that was not shown yet."""
        said = self._current.strip()
        if said and answer.strip().startswith(said):
            return answer.strip()[len(said) :]
        return _PARAGRAPH + answer if self._is_begun else answer

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        piece = await self._queue.get()
        if piece is None:
            raise StopAsyncIteration
        return piece
