"""The work on a turn: asking the model, running tools, answering. Each step is stored before the next begins."""

import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial

from botservice.agent.agent import Action, AgentTool, FinishAction, ModelReply, rests_on_others
from botservice.conversation.context import AgentContext
from botservice.conversation.field_values import CallbackFailure, Timing
from botservice.conversation.items import MemoryItem
from botservice.conversation.queries import note_untrusted
from botservice.conversation.steps import ActionStep, FailedStep, FinalAnswerStep, MemoryStep
from botservice.core.errors import InvalidField, TurnWaiting
from botservice.core.messages import Button, Message, Role, is_blank
from botservice.core.states import Outcome, TurnStatus
from botservice.core.threads import run_in_thread
from botservice.history.queries import insert_message
from botservice.people.budgets import Standing
from botservice.people.names import is_guest
from botservice.storage.claims import Claim
from botservice.storage.database import Connection
from botservice.turns.agent_loop import AgentLoop, AskAgent, T
from botservice.turns.answer_message import is_declined, new_answer, preview
from botservice.turns.asker_roles import find_roles
from botservice.turns.buttons import offered_buttons
from botservice.turns.call_queries import close_pending
from botservice.turns.delivery_queries import write_deliveries
from botservice.turns.listening_queries import GateDecision, set_decision
from botservice.turns.model_calls import Interruption, WorkCut, ask_model, describe_answer, describe_prompt
from botservice.turns.open_step import OpenStep
from botservice.turns.queries import finish_turn, note_failure, note_step
from botservice.turns.run_options import RunOptions
from botservice.turns.running_calls import files_for_answer
from botservice.turns.spoken_answers import Speech, speak
from botservice.turns.sub_agents import SubAgents, SubWork
from botservice.turns.suspension import Suspension
from botservice.turns.transport import Live, Payload, Transport
from botservice.turns.turn import Delivery, Turn
from botservice.turns.turn_saver import TurnAnswer, save_turn
from botservice.turns.usage_recorder import UsageRecorder

logger = logging.getLogger(__name__)

_PLANNED_INLINE = 4_000  # characters of an answer that are formatted in a few milliseconds, whatever they are


class TurnWork(AgentLoop):
    """The work on one turn.

    Attributes:
        answer: The answer, once it is stored; an empty one if the agent has nothing to say to people who did not ask.
        outcome: How the turn ends with it.
        begun: The message that is to be sent once the answer is stored, if one is.
    """

    def __init__(
        self,
        options: RunOptions,
        context: AgentContext,
        turn: Turn,
        claim: Claim,
        transport: Transport,
        live: Live | None,
        interruption: Interruption,
    ) -> None:
        super().__init__(options.agent, context, options.max_steps, options.clock, interruption)
        self.answer: Message | None = None
        self.outcome = Outcome.ANSWERED
        self.begun: Delivery | None = None
        self._options = options
        self._turn = turn
        self._claim = claim
        self._transport = transport
        self._live = live
        self._usage = UsageRecorder(options, context, turn)
        self._sub_agents: SubAgents | None = None
        self._checks = options.agent.final_answer_checks
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
        self.run, self.context.on_text = agent, self._on_text
        self.context.on_thought = None if self._live is None else self._show_thought
        self.context.delegate = self._delegate
        self.context.find_roles = partial(find_roles, self._options.access, self.context, self._turn.id)
        self._usage.watch()
        opened = self._opened
        try:
            if self._is_new:
                await self._announce_task()
            begun = None if opened is None else await opened.finish()
            if begun is None:
                return await self.next_step()
            self.last_acted = begun
            return begun
        finally:
            self.run = self.context.on_text = self.context.on_thought = None
            self.context.before_call = self.context.delegate = self.context.find_roles = None

    @property
    def is_untouched(self) -> bool:
        """Whether the model has written nothing yet, and no tool has run."""
        return not self._said and self._opened is None and not self.count_plans()

    async def pay_cut_off(self) -> None:
        """Store what a call of the model took that was cut off because the question has grown."""
        self._usage.take_cut_off("")
        now = self._clock()
        await save_turn(
            self.context,
            self._claim,
            lambda connection, _: self._usage.write(connection, now),
            lambda _: self._usage.confirm(),
        )

    def listen(self, live: Live | None) -> None:
        """Show progress to live from now on."""
        self._live = live
        if self._opened is not None:
            self._opened.live = live

    async def stop(self, agent: object) -> None:
        """End the turn as stopped, with what was said until then."""
        self.run = agent
        if self._opened is not None:
            await self._opened.stop()
        self.run = None
        now = self._clock()
        await self._end_live()
        received = "".join(self._said).strip()
        said = "" if self._checks else received  # nobody has seen it
        new = await new_answer(self._turn.id, FinishAction(said), now) if not is_blank(said) else None
        payloads = await self._plan_for(preview(new, language=self.context.language)) if new else []
        self._usage.take_cut_off(received)

        def write_stopped(connection: Connection, _: Sequence[int]) -> None:
            self._usage.write(connection, now)
            if new is not None:
                insert_message(connection, self._turn.context_id, new)
            write_deliveries(connection, self._turn, payloads, now)
            finish_turn(connection, self._turn.id, now, Outcome.STOPPED)
            close_pending(connection, self._turn.id)

        await save_turn(self.context, self._claim, write_stopped)

    async def act(self, action: Action, started_at: datetime) -> ActionStep:
        """Open the step that the agent wants to take, and run its calls once none needs approval.

        Raises:
            TurnWaiting: a person has to be asked, or a result comes later.
        """
        return await self._open().act(action, started_at)

    def _open(self) -> OpenStep:
        """Return the object that runs the calls of steps, made at the first one: most turns have none."""
        if self._opened is None:
            suspension = Suspension(
                self._turn, self.context, self._payloads_of, bool(self._transport.capabilities.buttons)
            )
            self._opened = OpenStep(
                self._options, suspension, self._claim, self._usage, self._interruption, self._call_back
            )
            self._opened.live = self._live
        return self._opened

    def _delegate(self, tool: AgentTool, task: str) -> SubWork:
        """Let another agent work on a task."""
        if self._sub_agents is None:
            self._sub_agents = SubAgents(self._options, self.context, self._turn, self._claim)
        return self._sub_agents.delegate(tool, task)

    async def _end_live(self) -> None:
        """End the live display before the answer is stored: only then is it known which stream it takes over."""
        if self._live is not None:
            await self._live.close()

    async def _announce_task(self) -> None:
        """Show the task to the callbacks, as the first step that is stored."""
        self._is_new = False
        task = self.context.task
        if task is not None and self.context.records.row_id(task) is not None:
            await self._call_back(task)

    async def save(self) -> None:
        """Store what was changed in earlier steps."""
        await save_turn(self.context, self._claim, opened=None if self._opened is None else self._opened.step)

    async def ask(self, call: AskAgent[T]) -> T:
        """Return what the agent says, with the retries that the model's failures deserve."""
        has_asked = False

        async def ask() -> T:
            nonlocal has_asked
            if has_asked and self._said and self._live is not None and not self._checks:
                self._live.on_restart()
            has_asked = True  # until then, what was said is of the step before
            self._said.clear()
            return await self._usage.attempts.make(call(self.context))

        await self._usage.open()
        try:
            said = await ask_model(ask, self._options.model_retries, self._interruption)
        except Exception as error:
            if not isinstance(error, WorkCut):  # what was said until then is paid when the turn is stopped
                await self._usage.give_back()
            raise
        self._interruption.is_beginning_again = False  # the answer was there first
        self._usage.take(said.token_usage, "".join(self._said), said.model)
        return said

    async def keep(self, step: MemoryStep, started_at: datetime, said: ModelReply | None = None) -> None:
        """Store a step that runs no calls, and show it to the callbacks."""
        context, usage, now = self.context, self._usage, self._clock()
        log = context.records.log
        values = (
            usage.attempts.describe_failed(started_at, log)
            if said is None
            else describe_prompt(said.prompt, log) | describe_answer(said) | usage.attempts.describe(started_at)
        )
        step.set_values_from_dict({"timing": Timing(started_at, now), **values})
        taken = context.steps_taken + 1

        def write(connection: Connection, _: Sequence[int]) -> None:
            if isinstance(step, FailedStep):
                note_failure(connection, self._turn.id, last_step_number=step.step_number)
            elif isinstance(step, ActionStep):
                note_step(connection, self._turn.id, steps_taken=taken, last_step_number=step.step_number)
            usage.write_failed(connection) if said is None else usage.write(connection, now)

        def take_note(_: None) -> None:
            usage.attempts.clear() if said is None else usage.confirm()
            self._count(step)

        self.memory.steps.append(step)
        await save_turn(self.context, self._claim, write, take_note)
        await self._call_back(step)

    async def keep_answer(self, action: FinishAction, started_at: datetime | None = None) -> FinalAnswerStep:
        """Store the answer with its deliveries, which ends the turn."""
        now = self._clock()
        values = describe_prompt(action.prompt, self.context.records.log) if action.prompt else {}
        values |= describe_answer(action)
        if action.not_seen:
            values["not_seen"] = list(action.not_seen)
        if action.is_without_earlier:
            values["is_without_earlier"] = action.is_without_earlier
        if started_at is not None:
            values |= {"timing": Timing(started_at, now), **self._usage.attempts.describe(started_at)}
        step = FinalAnswerStep(action.output, **values)
        await self._end_live()
        if is_declined(self.context, action):
            await self._decline(step, now)
            return step
        new = await new_answer(self._turn.id, action, now, self.context.language)
        offered = self._buttons() if self.context.steps_taken else ()
        shown = preview(new, (*offered, *action.buttons), self.context.language)
        speech = await self._speak(shown)
        shown = shown if speech is None else replace(shown, spoken=speech.attachment)
        payloads = await self._plan_for(shown)
        is_limited = self._options.budgets.has_limits and bool(payloads)
        warning, warned = await self._plan_warning(shown, payloads) if is_limited else (None, payloads)

        def prepare(connection: Connection) -> Sequence[Payload]:
            if rests_on_others(action):
                note_untrusted(connection, self.context.id)
            if speech is not None:
                self._usage.write_speech(connection, speech, now)
            is_due = warning is not None and self._usage.is_due(connection, warning, now)
            return warned if is_due else payloads

        answer = TurnAnswer(self._turn, new, now, self._usage.used(now), prepare)
        self.memory.steps.append(step)
        try:
            await save_turn(self.context, self._claim, answer, partial(self._take_answer, buttons=shown.buttons))
        finally:
            if self.answer is None:  # it is not stored: nothing was answered
                self.memory.steps[:] = [each for each in self.memory.steps if each is not step]
        await self._call_back(step)
        return step

    async def _decline(self, step: FinalAnswerStep, now: datetime) -> None:
        """End a turn that nobody has asked for, and in which the agent has nothing to say: nobody sees anything."""

        def write(connection: Connection, _: Sequence[int]) -> None:
            self._usage.write(connection, now)
            set_decision(connection, self._turn.id, GateDecision.DECLINED, now)
            finish_turn(connection, self._turn.id, now, Outcome.LISTENED)

        self.memory.steps.append(step)
        await save_turn(self.context, self._claim, write, lambda _: self._usage.confirm())
        self.answer, self.outcome = Message(None, Role.ASSISTANT, "", created_at=now), Outcome.LISTENED
        await self._call_back(step)

    async def _plan_for(self, shown: Message) -> Sequence[Payload]:
        """Return the payloads of a message; a long one is formatted off the event loop."""
        if len(shown.text) <= _PLANNED_INLINE:
            return self._payloads_of(shown)
        planned: Sequence[Payload] = await run_in_thread(lambda: self._payloads_of(shown), name="formatting")
        return planned

    def _payloads_of(self, shown: Message) -> Sequence[Payload]:
        return self._transport.plan(shown, self._turn.events)

    async def _speak(self, shown: Message) -> Speech | None:
        """Return an answer as speech, where the question was spoken."""
        can_speak = self._options.speaker is not None and not shown.attachments
        is_spoken = can_speak and self._transport.was_spoken(self._turn.events)
        return await speak(self._options, shown.text) if is_spoken else None

    async def _plan_warning(
        self, shown: Message, payloads: Sequence[Payload]
    ) -> tuple[Standing | None, Sequence[Payload]]:
        """Return the budget that is nearly used, and an answer's messages with one about it, which no history has."""
        warning = self._usage.warning()
        if warning is None or is_guest(self.context.context_keys):  # there, one message is all, and others read it
            return None, []
        line = self._usage.warning_text(warning)
        aside = Message(None, Role.SYSTEM, line.plain, created_at=shown.created_at, formatted=line)
        return warning, [*payloads, *self._payloads_of(aside)]

    def _take_answer(self, written: tuple[Message, Delivery | None], buttons: tuple[Button, ...]) -> None:
        self._usage.confirm()
        message, self.begun = written
        self.answer = replace(message, buttons=buttons) if buttons else message

    async def _call_back(self, step: MemoryStep) -> None:
        """Show a stored step to the callbacks, and store what they change."""
        callbacks = self._options.callbacks
        if callbacks.is_empty or not callbacks.are_for(step):
            return
        failures = await callbacks.run(step, self.run)
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
        await self.save()

    def with_files(self, action: FinishAction) -> FinishAction:
        """Return what the model answers with the files that tools of this turn gave."""
        if not self.context.steps_taken:
            return action
        given = files_for_answer(each for each in self.context.completed_steps if self.is_own(each))
        return replace(action, attachments=tuple(dict.fromkeys([*action.attachments, *given]))) if given else action

    def _buttons(self) -> tuple[Button, ...]:
        """Return the buttons that tools of this turn offered for its answer."""
        return offered_buttons([each for each in self.context.completed_steps if self.is_own(each)])

    def is_own(self, step: MemoryItem) -> bool:
        """Return whether the turn made a step by asking its model; others were put in."""
        return self.context.records.is_own(step)

    def _on_text(self, piece: str) -> None:
        if not self._said:
            self._usage.attempts.note_text()
        self._said.append(piece)
        if self._live is not None and not self._checks:
            self._live.on_text(piece)

    def _show_thought(self, thought: str) -> None:
        if self._live is not None and (activity := thinking_about(thought)):
            self._live.on_activity(activity)


_TITLE = re.compile(r"\s*(?:\*\*(?P<title>.+?)\*\*|#*\s*(?P<line>.+))")
_LONGEST = 80


def thinking_about(summary: str) -> str:
    """Return a summary of thoughts as an activity, by its title or its first line; nothing where it says nothing."""
    found = _TITLE.match(summary)
    title = " ".join((found["title"] or found["line"]).split()) if found is not None else ""
    if not title:
        return ""
    shown = title if len(title) <= _LONGEST else f"{title[:_LONGEST]}…"
    return f"thinking about {shown[0].lower()}{shown[1:].rstrip('.')}"
