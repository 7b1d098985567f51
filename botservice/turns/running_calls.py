"""Running the calls of one step, side by side, and closing the step with what they gave."""

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from botservice.agent.agent import FinishAction
from botservice.agent.tool import Tool
from botservice.agent.tool_executor import ToolOutcome, execute, find_too_many
from botservice.agent.tool_progress import showing_progress
from botservice.agent.tool_questions import CallQuestions, Paused, ToolQuestions, answering
from botservice.agent.toolbox import Tools
from botservice.conversation.chat_messages import INTERRUPTED
from botservice.conversation.context import AgentContext
from botservice.conversation.field_codec import freeze
from botservice.conversation.field_values import StepError, Timing, ToolResult
from botservice.conversation.steps import ActionStep
from botservice.core.errors import InvalidField
from botservice.core.messages import Attachment, ToolCall
from botservice.storage.claims import Claim
from botservice.turns import call_queries
from botservice.turns.buttons import offer_buttons
from botservice.turns.transport import Live

_STOPPED = "Stopped by the person before it had ended: its outcome is unknown."
_AWAY_SECONDS = 10.0
_FILES = "observations_files"
_ANSWER_FILES = "answer_files"
_MOST_FILES = 10  # of an answer: as many as an album has


@dataclass(slots=True)
class CallRunner:
    """Runs calls that are stored as started, and stores each result as it comes.

    Attributes:
        step_id: The row of their step.
        live: What shows people what is done.
        may: What tools may do in this turn.
        replied: What a person has answered to calls, by their place.
        kept: What calls have kept that have no result, by their place.
        outcomes: What is known by now, by the call's place in the step.
    """

    context: AgentContext
    claim: Claim
    step_id: int
    live: Live | None
    may: CallQuestions
    replied: Mapping[int, ToolQuestions]
    kept: dict[int, Mapping[str, Any]]
    outcomes: dict[int, ToolOutcome] = field(default_factory=dict)

    async def run(
        self,
        tools: Mapping[str, Tool],
        calls: Sequence[ToolCall],
        ended: Mapping[int, ToolOutcome],
        *,
        is_resumed: bool,
    ) -> list[ToolOutcome]:
        """Return one outcome per call, in the order of the calls.

        Args:
            tools: What can be called.
            ended: What is known already.
            is_resumed: Whether the calls without a result may have run before: then only those run again that are
                idempotent or have kept something.

        Raises:
            ClaimLost: another process works on the context.
        """
        self.outcomes = {**find_too_many(tools, calls, self._done()), **ended}
        waiting = [index for index in range(len(calls)) if index not in self.outcomes]
        if is_resumed:
            for index in waiting:
                tool = tools.get(calls[index].name)
                if index not in self.kept and (tool is None or not tool.idempotent):
                    self.outcomes[index] = ToolOutcome(INTERRUPTED, error_type="Interrupted")
            waiting = [index for index in waiting if index not in self.outcomes]
        if len(waiting) == 1:
            await self._run_one(waiting[0], tools, calls, is_alone=True)
        else:
            await self._run_together(waiting, tools, calls)
        return [self.outcomes[index] for index in range(len(calls))]

    def _done(self) -> Iterator[ActionStep]:
        """Yield the earlier steps of this prompt, without those that a program put in."""
        records = self.context.records
        for step in self.context.completed_steps:
            if records.is_own(step):
                yield step

    async def _run_together(self, indices: Sequence[int], tools: Mapping[str, Tool], calls: Sequence[ToolCall]) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for index in indices:
                    group.create_task(self._run_one(index, tools, calls, is_alone=False))
        except ExceptionGroup as errors:  # what went wrong is about storing: one error says all of it
            raise errors.exceptions[0] from None

    async def _run_one(
        self, index: int, tools: Mapping[str, Tool], calls: Sequence[ToolCall], *, is_alone: bool
    ) -> None:
        call = calls[index]
        tool = tools.get(call.name)
        may_repeat = tool is None or tool.idempotent
        if index not in self.kept:
            await self.context.storage.note_done(
                self.claim, "call", f"{self.step_id}.{index}", "run" if may_repeat else "run once"
            )
        if self.live is not None:
            self.live.on_call(call)
        kept, replied = self.kept.get(index), self.replied.get(index)
        questions = replace(self.may, replied=replied, kept=kept, keep=partial(self._keep, index))
        show = None if self.live is None else partial(self.live.on_progress, call)
        with showing_progress(show), answering(questions):
            if tool is None and kept is not None:
                outcome = self._without_tool(tools, call)
            else:
                outcome = _keepable(await execute(tools, call, self.context))
        if self.live is not None:
            self.live.on_call_end(call, is_error=outcome.is_error)
        self.outcomes[index] = outcome
        if outcome.later is None:
            self.kept.pop(index, None)
        # The last result to come is stored with the step itself; one commit less for most steps.
        if not is_alone and len(self.outcomes) < len(calls) and outcome.later is None:
            await self.context.storage.write(
                lambda connection: call_queries.write_ended(connection, self.step_id, index, outcome),
                fence=self.claim,
                sort_key=(self.context.id,),
            )

    def _without_tool(self, tools: Mapping[str, Tool], call: ToolCall) -> ToolOutcome:
        """Return the outcome of a call that was begun and whose tool is away: it is waited for while that is known."""
        is_away = isinstance(tools, Tools) and tools.explain_missing(call.name) is not None
        if is_away and self.may.can_pause:
            return ToolOutcome("", later=Paused(_AWAY_SECONDS, is_told=False))
        return ToolOutcome(INTERRUPTED, error_type="Interrupted")

    async def _keep(self, index: int, kept: Mapping[str, Any]) -> None:
        self.kept[index] = kept
        await self.context.storage.write(
            lambda connection: call_queries.write_kept(connection, self.step_id, index, kept),
            fence=self.claim,
            sort_key=(self.context.id,),
        )


def _keepable(outcome: ToolOutcome) -> ToolOutcome:
    """Return outcome without its value where a step cannot keep that; the model has read its text."""
    try:
        freeze(outcome.output)
    except InvalidField:
        return replace(outcome, output=None)
    return outcome


def stopped_outcomes(step: ActionStep, known: Mapping[int, ToolOutcome]) -> list[ToolOutcome]:
    """Return one outcome per call for a step that was stopped in the middle."""
    unknown = ToolOutcome(_STOPPED, error_type="RunInterrupted")
    known = {index: outcome for index, outcome in known.items() if outcome.later is None}
    return [known.get(index, unknown) for index in range(len(step.tool_calls or ()))]


def close_step(step: ActionStep, outcomes: Sequence[ToolOutcome], tools: Mapping[str, Tool], now: datetime) -> None:
    """Write into step what its calls gave."""
    calls = step.tool_calls or ()
    step.tool_results = tuple(
        ToolResult(call.id, outcome.text, outcome.is_error, outcome.duration_seconds)
        for call, outcome in zip(calls, outcomes, strict=True)
    )
    step.observations = "\n".join(outcome.text for outcome in outcomes)
    attachments = [each for outcome in outcomes for each in outcome.attachments]
    _set_some(step, "observations_images", [each for each in attachments if _is_image(each)])
    _set_some(step, _FILES, [each for each in attachments if not _is_image(each)])
    runs = [
        {"call_id": call.id, **outcome.sub_run}
        for call, outcome in zip(calls, outcomes, strict=True)
        if outcome.sub_run is not None
    ]
    step.sub_runs = runs or None
    offer_buttons(step, [each for outcome in outcomes for each in outcome.buttons])
    failed = next((outcome for outcome in outcomes if outcome.is_error), None)
    if failed is not None:
        step.error = _error(failed)
    final = next((outcomes[index] for index in _final_calls(step, tools)), None)
    shown = _shown_files(calls, outcomes, tools) if final is None else final.attachments
    if len(shown) < len(attachments):
        step.set_value(_ANSWER_FILES, shown)
    chosen = final or (outcomes[-1] if outcomes else None)
    step.action_output = None if chosen is None else chosen.output
    step.is_final_answer = final is not None
    if step.timing is not None:
        step.timing = Timing(step.timing.start_time, now)


def final_answer(step: ActionStep, tools: Mapping[str, Tool]) -> FinishAction:
    """Return what a final tool gave, word for word, with its files."""
    results = step.tool_results or ()
    text = next((results[index].text for index in _final_calls(step, tools)), step.observations or "")
    output = text if step.action_output is None else step.action_output
    return FinishAction(output, tuple(_files_of(step)))


def files_for_answer(steps: Iterable[ActionStep]) -> tuple[Attachment, ...]:
    """Return the files that tools gave in these steps for people to see, each once; of many the newest."""
    files = dict.fromkeys(each for step in steps for each in _files_of(step))
    return tuple(files)[-_MOST_FILES:]


def _files_of(step: ActionStep) -> Sequence[Attachment]:
    own: Sequence[Attachment] | None = step.get_value(_ANSWER_FILES)
    return own if own is not None else [*(step.observations_images or ()), *(step.get_value(_FILES) or ())]


def _shown_files(
    calls: Sequence[ToolCall], outcomes: Sequence[ToolOutcome], tools: Mapping[str, Tool]
) -> tuple[Attachment, ...]:
    """Return the files of those tools whose files people see."""
    by_call = zip(calls, outcomes, strict=True)
    shown = [outcome for call, outcome in by_call if call.name in tools and tools[call.name].shows_files]
    return tuple(each for outcome in shown for each in outcome.attachments)


def _final_calls(step: ActionStep, tools: Mapping[str, Tool]) -> Iterator[int]:
    """Yield the places of the calls of final tools that did not fail."""
    for index, (call, result) in enumerate(zip(step.tool_calls or (), step.tool_results or (), strict=False)):
        tool = tools.get(call.name)
        if tool is not None and tool.is_final and not result.is_error:
            yield index


def _error(outcome: ToolOutcome) -> StepError:
    kind = outcome.error_type or "ToolError"
    return StepError(kind, outcome.text.removeprefix("Error: ").removeprefix(f"{kind}: "))


def _set_some(step: ActionStep, key: str, files: Sequence[Attachment]) -> None:
    if files:
        step.set_value(key, files)


def _is_image(attachment: Attachment) -> bool:
    return attachment.mime_type.startswith("image/")
