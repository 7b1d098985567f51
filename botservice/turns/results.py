"""What came of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from botservice.conversation.agent_memory import start_of_work
from botservice.conversation.context import AgentContext
from botservice.conversation.field_values import Timing
from botservice.conversation.items import MemoryItem
from botservice.conversation.steps import FinalAnswerStep
from botservice.conversation.sub_runs import usage_of
from botservice.core.messages import Message, TokenUsage
from botservice.turns.failures import is_model_failure, is_used_up


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
