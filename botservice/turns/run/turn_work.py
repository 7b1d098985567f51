"""What a turn does: asks the model, runs tools, answers. Each thing is stored before the next one begins."""

import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, NoReturn, TypeVar

from sqlalchemy import Connection

from botservice.agents import Action, FinishAction
from botservice.agents.checks import find_refusal
from botservice.budgets.budgets import Standing
from botservice.contexts.context import AgentContext
from botservice.errors import InvalidField, LLMError, TurnWaiting
from botservice.memory import (
    ActionStep,
    CallbackFailure,
    FinalAnswerStep,
    MemoryItem,
    MemoryStep,
    PlanningStep,
    Timing,
)
from botservice.memory.agent_memory import start_of_work
from botservice.messages import Message, ToolCall
from botservice.storage import Claim
from botservice.texts import in_language
from botservice.tools import Tool, ToolOutcome
from botservice.tools.limits import find_too_many
from botservice.tools.threads import run_in_thread
from botservice.turns.buttons import offered_buttons
from botservice.turns.failures import is_used_up, model_failure, unchecked, used_up
from botservice.turns.options import RunOptions
from botservice.turns.records import note_step
from botservice.turns.run import answer, journal
from botservice.turns.run.answer import as_text, new_answer, preview
from botservice.turns.run.asking import ask_model
from botservice.turns.run.billing import Bill
from botservice.turns.run.calls import CallRunner, close_step, final_answer, stopped_outcomes
from botservice.turns.run.interruption import Interruption, WorkCut
from botservice.turns.run.mishaps import Mishaps
from botservice.turns.run.prompts import Said, record_answer, record_prompt
from botservice.turns.run.saving import Saver
from botservice.turns.run.sub_agents import SubAgents
from botservice.turns.run.thoughts import thinking_about
from botservice.turns.run.unasked import refuse_unasked
from botservice.turns.transport import Live, Payload
from botservice.turns.turn import Delivery, Turn, TurnStatus
from botservice.turns.waiting.going_on import STOPPED, Settled, go_on, has_open, wait_again
from botservice.turns.waiting.need import find_to_ask
from botservice.turns.waiting.parking import Parking
from botservice.turns.waiting.records import close_pending

logger = logging.getLogger(__name__)

_PLANNED_INLINE = 4_000  # characters of an answer that are formatted in a few milliseconds, whatever they are


T = TypeVar("T", bound=Said)
DeliveryPlan = Callable[[Message], Sequence[Payload]]


def no_deliveries(_: Message) -> Sequence[Payload]:
    """Return no message: the caller has the answer."""
    return []


class TurnWork:
    """The work on one turn.

    Attributes:
        answer: The answer, once it is stored.
        begun: The message that is to be sent once the answer is stored, if one is.
        waiting: What the turn waits for, once that is stored: then nobody works on it.
    """

    def __init__(
        self,
        options: RunOptions,
        context: AgentContext,
        turn: Turn,
        claim: Claim,
        plan_deliveries: DeliveryPlan,
        live: Live | None,
        interruption: Interruption,
    ) -> None:
        self.answer: Message | None = None
        self.begun: Delivery | None = None
        self.waiting: TurnWaiting | None = None
        self._context = context
        self._memory = context.memory
        self._options = options
        self._turn = turn
        self._claim = claim
        self._plan_deliveries = plan_deliveries
        self._live = live
        self._interruption = interruption
        self._saver = Saver(context, claim)
        self._bill = Bill(options, context, turn)
        self._mishaps = Mishaps(options, context, self._saver, self._bill, self._call_back)
        self._sub_agents = SubAgents(options, context, turn, claim)
        self._checks = options.agent.final_answer_checks
        self._tools = options.agent.tools
        self._agent: object = None
        self._said: list[str] = []
        self._open: ActionStep | None = None
        if context.open_step is not None and isinstance(context.open_step.item, ActionStep):
            self._open = context.open_step.item
        self._final = self._find_final()
        self._is_new = context.steps_taken == 0 and self._open is None
        self._is_waiting = turn.status is TurnStatus.WAITING
        self._parking = Parking(turn, context, plan_deliveries)

    async def step(self, agent: object) -> MemoryStep:
        """Do the next thing and return its record.

        Args:
            agent: What callbacks are given.

        Raises:
            WorkCut: somebody interrupted it.
        """
        self._agent, self._context.on_text = agent, self._hear
        self._context.on_thought = None if self._live is None else self._show_thought
        self._bill.watch()
        self._sub_agents.open()
        try:
            return await self._step()
        finally:
            self._sub_agents.close()
            self._agent = self._context.on_text = self._context.on_thought = self._context.before_call = None

    def listen(self, live: Live | None) -> None:
        """Show what the bot does to somebody from now on."""
        self._live = live

    async def stop(self, agent: object) -> None:
        """End the turn as stopped, with what was said until then."""
        self._agent = agent
        if self._open is not None:
            await self._close(self._open, await self._stopped_outcomes(self._open))
        self._agent = None
        now = self._options.clock()
        await self._end_live()
        heard = "".join(self._said).strip()
        said = "" if self._checks else heard  # nobody has seen it
        new = await new_answer(self._turn.id, FinishAction(said), now) if said else None
        payloads = await self._plan_for(preview(new, language=self._context.language)) if new else []
        self._bill.take_cut_off(heard)

        def write_stopped(connection: Connection, _: Sequence[int]) -> None:
            self._bill.write(connection, now)
            answer.write_stopped(connection, self._turn, new, payloads, now)
            close_pending(connection, self._turn.id)

        await self._saver.save_with(write_stopped, _ignore)

    async def _step(self) -> MemoryStep:
        await self._saver.save(self._open)
        await self._announce_task()
        begun = await self._finish_begun()
        if begun is not None:
            return begun
        given = await self._find_given()
        if given is not None:
            return await self._answer(given)
        if self._context.steps_taken >= self._options.max_steps:
            return await self._finish()
        await self._plan()
        started_at = self._options.clock()
        action = await self._ask(self._options.agent.next_action, started_at)
        if not isinstance(action, FinishAction):
            return await self._act(action, started_at)
        refusal = await self._find_refusal(action)
        if refusal is None:
            return await self._answer(action, started_at)
        return await self._mishaps.refuse(action, refusal, started_at)

    async def _finish_begun(self) -> ActionStep | None:
        """Go on with the step that a process had begun, or that the turn waits with; None where there is none."""
        if self._open is not None and not self._is_waiting:
            self._is_waiting = await self._wait_again()
        if self._is_waiting:
            return await self._go_on()
        return None if self._open is None else await self._run_calls(self._open, is_resumed=True)

    async def _wait_again(self) -> bool:
        """Have a turn wait that has calls which wait, whatever else it was taken for; return whether it has any."""
        storage, turn_id, now = self._context.storage, self._turn.id, self._options.clock()
        if not await storage.read(lambda connection: has_open(connection, turn_id)):
            return False
        logger.warning("turn.waits_again")
        await storage.write(lambda connection: wait_again(connection, turn_id, now), fence=self._claim)
        return True

    async def _find_given(self) -> FinishAction | None:
        """Return the answer that a final tool gave; one that does not pass its checks is an observation from now on."""
        if self._final is None or not self._final.is_final_answer:
            return None
        self._tools = await self._options.agent.tools_for(self._context)
        given = final_answer(self._final, self._tools)
        refusal = await self._find_refusal(given)
        if refusal is None:
            return given
        await self._mishaps.take_back(self._final, refusal)
        self._final = None
        return None

    async def _announce_task(self) -> None:
        """Show the task to the callbacks, as the first step that is stored."""
        is_new, self._is_new = self._is_new, False
        task = self._context.task
        if is_new and task is not None and self._context.records.row_id(task) is not None:
            await self._call_back(task)

    async def _finish(self) -> FinalAnswerStep:
        """Answer without any more tools, because the steps are used up."""
        started_at = self._options.clock()
        if not is_used_up(self._memory, self._context.task):
            await self._mishaps.fail(used_up(self._options.max_steps), started_at)
        action = await self._ask(self._options.agent.finish, started_at)
        refusal = await self._find_refusal(action)
        if refusal is not None:
            await self._mishaps.fail(unchecked(refusal), started_at, model_output=as_text(action.output))
            said = in_language("answer.unchecked", self._context.language)
            action = replace(action, output=said, attachments=(), finish_reason=None)
        return await self._answer(action, started_at)

    async def _find_refusal(self, action: FinishAction) -> str | None:
        """Return what is said against an answer that does not pass the agent's checks."""
        if not self._checks:
            return None
        return await self._interruption.guard(find_refusal(self._checks, action.output, self._memory, self._agent))

    async def _ask(self, call: Callable[[AgentContext], Coroutine[Any, Any, T]], started_at: datetime) -> T:
        """Return what the agent says, with the retries that the model's failures deserve."""

        async def ask() -> T:
            if self._said and self._live is not None and not self._checks:
                self._live.on_restart()
            self._said.clear()
            return await call(self._context)

        await self._bill.open()
        try:
            said = await ask_model(ask, self._options.model_retries, self._interruption)
        except Exception as error:
            if not isinstance(error, WorkCut):  # what was said until then is paid when the turn is stopped
                await self._bill.give_back()
            if isinstance(error, LLMError):
                await self._mishaps.fail(model_failure(error), started_at)
            raise
        self._bill.take(said.token_usage, "".join(self._said), said.model)
        return said

    async def _plan(self) -> None:
        interval = self._options.agent.planning_interval
        taken = self._context.steps_taken
        if interval is None or taken % interval or self._count_plans() > taken // interval:
            return
        started_at = self._options.clock()
        plan = await self._ask(self._options.agent.plan, started_at)
        step = PlanningStep(plan.text, timing=Timing(started_at, self._options.clock()))
        record_prompt(step, plan.prompt, self._context.records.log)
        record_answer(step, plan)
        self._memory.steps.append(step)
        await self._saver.save_with(
            lambda connection, _: self._bill.write(connection, self._options.clock()), self._confirm_bill
        )
        await self._call_back(step)

    async def _act(self, action: Action, started_at: datetime) -> ActionStep:
        context = self._context
        number, taken = context.last_step_number + 1, context.steps_taken + 1
        step = ActionStep(number, timing=Timing(started_at), tool_calls=tuple(action.tool_calls))
        step.set_value("model_output", action.model_output)
        record_prompt(step, action.prompt, context.records.log)
        record_answer(step, action)
        tools = await self._interruption.guard(self._options.agent.tools_for(self._context))
        asked = await self._find_to_ask(tools, action.tool_calls)

        def write_open(connection: Connection, row_ids: Sequence[int]) -> TurnWaiting | None:
            note_step(connection, self._turn.id, steps_taken=taken, last_step_number=number)
            self._bill.write(connection, started_at)
            if asked:
                now, lasts = self._options.clock(), self._options.approval_lasts
                return self._parking.ask(connection, row_ids[-1], asked, now, lasts)
            journal.write_started(connection, context.id, row_ids[-1], range(len(action.tool_calls)))
            return None

        def take_note(waiting: TurnWaiting | None) -> None:
            self._bill.confirm()
            self._open = step
            self.waiting = waiting
            context.last_step_number, context.steps_taken = number, taken

        await self._saver.save_with(write_open, take_note, step)
        if self.waiting is not None:
            raise self.waiting
        return await self._run_calls(step, {}, tools)  # what was judged, and nothing that has come since

    async def _find_to_ask(self, tools: Mapping[str, Tool], calls: Sequence[ToolCall]) -> dict[int, ToolCall]:
        """Return the calls of a step, by their place, that a person is asked about; what is shown ends before that."""
        if all(tool.needs_approval is False for tool in tools.values()):
            return {}
        done = [each for each in self._context.completed_steps if self._is_own(each)]
        refused = find_too_many(tools, calls, done)
        found = await self._interruption.guard(find_to_ask(tools, calls, self._context, refused))
        if found:
            await self._end_live()
        return {index: calls[index] for index in found}

    async def _go_on(self) -> ActionStep:
        """Go on with the step that the turn waits with: what is to run is stored as started, and then run."""
        if self._interruption.is_asked:
            raise WorkCut
        now, context = self._options.clock(), self._context
        step, settled = self._open, Settled(is_withdrawn=True)

        def take_note(became: Settled) -> None:
            nonlocal settled
            settled = became
            self._is_waiting = became.is_withdrawn

        if step is not None:
            calls, row_id = step.tool_calls or (), self._row_id(step)
            await self._saver.save_with(
                lambda connection, _: go_on(connection, self._turn.id, context.id, row_id, calls, now), take_note, step
            )
        if settled.is_withdrawn or step is None:
            raise WorkCut
        return await self._run_calls(step, settled.ended)

    async def _run_calls(
        self,
        step: ActionStep,
        ended: Mapping[int, ToolOutcome] | None = None,
        judged: Mapping[str, Tool] | None = None,
        *,
        is_resumed: bool = False,
    ) -> ActionStep:
        """Run the calls of an open step that have no result yet, and close it.

        Args:
            judged: The tools by which it was judged a moment ago who is asked; without them that is judged again.
        """
        if ended is None:
            ended = await self._read_ended(step)
        runner = CallRunner(self._context, self._claim, self._row_id(step), self._live)
        try:
            if judged is None:
                self._tools = await self._interruption.guard(self._options.agent.tools_for(self._context))
                ended = {**ended, **await self._refuse_unasked(step, ended, is_resumed=is_resumed)}
            else:
                self._tools = judged
            work = runner.run(self._tools, step.tool_calls or (), ended, is_resumed=is_resumed)
            outcomes = await self._interruption.guard(work)
        except WorkCut:
            await self._close(step, stopped_outcomes(step, {**ended, **runner.outcomes}))
            raise
        if any(each.later is not None for each in outcomes):
            await self._expect(step, outcomes)
        await self._close(step, outcomes)
        return step

    async def _refuse_unasked(
        self, step: ActionStep, ended: Mapping[int, ToolOutcome], *, is_resumed: bool
    ) -> dict[int, ToolOutcome]:
        """Return what comes of the calls that need a word which nobody gave."""
        turn_id, step_id = self._turn.id, self._row_id(step)
        return await self._interruption.guard(
            refuse_unasked(
                self._tools, step, ended, self._context, turn_id=turn_id, step_id=step_id, is_resumed=is_resumed
            )
        )

    async def _expect(self, step: ActionStep, outcomes: Sequence[ToolOutcome]) -> NoReturn:
        """Have the turn wait for the results that come later.

        Raises:
            TurnWaiting: always.
        """
        await self._end_live()
        now, row_id, calls = self._options.clock(), self._row_id(step), step.tool_calls or ()
        later = {index: (calls[index], each.later) for index, each in enumerate(outcomes) if each.later is not None}

        def write(connection: Connection, _: Sequence[int]) -> TurnWaiting:
            for index, outcome in enumerate(outcomes):
                if index not in later:
                    journal.write_ended(connection, row_id, index, outcome)
            return self._parking.expect(connection, row_id, later, now)

        def take_note(waiting: TurnWaiting) -> None:
            self.waiting = waiting

        await self._saver.save_with(write, take_note, step)
        assert self.waiting is not None, "it is stored"  # noqa: S101 - an invariant
        raise self.waiting

    async def _close(self, step: ActionStep, outcomes: Sequence[ToolOutcome]) -> None:
        close_step(step, outcomes, self._tools, self._options.clock())
        row_id = self._row_id(step)
        self._memory.steps.append(step)
        self._open = self._context.open_step = None
        if step.is_final_answer:
            self._final = step
        await self._saver.save_with(lambda connection, _: journal.delete_calls(connection, row_id), _ignore)
        await self._call_back(step)

    async def _answer(self, action: FinishAction, started_at: datetime | None = None) -> FinalAnswerStep:
        now = self._options.clock()
        step = FinalAnswerStep(action.output)
        if action.prompt:
            record_prompt(step, action.prompt, self._context.records.log)
        record_answer(step, action)
        if started_at is not None:
            step.timing = Timing(started_at, now)
        await self._end_live()
        new = await new_answer(self._turn.id, action, now, self._context.language)
        buttons = offered_buttons([each for each in self._context.completed_steps if self._is_own(each)])
        shown = preview(new, buttons, self._context.language)
        payloads = await self._plan_for(shown)
        warning, warned = await self._plan_warning(shown) if payloads else (None, payloads)

        def write_answer(connection: Connection, _: Sequence[int]) -> tuple[Message, Delivery | None]:
            self._bill.write(connection, now)
            is_due = warning is not None and self._bill.is_due(connection, warning, now)
            sent = warned if is_due else payloads
            message, delivery = answer.write_answer(connection, self._turn, new, sent, now)
            return replace(message, buttons=buttons), delivery

        self._memory.steps.append(step)
        try:
            await self._saver.save_with(write_answer, self._take_answer)
        finally:
            if self.answer is None:  # it is not stored: nothing was answered
                self._memory.steps[:] = [each for each in self._memory.steps if each is not step]
        await self._call_back(step)
        return step

    async def _end_live(self) -> None:
        """End what is shown of an answer before it is stored: only then is it known which stream it takes over."""
        if self._live is not None:
            await self._live.close()

    async def _plan_for(self, shown: Message) -> Sequence[Payload]:
        """Return what makes a message visible; a long one is formatted beside the event loop."""
        if len(shown.text) <= _PLANNED_INLINE:
            return self._plan_deliveries(shown)
        planned: Sequence[Payload] = await run_in_thread(lambda: self._plan_deliveries(shown), name="formatting")
        return planned

    async def _plan_warning(self, shown: Message) -> tuple[Standing | None, Sequence[Payload]]:
        """Return the budget that is nearly used, and the answer with a line about it; the history has the answer."""
        warning = self._bill.warning()
        if warning is None:
            return None, []
        text = f"{shown.text}\n\n{self._bill.warning_text(warning)}"
        return warning, await self._plan_for(replace(shown, text=text))

    def _take_answer(self, written: tuple[Message, Delivery | None]) -> None:
        self._bill.confirm()
        self.answer, self.begun = written

    def _confirm_bill(self, _: None) -> None:
        self._bill.confirm()

    async def _call_back(self, step: MemoryStep) -> None:
        """Show a stored step to the callbacks, and store what they change."""
        if not self._options.callbacks.are_for(step):
            return
        failures = await self._options.callbacks.run(step, self._agent)
        if not all(isinstance(item, MemoryItem | None) for item in self._memory.steps):
            self._memory.steps[:] = [item for item in self._memory.steps if isinstance(item, MemoryItem)]
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
        done = self._context.completed_steps
        return next((step for step in reversed(done) if step.is_final_answer and self._is_own(step)), None)

    def _count_plans(self) -> int:
        """Return how many plans the current prompt's work has."""
        work = self._memory.steps[start_of_work(self._memory, self._context.task) :]
        return sum(1 for step in work if isinstance(step, PlanningStep) and self._is_own(step))

    def _is_own(self, step: MemoryItem) -> bool:
        return self._context.records.is_own(step)

    def _row_id(self, step: ActionStep) -> int:
        row_id = self._context.records.row_id(step)
        assert row_id is not None, "an open step is stored"  # noqa: S101 - an invariant
        return row_id

    async def _stopped_outcomes(self, step: ActionStep) -> list[ToolOutcome]:
        """Return what came of the calls of an open step at which a turn is stopped."""
        row_id = self._row_id(step)
        if not await self._context.storage.read(lambda connection: journal.has_started(connection, row_id)):
            return [ToolOutcome(STOPPED, error_type="RunInterrupted") for _ in step.tool_calls or ()]
        return stopped_outcomes(step, await self._read_ended(step))

    async def _read_ended(self, step: ActionStep) -> Mapping[int, ToolOutcome]:
        row_id = self._row_id(step)
        return await self._context.storage.read(lambda connection: journal.read_ended(connection, row_id))

    def _hear(self, piece: str) -> None:
        self._said.append(piece)
        if self._live is not None and not self._checks:
            self._live.on_text(piece)

    def _show_thought(self, thought: str) -> None:
        if self._live is not None and (activity := thinking_about(thought)):
            self._live.on_activity(activity)


def _ignore(_: object) -> None:
    return None
