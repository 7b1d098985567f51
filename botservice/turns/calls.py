"""Running the calls of one step, side by side, and closing the step with what they gave."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime

from botservice.contexts import AgentContext
from botservice.memory import INTERRUPTED, ActionStep, StepError, Timing, ToolResult
from botservice.messages import ToolCall
from botservice.storage import Claim
from botservice.tools import Tool, ToolOutcome, execute
from botservice.turns import journal
from botservice.turns.transport import Live

_STOPPED = "Stopped by the person before it had ended: its outcome is unknown."


class CallRunner:
    """Runs calls that are stored as started, and stores each result as it comes.

    Attributes:
        outcomes: What is known by now, by the call's place in the step.
    """

    def __init__(
        self, tools: Mapping[str, Tool], context: AgentContext, claim: Claim, step_row_id: int, live: Live | None
    ) -> None:
        self._tools = tools
        self._context = context
        self._claim = claim
        self._row_id = step_row_id
        self._live = live
        self.outcomes: dict[int, ToolOutcome] = {}

    async def run(
        self, calls: Sequence[ToolCall], ended: Mapping[int, ToolOutcome], *, is_resumed: bool
    ) -> list[ToolOutcome]:
        """Return one outcome per call, in the order of the calls.

        Args:
            ended: What is known already.
            is_resumed: Whether the calls without a result may have run before: then only idempotent ones run again.
        """
        self.outcomes = dict(ended)
        waiting = [index for index in range(len(calls)) if index not in ended]
        if is_resumed:
            for index in list(waiting):
                tool = self._tools.get(calls[index].name)
                if tool is not None and not tool.idempotent:
                    self.outcomes[index] = ToolOutcome(INTERRUPTED, error_type="Interrupted")
                    waiting.remove(index)
        if len(waiting) == 1:
            await self._run_one(waiting[0], calls, is_alone=True)
        else:
            async with asyncio.TaskGroup() as group:
                for index in waiting:
                    group.create_task(self._run_one(index, calls, is_alone=False))
        return [self.outcomes[index] for index in range(len(calls))]

    async def _run_one(self, index: int, calls: Sequence[ToolCall], *, is_alone: bool) -> None:
        call = calls[index]
        if self._live is not None:
            self._live.on_activity(call.name)
        outcome = await execute(self._tools, call, self._context)
        # The last result to come is stored with the step itself; one commit less for most steps.
        if not is_alone and len(self.outcomes) + 1 < len(calls):
            await self._context.storage.write(
                lambda connection: journal.write_ended(connection, self._row_id, index, outcome),
                fence=self._claim,
                sort_key=(self._context.id,),
            )
        self.outcomes[index] = outcome


def stopped_outcomes(step: ActionStep, known: Mapping[int, ToolOutcome] | None = None) -> list[ToolOutcome]:
    """Return one outcome per call for a step that was stopped in the middle."""
    unknown = ToolOutcome(_STOPPED, error_type="RunInterrupted")
    return [(known or {}).get(index, unknown) for index in range(len(step.tool_calls or ()))]


def close_step(
    step: ActionStep, outcomes: Sequence[ToolOutcome], tools: Mapping[str, Tool], now: datetime
) -> None:
    """Write into step what its calls gave."""
    calls = step.tool_calls or ()
    step.tool_results = tuple(
        ToolResult(call.id, outcome.text, outcome.is_error, outcome.duration_seconds)
        for call, outcome in zip(calls, outcomes, strict=True)
    )
    step.observations = "\n".join(outcome.text for outcome in outcomes)
    attachments = [each for outcome in outcomes for each in outcome.attachments]
    images = tuple(each for each in attachments if each.mime_type.startswith("image/"))
    files = tuple(each for each in attachments if each not in images)
    if images:
        step.observations_images = images
    if files:
        step.set_value("observations_files", files)
    failed = next((outcome for outcome in outcomes if outcome.is_error), None)
    if failed is not None:
        step.error = StepError(failed.error_type or "ToolError", failed.text)
    final = _final(calls, outcomes, tools)
    chosen = final if final is not None else (outcomes[-1] if outcomes else None)
    if chosen is not None:
        step.action_output = chosen.output
    step.is_final_answer = final is not None
    if step.timing is not None:
        step.timing = Timing(step.timing.start_time, now)


def _final(
    calls: Sequence[ToolCall], outcomes: Sequence[ToolOutcome], tools: Mapping[str, Tool]
) -> ToolOutcome | None:
    """Return the outcome that is the answer: the first of a final tool that did not fail."""
    for call, outcome in zip(calls, outcomes, strict=True):
        tool = tools.get(call.name)
        if tool is not None and tool.is_final and not outcome.is_error:
            return outcome
    return None



