"""The service that users hold in their hands: an agent, a storage, and turns."""

import asyncio
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any, Self

from pydantic import BaseModel

from botservice.agent.agent import DEFAULT_MAX_STEPS, Agent, adopted_agent
from botservice.agent.functions_based_agent import DEFAULT_PROMPT, FunctionsBasedAgent, prompt_of
from botservice.commands.command import Command, checked_commands
from botservice.commands.standard import standard_commands
from botservice.config.setting_choices import check_bot_name
from botservice.conversation.callbacks import StepCallbacks
from botservice.conversation.context import AgentContext
from botservice.conversation.images import as_attachment
from botservice.core.argument_checks import adopt, check, check_can, check_listed
from botservice.core.errors import InvalidOutput, StorageUnavailable, TurnInProgress
from botservice.core.messages import Attachment, Author, Button, InboundMessage, Message
from botservice.core.states import TurnStatus
from botservice.history.embeddings import Embedder
from botservice.llm.structured_output import OutputForm
from botservice.people.access import Access
from botservice.people.budgets import Budgets
from botservice.storage.claims import Claim
from botservice.storage.database import Storage
from botservice.turns.agent_run import AgentRun
from botservice.turns.call_decisions import decide, hand_in
from botservice.turns.proactive_messages import Sent, checked_words, prepare_message, send
from botservice.turns.program_claims import ProgramClaims, open_storage
from botservice.turns.program_turns import (
    finish_cut_off_turn,
    finish_turn_of_program,
    load_due_turn,
    load_running_turn,
    reopen_failed_turn,
)
from botservice.turns.queries import begin_again
from botservice.turns.resuming import check_none_waits
from botservice.turns.retry_policies import MODEL_RETRIES, RetryPolicy
from botservice.turns.run_options import Clock, RunOptions, clock_of
from botservice.turns.transport import Live, Transport
from botservice.turns.turn import Turn
from botservice.turns.turn_messages import begin_program_turn


class AgentService:
    """Runs turns of one agent over the contexts of one storage.

    Attributes:
        agent: Decides on the next action; shared by all contexts.
        embedder: Adds search by meaning while the service is served; None for the one of the settings.
        budgets: Limits of use; None for those of the settings while the service is served.
        max_steps: The most steps of a prompt that run tools; None for the value of the settings while it is served.
        access: Decides who has access while it is served; None for the settings.
        commands: The commands of the service, such as /help, while it is served.
        transports: Additional transports while it is served, besides those of the settings.
        on_sent: Called with the id of a conversation after `send` stored a message; wakes the worker of this process.
    """

    def __init__(  # noqa: PLR0913 - each is a choice of the user's
        self,
        agent: Agent,
        storage: Storage | None = None,
        *,
        max_steps: int | None = None,
        step_callbacks: Iterable[Callable[..., Any]] | Mapping[type, Any] | None = None,
        embedder: Embedder | None = None,
        model_retries: RetryPolicy = MODEL_RETRIES,
        clock: Clock | None = None,
        budgets: Budgets | None = None,
        approval_hours: float | None = None,
        commands: Iterable[Command] = (),
        transports: Iterable[Transport] = (),
        name: str | None = None,
    ) -> None:
        """Make a service; nothing starts by itself.

        Args:
            storage: Left out, the service gets the one of DATABASE_URL when it is served.
            max_steps: How many steps of a prompt may run tools; then one more model call gives the answer. By default
                what the agent says, then what the settings say while it is served, or else 10.
            step_callbacks: Called after a step is stored: a list for action steps, or a dict from step class to
                callables. Those of the agent are called first.
            embedder: What adds meaning to search while the service is served. Without `serve`, an
                `EmbeddingIndexer(storage, embedder)` around the prompts does the same.
            budgets: What people, chats and the service may use; by default what the settings say while it is served.
            approval_hours: How long a person may take to allow a call that asks first; by default the same, or else 24.
            commands: More of them; one with the name of a standard one takes its place.
            transports: Ways to reach it of your own.
            name: What the bot is called, as its pages and the standard prompt have it; by default BOT_NAME while it is
                served.
            clock: What time it is; by default what the storage says, which all replicas share.
            model_retries: How often, and for how long, a model that fails is asked again within a step.

        Raises:
            ValueError: max_steps is negative, approval_hours are not above 0, or the name is no line of 1 to 64
                characters.
            InvalidField: a callback cannot be called with a step.
            InvalidArgument: something is given that cannot do what it is asked for, or two commands have one name.
        """
        agent = adopted_agent(agent)
        if storage is not None:
            check_can("storage", storage, "read", "write", remedy="open one: await Storage.open(…)")
        if embedder is not None:
            embedder = adopt(Embedder, embedder, "embedder=", remedy="give one: OpenAIEmbedder()")
        check_can("model_retries=", model_retries, "delay", remedy="give a RetryPolicy(max_attempts=…, …)")
        if max_steps is not None and max_steps < 0:
            raise ValueError(f"max_steps must be 0 or more, not {max_steps}")
        if approval_hours is not None and not 0 < approval_hours < float("inf"):
            raise ValueError(f"approval_hours must be above 0, not {approval_hours}")
        self.agent = agent
        self.name: str | None = None
        if name is not None:
            self.take_name(name)
        self.approval_hours = approval_hours
        self._storage = storage
        self._has_clock = clock is not None
        self.embedder = embedder
        self.commands = standard_commands(checked_commands(commands))
        self.transports = tuple(adopt(Transport, each) for each in transports)
        self.budgets = budgets
        self.access: Access | None = None
        self.max_steps = agent.max_steps if max_steps is None else max_steps
        callbacks, clock = agent.step_callbacks.followed_by(StepCallbacks(step_callbacks)), clock or clock_of(storage)
        steps = DEFAULT_MAX_STEPS if self.max_steps is None else self.max_steps
        self.options = RunOptions(agent, callbacks, steps, clock, model_retries, budgets or Budgets())
        if approval_hours is not None:
            self.options = replace(self.options, approval_lasts=timedelta(hours=approval_hours))
        self.on_sent: Callable[[int], object] = lambda _: None
        self._claims = ProgramClaims()

    def take_name(self, name: str) -> None:
        """Set the bot's name, also in the standard prompt; your own prompts stay as they are.

        Raises:
            ValueError: the name is not a line of 1 to 64 characters.
        """
        self.name = check_bot_name(name)
        if isinstance(self.agent, FunctionsBasedAgent) and self.agent.prompt == DEFAULT_PROMPT:
            self.agent.prompt = prompt_of(self.name)

    @property
    def storage(self) -> Storage | None:
        """The storage; None until the service is served."""
        return self._storage

    @storage.setter
    def storage(self, storage: Storage | None) -> None:
        self._storage = storage
        if not self._has_clock:
            self.options = replace(self.options, clock=clock_of(storage))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop what toolsets of the agent started, such as MCP servers; the storage stays open."""
        await self.agent.close()

    async def prompt(
        self,
        context: AgentContext,
        text: str,
        *,
        author: Author | str | None = None,
        attachments: Iterable[Attachment] = (),
        output: type[BaseModel] | None = None,
        live: Live | None = None,
    ) -> Message:
        """Answer text in a whole turn. Prompts of one context are answered one after the other.

        An interrupted turn of this context is finished first.

        Args:
            output: A pydantic model: the answer is one, as `output` of the message. An answer that is not valid goes
                back to the model, within max_steps.
            live: Is shown what the bot says and does meanwhile.

        Raises:
            InvalidOutput: the steps are used up, and no answer was valid.
            LLMError: the model stays unavailable; the message is stored, and `resume` tries again.
            TurnInProgress: a paused run holds the context, or a callback of its own turn calls this.
            BudgetExceeded: a budget is used up; the message is stored, and `resume` tries again.
            RunInterrupted: a callback stopped the run.
            ApprovalPending: a call awaits approval: `decide` decides, and `resume` continues.
            ResultPending: the result of a tool comes later: `hand_in` delivers it, and `resume` continues.
            InvalidArgument: text is not a str.
        """
        message = InboundMessage(_checked_text(text), Author.of(author), tuple(map(as_attachment, attachments)))
        form = None if output is None else OutputForm.of(output)
        async with self._claims.in_order(context) as claim:
            options = self._options_of(context)
            await finish_cut_off_turn(context, claim, options)
            turn = await begin_program_turn(context, claim, message, options, keeps_steps=False, is_told=False)
            context.output_form = form
            try:
                answer = await finish_turn_of_program(context, turn, claim, options, live)
            finally:
                context.output_form = None
            return answer if form is None else _with_output(answer, form)

    async def send(
        self,
        context: AgentContext,
        text: str,
        *,
        attachments: Iterable[Attachment] = (),
        buttons: Iterable[Button] = (),
        key: str | None = None,
    ) -> Message:
        """Send a message that answers nothing, and return it. It becomes part of the history.

        It is stored when this returns. A worker of any process delivers it after earlier messages of the conversation.

        Args:
            buttons: The buttons below it; they are not stored with the history.
            key: Identifies the message in this conversation: sending again with the same key returns the first one, as
                long as events are stored (`KEEP_EVENTS_DAYS`, 7).

        Raises:
            ChatRefused: the conversation is blocked or has no access.
            StorageError: the conversation is gone, or the message of the key has been deleted.
            InvalidArgument: text is not a str or is empty, or the key is not a str of 1 to 255 characters.
        """
        pressed = check_listed("buttons=", buttons, remedy="give a list of Button")
        for each in pressed:
            check_can("a button", each, "text", "says", remedy="give Button('Yes')")
        files = checked_words(text, attachments, key)
        new = await prepare_message(text, files, self._options_of(context).clock())
        access = self.options.access
        sent = await send(open_storage(context), access, context.id, new, buttons=pressed, key=key)
        self.on_sent(context.id)
        return sent.message

    async def send_to(self, context_id: int, text: str, *, key: str | None = None) -> Sent:
        """Send a message as `send` does, to a conversation of this service's storage, and say whether it is new."""
        storage = self.storage
        if storage is None:
            raise StorageUnavailable("the service has no storage yet")
        new = await prepare_message(text, checked_words(text, (), key), self.options.clock())
        sent = await send(storage, self.options.access, context_id, new, key=key)
        self.on_sent(context_id)
        return sent

    async def start(
        self,
        context: AgentContext,
        task: str | None = None,
        *,
        reset: bool = True,
        author: Author | str | None = None,
        attachments: Iterable[Attachment] = (),
    ) -> AgentRun:
        """Start a turn that you run one step at a time.

        Args:
            task: The question; by default that of a `TaskStep` in `context.memory.steps`.
            reset: Whether it starts with an empty memory; otherwise the steps of earlier prompts stay in the prompt.

        Raises:
            TurnInProgress: a turn is open in this context; `resume` continues it.
            InvalidArgument: task is not a str, or there is neither a task nor a `TaskStep`.
        """
        given = context.put_in_task() if task is None else None
        text = _checked_text(task if given is None else given.task)
        files = attachments if given is None else [*(given.task_images or ()), *attachments]
        message = InboundMessage(text, Author.of(author), tuple(map(as_attachment, files)))
        claim = await self._claims.claim(context, waits=False)
        try:
            _check_none_open(await load_running_turn(context, with_steps=not reset))
            turn = await begin_program_turn(context, claim, message, self._options_of(context), keeps_steps=not reset)
        except BaseException:
            await asyncio.shield(open_storage(context).claims.release(claim))
            raise
        return self._run(context, turn, claim)

    async def resume(self, context: AgentContext) -> AgentRun | None:
        """Continue the turn of this context that was interrupted, suspended or failed last; None if there is none.

        A paused run of this process is taken over: the old object does nothing more.

        Raises:
            TurnInProgress: a process works on the turn now.
            ApprovalPending: the only turn awaits approval; ResultPending: it awaits a result.
        """
        claims, options = open_storage(context).claims, self._options_of(context)
        claim = await self._claims.take_over(context)
        try:
            turn = (
                await load_running_turn(context)
                or await load_due_turn(context, options)
                or await reopen_failed_turn(context, claim, options)
            )
            if turn is None:
                await check_none_waits(context)
                await claims.release(claim)
                return None
            if turn.status is not TurnStatus.WAITING:
                await open_storage(context).write(partial(begin_again, turn=turn), fence=claim)
        except BaseException:
            await asyncio.shield(claims.release(claim))
            raise
        return self._run(context, turn, claim)

    async def decide(
        self,
        context: AgentContext,
        call_id: str | int,
        allow: bool = True,  # noqa: FBT001, FBT002 - contract
        *,
        always: bool = False,
    ) -> bool:
        """Allow or deny a tool call that awaits approval; return whether it was undecided before.

        A worker, or `resume`, continues the turn as soon as none of its calls is pending.

        Args:
            call_id: The `id` of the call, or its number.
            always: Whether to always allow this tool for this person in this conversation.

        Raises:
            BotServiceError: there is no such call.
        """
        return await decide(context, call_id, is_allowed=allow, is_always=always, now=self._options_of(context).clock())

    async def hand_in(self, context: AgentContext, call_id: str | int, result: Any) -> bool:
        """Hand in the result of a call whose tool returned `Later`; return whether it was the first result.

        A worker, or `resume`, continues the turn as soon as none of its calls is pending.

        Args:
            call_id: The name in `Later`.
            result: What the tool would have returned, or an exception.

        Raises:
            BotServiceError: there is no such call.
            InvalidField: the result cannot be represented as JSON.
        """
        return await hand_in(context, call_id, result, self._options_of(context).clock())

    def _run(self, context: AgentContext, turn: Turn, claim: Claim) -> AgentRun:
        """Return a run that holds its claim until it ends, is closed, or is forgotten by its caller."""
        claims = open_storage(context).claims
        run = AgentRun(self._options_of(context), context, turn, claim, on_end=claims.release)
        claim.is_idle = True
        weakref.finalize(run, claims.abandon, claim).atexit = False
        return run

    def _options_of(self, context: AgentContext) -> RunOptions:
        """Return the options of a run: by the clock of its storage, unless the service was given one."""
        if self._has_clock or context.storage is self.storage:
            return self.options
        return replace(self.options, clock=open_storage(context).now)


def _check_none_open(turn: Turn | None) -> None:
    if turn is not None:
        raise TurnInProgress(f"turn {turn.id} of this context was cut off: go on with service.resume(context)")


def _checked_text(text: Any) -> str:
    remedy = "give a text, or put a TaskStep into context.memory.steps; files go into attachments=[…]"
    check("what is asked", text, is_right=isinstance(text, str), remedy=remedy)
    return str(text)


def _with_output(answer: Message, form: OutputForm) -> Message:
    try:
        return replace(answer, output=form.read(answer.text))
    except ValueError as error:
        raise InvalidOutput(f"the model gave no valid {form.model.__name__}: {error}") from None
