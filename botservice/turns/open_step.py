"""The open step of a turn: its calls are asked about, waited with and run; it is closed with their results."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, NoReturn

from botservice.agent.agent import Action, rests_on_others
from botservice.agent.tool import DEFAULT_HOURS, Later, Tool
from botservice.agent.tool_executor import ToolOutcome, find_too_many
from botservice.agent.tool_questions import CallQuestions, let_go
from botservice.conversation.field_values import Timing
from botservice.conversation.queries import note_untrusted
from botservice.conversation.steps import ActionStep, MemoryStep
from botservice.conversation.tool_calls import WITHDRAWN
from botservice.core.errors import TurnWaiting
from botservice.core.messages import ToolCall
from botservice.core.states import API, TurnStatus
from botservice.storage.claims import Claim
from botservice.storage.database import Connection
from botservice.turns import call_queries
from botservice.turns.approval_queries import complete_step, is_named
from botservice.turns.approvals_needed import find_to_ask, gives_untrusted, refuse_unapproved
from botservice.turns.model_calls import Interruption, WorkCut, describe_answer, describe_prompt
from botservice.turns.queries import note_step
from botservice.turns.resuming import find_replied, resume_turn
from botservice.turns.run_options import RunOptions
from botservice.turns.running_calls import CallRunner, close_step, stopped_outcomes
from botservice.turns.suspension import Suspension
from botservice.turns.transport import Live
from botservice.turns.turn_saver import save_turn
from botservice.turns.usage_recorder import UsageRecorder
from botservice.turns.waiting_calls import WaitingCall

logger = logging.getLogger(__name__)

_StoredCalls = tuple[list[WaitingCall], Mapping[int, ToolOutcome], dict[int, Mapping[str, Any]]]
"""The calls that the turn has waited with, and by their places: results, and what calls without a result have kept."""


class OpenStep:
    """The step that is open, while there is one, and what its calls come to.

    Attributes:
        step: The step; None while none is open.
        tools: What could be called when calls were last looked at.
        waiting: What the turn waits for, once that is stored: then nobody works on it.
        live: What shows people what is done.
    """

    def __init__(
        self,
        options: RunOptions,
        suspension: Suspension,
        claim: Claim,
        usage: UsageRecorder,
        interruption: Interruption,
        call_back: Callable[[MemoryStep], Awaitable[None]],
    ) -> None:
        turn, context = suspension.turn, suspension.context
        self.step: ActionStep | None = None
        if context.open_step is not None and isinstance(context.open_step.item, ActionStep):
            self.step = context.open_step.item
        self._was_asked = self.step is not None  # perhaps: another process may have begun it
        self.tools = options.agent.tools
        self.waiting: TurnWaiting | None = None
        self.live: Live | None = None
        self._is_waiting = turn.status is TurnStatus.WAITING
        self._options = options
        self._context = context
        self._turn = turn
        self._claim = claim
        self._usage = usage
        self._interruption = interruption
        self._suspension = suspension
        self._call_back = call_back

    async def act(self, action: Action, started_at: datetime) -> ActionStep:
        """Open the step that the agent wants to take, and run its calls once none needs approval.

        Raises:
            TurnWaiting: a person has to be asked, or a result comes later.
        """
        context = self._context
        number, taken = context.last_step_number + 1, context.steps_taken + 1
        values = {
            "timing": Timing(started_at),
            "tool_calls": tuple(action.tool_calls),
            "model_output": action.model_output,
            **describe_prompt(action.prompt, context.records.log),
            **describe_answer(action),
            **self._usage.attempts.describe(started_at),
        }
        step = ActionStep(number, **values)
        self._usage.attempts.note_calls([each.name for each in action.tool_calls])
        tools = await self._interruption.guard(self._options.agent.tools_for(self._context))
        context.has_read_untrusted = is_of_others = rests_on_others(action)
        asked = await self._find_to_ask(tools, action.tool_calls)

        def write_open(connection: Connection, row_ids: Sequence[int]) -> TurnWaiting | None:
            note_step(connection, self._turn.id, steps_taken=taken, last_step_number=number)
            self._usage.write(connection, started_at)
            if is_of_others:
                note_untrusted(connection, context.id)
            if asked:
                return self._suspend(connection, row_ids[-1], step, dict.fromkeys(asked), tools)
            call_queries.write_started(connection, context.id, row_ids[-1], range(len(action.tool_calls)))
            return None

        def take_note(waiting: TurnWaiting | None) -> None:
            self._usage.confirm()
            self.step = step
            self._was_asked = bool(asked)
            self.waiting = waiting
            context.last_step_number, context.steps_taken = number, taken

        await save_turn(context, self._claim, write_open, take_note, opened=step)
        if self.waiting is not None:
            raise self.waiting
        return await self._run_calls(step, tools)  # what was judged, and nothing that has come since

    async def finish(self) -> ActionStep | None:
        """Go on with the step that a process had begun, or that the turn waits with; None if there is none."""
        has_waited = self._is_waiting
        if has_waited:
            await self._resume()
        return None if self.step is None else await self._run_calls(self.step, is_resumed=not has_waited)

    async def stop(self) -> None:
        """Close the step, where one is open, at which the turn is stopped."""
        if self.step is None:
            return
        step = self.step
        waited, ended, kept = await self._read_calls(step)
        await self._close(step, await self._stopped_outcomes(step, ended))
        for each in waited:
            if each.exchange is not None:
                let_go(each.exchange)
        await self._give_up(step, kept)

    async def _find_to_ask(self, tools: Mapping[str, Tool], calls: Sequence[ToolCall]) -> list[int]:
        """Return the indices of the calls that a person is asked about, after ending the live display."""
        if all(tool.needs_approval is False for tool in tools.values()):
            return []
        done = [each for each in self._context.completed_steps if self._context.records.is_own(each)]
        refused = find_too_many(tools, calls, done)
        found = await self._interruption.guard(find_to_ask(tools, calls, self._context, refused))
        if found:
            await self._end_live()
        return found

    def _suspend(
        self,
        connection: Connection,
        step_id: int,
        step: ActionStep,
        waiting: Mapping[int, Later | None],
        tools: Mapping[str, Tool],
    ) -> TurnWaiting:
        """Suspend the turn with calls of a step, by what each of them waits for."""
        now, lasts = self._options.clock(), self._options.approval_lasts
        return self._suspension.begin(connection, step_id, step.tool_calls or (), waiting, tools, now, lasts)

    async def _resume(self) -> None:
        """Resume the turn: the decided calls of the open step are stored as started.

        Raises:
            TurnWaiting: something is not decided.
            WorkCut: the turn is to end instead.
        """
        step = self.step
        if self._interruption.is_asked or step is None:
            raise WorkCut
        now, turn, row_id = self._options.clock(), self._turn, self._row_id(step)

        def take_note(goes_on: bool) -> None:  # noqa: FBT001 - what was written
            self._is_waiting = not goes_on

        await save_turn(
            self._context,
            self._claim,
            lambda connection, _: resume_turn(connection, turn.id, turn.context_id, row_id, step.tool_calls or (), now),
            take_note,
            opened=step,
        )
        if self._is_waiting:
            raise WorkCut

    async def _run_calls(
        self, step: ActionStep, judged: Mapping[str, Tool] | None = None, *, is_resumed: bool = False
    ) -> ActionStep:
        """Run the calls of an open step that have no result yet, and close it.

        Args:
            judged: The tools by which it was judged a moment ago who is asked; without them that is judged again.
            is_resumed: Whether its calls may have run before.
        """
        waited, ended, kept = ([], {}, {}) if judged is not None else await self._read_calls(step)
        can_ask = self._turn.transport != API and not self._turn.is_of_hook and is_named(self._context.asker)
        began = self._options.clock() if step.timing is None else step.timing.start_time
        is_young = self._options.clock() - began < timedelta(hours=DEFAULT_HOURS)
        may = CallQuestions(can_ask, llm=self._options.agent.llm, can_pause=is_young and self._turn.transport != API)
        row_id, replied = self._row_id(step), find_replied(waited)
        runner = CallRunner(self._context, self._claim, row_id, self.live, may, replied, kept)
        try:
            if judged is None:
                self.tools = await self._interruption.guard(self._options.agent.tools_for(self._context))
                begun = [*ended, *kept]
                refusing = refuse_unapproved(self.tools, step, begun, self._context, waited, is_resumed=is_resumed)
                ended = {**ended, **await self._interruption.guard(refusing)}
            else:
                self.tools = judged
            work = runner.run(self.tools, step.tool_calls or (), ended, is_resumed=is_resumed)
            outcomes = await self._interruption.guard(work)
        except WorkCut:
            await self._close(step, stopped_outcomes(step, {**ended, **runner.outcomes}))
            await self._give_up(step, runner.kept)
            raise
        if any(each.later is not None for each in outcomes):
            await self._expect(step, outcomes)
        await self._close(step, outcomes)
        return step

    async def _expect(self, step: ActionStep, outcomes: Sequence[ToolOutcome]) -> NoReturn:
        """Suspend the turn until later results are handed in.

        Raises:
            TurnWaiting: always.
        """
        await self._end_live()
        row_id = self._row_id(step)
        later = {index: each.later for index, each in enumerate(outcomes) if each.later is not None}

        def write(connection: Connection, _: Sequence[int]) -> TurnWaiting:
            for index, outcome in enumerate(outcomes):
                if index not in later:
                    call_queries.write_ended(connection, row_id, index, outcome)
            return self._suspend(connection, row_id, step, later, self.tools)

        def take_note(waiting: TurnWaiting) -> None:
            self.waiting = waiting

        await save_turn(self._context, self._claim, write, take_note, opened=step)
        assert self.waiting is not None, "it is stored"  # noqa: S101 - an invariant
        raise self.waiting

    async def _give_up(self, step: ActionStep, kept: Mapping[int, Mapping[str, Any]]) -> None:
        """Have tools end what calls have begun elsewhere that have no result, by the calls' places."""
        for index, state in kept.items():
            name = (step.tool_calls or ())[index].name
            try:
                tools = await self._options.agent.tools_for(self._context)
                if name in tools:
                    await tools[name].give_up(state)
            except Exception:
                logger.exception("tool.not_given_up", extra={"tool": name})

    async def _close(self, step: ActionStep, outcomes: Sequence[ToolOutcome]) -> None:
        now = self._options.clock()
        close_step(step, outcomes, self.tools, now)
        row_id = self._row_id(step)
        self._context.memory.steps.append(step)
        self.step = self._context.open_step = None
        is_untrusted = gives_untrusted(self.tools, step.tool_calls or ())

        def write(connection: Connection, _: Sequence[int]) -> None:
            call_queries.delete_calls(connection, row_id)
            if self._was_asked:
                complete_step(connection, row_id, outcomes, now)
            if is_untrusted:
                note_untrusted(connection, self._context.id)

        await save_turn(self._context, self._claim, write)
        await self._call_back(step)

    async def _stopped_outcomes(self, step: ActionStep, ended: Mapping[int, ToolOutcome]) -> list[ToolOutcome]:
        """Return what came of the calls of an open step at which a turn is stopped."""
        row_id = self._row_id(step)
        if not await self._context.storage.read(lambda connection: call_queries.has_started(connection, row_id)):
            return [ToolOutcome(WITHDRAWN, error_type="RunInterrupted") for _ in step.tool_calls or ()]
        return stopped_outcomes(step, ended)

    async def _read_calls(self, step: ActionStep) -> _StoredCalls:
        """Return what is stored of the calls of an open step."""
        turn_id, row_id = self._turn.id, self._row_id(step)

        def read(connection: Connection) -> _StoredCalls:
            waited = [each for each in call_queries.find_of_turn(connection, turn_id) if each.step_id == row_id]
            return waited, call_queries.read_ended(connection, row_id), call_queries.read_kept(connection, row_id)

        return await self._context.storage.read(read)

    async def _end_live(self) -> None:
        """End the live display before the turn waits."""
        if self.live is not None:
            await self.live.close()

    def _row_id(self, step: ActionStep) -> int:
        row_id = self._context.records.row_id(step)
        assert row_id is not None, "an open step is stored"  # noqa: S101 - an invariant
        return row_id
