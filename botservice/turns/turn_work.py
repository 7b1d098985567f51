"""The work on a turn: asking the model, running tools, answering. Each step is stored before the next begins."""

import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import Connection

from botservice.agent.agent import FinishAction, rests_on_others
from botservice.agent.agent_tool import AgentTool
from botservice.agent.checks import find_refusal
from botservice.agent.tool_threads import run_in_thread
from botservice.conversation.agent_memory import start_of_work
from botservice.conversation.context import AgentContext, note_untrusted
from botservice.conversation.field_values import CallbackFailure, Timing
from botservice.conversation.items import MemoryItem
from botservice.conversation.steps import FinalAnswerStep, MemoryStep, PlanningStep
from botservice.core.errors import InvalidField, LLMError, TurnWaiting
from botservice.core.messages import Button, Message, Role, is_blank
from botservice.people.budgets import Standing
from botservice.people.names import is_guest
from botservice.storage.claims import Claim
from botservice.texts import in_language
from botservice.turns import saving
from botservice.turns.buttons import offered_buttons
from botservice.turns.failures import Failures, is_used_up, model_failure, unchecked, used_up
from botservice.turns.model_calls import Interruption, ParsedReply, WorkCut, ask_model, record_answer, record_prompt
from botservice.turns.open_step import OpenStep
from botservice.turns.parking import Parking
from botservice.turns.run_options import RunOptions
from botservice.turns.running_calls import files_for_answer, final_answer
from botservice.turns.saving import Saver, as_text, new_answer, preview
from botservice.turns.spoken_answers import speak
from botservice.turns.sub_agents import SubAgents
from botservice.turns.sub_work import SubWork
from botservice.turns.thoughts import thinking_about
from botservice.turns.transport import Live, Payload
from botservice.turns.turn import Delivery, Turn, TurnStatus
from botservice.turns.usage_recorder import UsageRecorder
from botservice.turns.waiting_records import close_pending

logger = logging.getLogger(__name__)

_PLANNED_INLINE = 4_000  # characters of an answer that are formatted in a few milliseconds, whatever they are


T = TypeVar("T", bound=ParsedReply)
DeliveryPlan = Callable[[Message], Sequence[Payload]]


def no_deliveries(_: Message) -> Sequence[Payload]:
    """Return no message: the caller has the answer."""
    return []


class TurnWork:
    """The work on one turn.

    Attributes:
        answer: The answer, once it is stored.
        begun: The message that is to be sent once the answer is stored, if one is.
        is_spoken: Whether the question was, so that the answer is as well.
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
        has_buttons: Callable[[], bool],
    ) -> None:
        self.answer: Message | None = None
        self.begun: Delivery | None = None
        self.is_spoken = False
        self._context = context
        self._memory = context.memory
        self._options = options
        self._turn = turn
        self._claim = claim
        self._plan_deliveries = plan_deliveries
        self._live = live
        self._interruption = interruption
        self._has_buttons = has_buttons
        self._saver = Saver(context, claim)
        self._bill = UsageRecorder(options, context, turn)
        self._sub_agents: SubAgents | None = None
        self._checks = options.agent.final_answer_checks
        self._agent: object = None
        self._said: list[str] = []
        self._opened: OpenStep | None = None
        if context.open_step is not None or context.steps_taken or turn.status is TurnStatus.WAITING:
            self._open()
        self._is_new = self._opened is None

    @property
    def waiting(self) -> TurnWaiting | None:
        """The reason why the turn waits, once that is stored; None if it does not."""
        return None if self._opened is None else self._opened.waiting

    async def step(self, agent: object) -> MemoryStep:
        """Do the next thing and return its record.

        Args:
            agent: What callbacks are given.

        Raises:
            WorkCut: it was interrupted.
        """
        self._agent, self._context.on_text = agent, self._on_text
        self._context.on_thought = None if self._live is None else self._show_thought
        self._context.delegate = self._delegate
        self._bill.watch()
        try:
            return await self._step()
        finally:
            self._agent = self._context.on_text = self._context.on_thought = None
            self._context.before_call = self._context.delegate = None

    @property
    def is_untouched(self) -> bool:
        """Whether the model has said nothing yet, and no tool has run."""
        return not self._said and self._opened is None and not self._count_plans()

    async def pay_cut_off(self) -> None:
        """Store what a call of the model took that was cut off because the question has grown."""
        self._bill.take_cut_off("")
        now = self._options.clock()
        await self._saver.save_with(
            lambda connection, _: self._bill.write(connection, now), lambda _: self._bill.confirm()
        )

    def listen(self, live: Live | None) -> None:
        """Show progress to live from now on."""
        self._live = live
        if self._opened is not None:
            self._opened.live = live

    async def stop(self, agent: object) -> None:
        """End the turn as stopped, with what was said until then."""
        self._agent = agent
        if self._opened is not None:
            await self._opened.stop()
        self._agent = None
        now = self._options.clock()
        await self._end_live()
        heard = "".join(self._said).strip()
        said = "" if self._checks else heard  # nobody has seen it
        new = await new_answer(self._turn.id, FinishAction(said), now) if not is_blank(said) else None
        payloads = await self._plan_for(preview(new, language=self._context.language)) if new else []
        self._bill.take_cut_off(heard)

        def write_stopped(connection: Connection, _: Sequence[int]) -> None:
            self._bill.write(connection, now)
            saving.write_stopped(connection, self._turn, new, payloads, now)
            close_pending(connection, self._turn.id)

        await self._saver.save_with(write_stopped)

    async def _step(self) -> MemoryStep:
        opened = self._opened
        await self._saver.save(None if opened is None else opened.step)
        if self._is_new:
            await self._announce_task()
        if opened is not None:
            begun = await opened.finish()
            if begun is not None:
                return begun
            given = await self._find_given(opened)
            if given is not None:
                return await self._answer(given)
        if self._context.steps_taken >= self._options.max_steps:
            return await self._finish()
        if self._options.agent.planning_interval is not None:
            await self._plan(self._options.agent.planning_interval)
        started_at = self._options.clock()
        action = await self._ask(self._options.agent.next_action, started_at)
        if not isinstance(action, FinishAction):
            return await self._open().act(action, started_at)
        refusal = await self._find_refusal(action) if self._checks else None
        if refusal is None:
            return await self._answer(self._with_files(action), started_at)
        return await self._failures().refuse(action, refusal, started_at)

    def _open(self) -> OpenStep:
        """Return the object that runs the calls of steps, made at the first one: most turns have none."""
        if self._opened is None:
            parking = Parking(self._turn, self._context, self._plan_deliveries, self._has_buttons())
            self._opened = OpenStep(
                self._options, parking, self._claim, self._saver, self._bill, self._interruption, self._call_back
            )
            self._opened.live = self._live
        return self._opened

    def _failures(self) -> Failures:
        return Failures(self._options, self._context, self._saver, self._bill, self._call_back)

    def _delegate(self, tool: AgentTool, task: str) -> SubWork:
        """Let another agent work on a task."""
        if self._sub_agents is None:
            self._sub_agents = SubAgents(self._options, self._context, self._turn, self._claim)
        return self._sub_agents.delegate(tool, task)

    async def _end_live(self) -> None:
        """End the live display before the answer is stored: only then is it known which stream it takes over."""
        if self._live is not None:
            await self._live.close()

    async def _find_given(self, opened: OpenStep) -> FinishAction | None:
        """Return the answer that a final tool gave; one that does not pass its checks is an observation from now on."""
        final = opened.final
        if final is None or not final.is_final_answer:
            return None
        opened.tools = await self._options.agent.tools_for(self._context)
        given = final_answer(final, opened.tools)
        refusal = await self._find_refusal(given)
        if refusal is None:
            return given
        await self._failures().take_back(final, refusal)
        opened.final = None
        return None

    async def _announce_task(self) -> None:
        """Show the task to the callbacks, as the first step that is stored."""
        self._is_new = False
        task = self._context.task
        if task is not None and self._context.records.row_id(task) is not None:
            await self._call_back(task)

    async def _finish(self) -> FinalAnswerStep:
        """Answer without any more tools, because the steps are used up."""
        started_at = self._options.clock()
        if not is_used_up(self._memory, self._context.task):
            await self._failures().fail(used_up(self._options.max_steps), started_at)
        action = self._with_files(await self._ask(self._options.agent.finish, started_at))
        refusal = await self._find_refusal(action)
        if refusal is not None:
            await self._failures().fail(unchecked(refusal), started_at, model_output=as_text(action.output))
            said = in_language("answer.unchecked", self._context.language)
            action = replace(action, output=said, attachments=(), finish_reason=None)
        return await self._answer(action, started_at)

    async def _find_refusal(self, action: FinishAction) -> str | None:
        """Return why an answer does not pass the agent's checks; None if it does."""
        if not self._checks:
            return None
        return await self._interruption.guard(find_refusal(self._checks, action.output, self._memory, self._agent))

    async def _ask(self, call: Callable[[AgentContext], Coroutine[Any, Any, T]], started_at: datetime) -> T:
        """Return what the agent says, with the retries that the model's failures deserve."""
        has_asked = False

        async def ask() -> T:
            nonlocal has_asked
            if has_asked and self._said and self._live is not None and not self._checks:
                self._live.on_restart()
            has_asked = True  # until then, what was said is of the step before
            self._said.clear()
            return await self._bill.attempts.make(call(self._context))

        await self._bill.open()
        try:
            said = await ask_model(ask, self._options.model_retries, self._interruption)
        except Exception as error:
            if not isinstance(error, WorkCut):  # what was said until then is paid when the turn is stopped
                await self._bill.give_back()
            if isinstance(error, LLMError):
                await self._failures().fail(model_failure(error), started_at, kind=error.kind.value)
            raise
        self._interruption.is_beginning_again = False  # the answer was there first
        self._bill.take(said.token_usage, "".join(self._said), said.model)
        return said

    async def _plan(self, interval: int) -> None:
        taken = self._context.steps_taken
        if taken % interval or self._count_plans() > taken // interval:
            return
        started_at = self._options.clock()
        plan = await self._ask(self._options.agent.plan, started_at)
        step = PlanningStep(plan.text, timing=Timing(started_at, self._options.clock()))
        record_prompt(step, plan.prompt, self._context.records.log)
        record_answer(step, plan)
        self._bill.attempts.write(step, started_at)
        self._memory.steps.append(step)
        await self._saver.save_with(
            lambda connection, _: self._bill.write(connection, self._options.clock()), lambda _: self._bill.confirm()
        )
        await self._call_back(step)

    async def _answer(self, action: FinishAction, started_at: datetime | None = None) -> FinalAnswerStep:
        now = self._options.clock()
        step = FinalAnswerStep(action.output)
        if action.prompt:
            record_prompt(step, action.prompt, self._context.records.log)
        record_answer(step, action)
        if action.not_seen:
            step.set_value("not_seen", list(action.not_seen))
        if action.is_without_earlier:
            step.set_value("is_without_earlier", action.is_without_earlier)
        if started_at is not None:
            step.timing = Timing(started_at, now)
            self._bill.attempts.write(step, started_at)
        await self._end_live()
        new = await new_answer(self._turn.id, action, now, self._context.language)
        shown = preview(new, self._buttons() if self._context.steps_taken else (), self._context.language)
        speech = await speak(self._options, shown.text) if self.is_spoken and not shown.attachments else None
        shown = shown if speech is None else replace(shown, spoken=speech.attachment)
        payloads = await self._plan_for(shown)
        is_limited = self._options.budgets.has_limits and bool(payloads)
        warning, warned = await self._plan_warning(shown, payloads) if is_limited else (None, payloads)

        def write_answer(connection: Connection, _: Sequence[int]) -> tuple[Message, Delivery | None]:
            self._bill.write(connection, now)
            if rests_on_others(action):
                note_untrusted(connection, self._context.id)
            if speech is not None:
                self._bill.write_speech(connection, speech, now)
            is_due = warning is not None and self._bill.is_due(connection, warning, now)
            sent = warned if is_due else payloads
            message, delivery = saving.write_answer(connection, self._turn, new, sent, now)
            return replace(message, buttons=shown.buttons) if shown.buttons else message, delivery

        self._memory.steps.append(step)
        try:
            await self._saver.save_with(write_answer, self._take_answer)
        finally:
            if self.answer is None:  # it is not stored: nothing was answered
                self._memory.steps[:] = [each for each in self._memory.steps if each is not step]
        await self._call_back(step)
        return step

    async def _plan_for(self, shown: Message) -> Sequence[Payload]:
        """Return the payloads of a message; a long one is formatted beside the event loop."""
        if len(shown.text) <= _PLANNED_INLINE:
            return self._plan_deliveries(shown)
        planned: Sequence[Payload] = await run_in_thread(lambda: self._plan_deliveries(shown), name="formatting")
        return planned

    async def _plan_warning(
        self, shown: Message, payloads: Sequence[Payload]
    ) -> tuple[Standing | None, Sequence[Payload]]:
        """Return the budget that is nearly used, and an answer's messages with one about it, which no history has."""
        warning = self._bill.warning()
        if warning is None or is_guest(self._context.context_keys):  # there, one message is all, and others read it
            return None, []
        line = self._bill.warning_text(warning)
        aside = Message(None, Role.SYSTEM, line.plain, created_at=shown.created_at, formatted=line)
        return warning, [*payloads, *self._plan_deliveries(aside)]

    def _take_answer(self, written: tuple[Message, Delivery | None]) -> None:
        self._bill.confirm()
        self.answer, self.begun = written

    async def _call_back(self, step: MemoryStep) -> None:
        """Show a stored step to the callbacks, and store what they change."""
        callbacks = self._options.callbacks
        if callbacks.is_empty or not callbacks.are_for(step):
            return
        failures = await callbacks.run(step, self._agent)
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
        await self._saver.save(None if self._opened is None else self._opened.step)

    def _with_files(self, action: FinishAction) -> FinishAction:
        """Return what the model answers with the files that tools of this turn gave."""
        if not self._context.steps_taken:
            return action
        given = files_for_answer(each for each in self._context.completed_steps if self._is_own(each))
        return replace(action, attachments=tuple(dict.fromkeys([*action.attachments, *given]))) if given else action

    def _buttons(self) -> tuple[Button, ...]:
        """Return the buttons that tools of this turn offered for its answer."""
        return offered_buttons([each for each in self._context.completed_steps if self._is_own(each)])

    def _count_plans(self) -> int:
        """Return how many plans the current prompt's work has."""
        work = self._memory.steps[start_of_work(self._memory, self._context.task) :]
        return sum(1 for step in work if isinstance(step, PlanningStep) and self._is_own(step))

    def _is_own(self, step: MemoryItem) -> bool:
        return self._context.records.is_own(step)

    def _on_text(self, piece: str) -> None:
        if not self._said:
            self._bill.attempts.note_text()
        self._said.append(piece)
        if self._live is not None and not self._checks:
            self._live.on_text(piece)

    def _show_thought(self, thought: str) -> None:
        if self._live is not None and (activity := thinking_about(thought)):
            self._live.on_activity(activity)
