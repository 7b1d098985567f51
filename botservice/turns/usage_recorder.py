"""Billing the model calls of a turn: reserved before they are made, settled with what they took."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial

from botservice.agent.agent import Agent
from botservice.agent.prompt import count_tokens
from botservice.conversation.context import AgentContext
from botservice.core.formatted_text import FormattedText
from botservice.core.messages import TokenUsage
from botservice.core.policies import Scope, Unit
from botservice.llm.asking import count_searches
from botservice.llm.chat import ChatMessage, ToolSchema
from botservice.llm.tokens import count_aside, counter_for
from botservice.people.budgets import Reservation, Standing, nearly_used_text
from botservice.people.usage import ModelCall, Payer
from botservice.people.usage_queries import delete_reservation, record_call, record_calls
from botservice.storage.blobs import store_blob
from botservice.storage.database import Connection
from botservice.telemetry.instrumentation import take_paid
from botservice.turns.model_calls import ModelAttempts
from botservice.turns.queries import add_figures
from botservice.turns.run_options import RunOptions
from botservice.turns.spoken_answers import Speech
from botservice.turns.turn import Figures, Turn

logger = logging.getLogger(__name__)

_UNSEEN_PROMPT_TOKENS = 8_000  # of an agent that does not say what it sends


def models_of(agent: Agent) -> Sequence[str]:
    """Return the names of the models that may answer an agent, the first one first."""
    return ("unknown",) if agent.llm is None else agent.llm.models


@dataclass(frozen=True, slots=True)
class PaidCall:
    """What a model call of a turn took.

    Attributes:
        after: Writes something after it.
    """

    turn_id: int
    payer: Payer
    call: ModelCall
    figures: Figures
    now: datetime
    after: Callable[[Connection], None] | None


def write_usage(connection: Connection, used: Sequence[PaidCall]) -> None:
    """Store what model calls took, in the transaction that stores what came of them."""
    record_calls(connection, [(each.payer, each.call, each.now) for each in used])
    add_figures(connection, [(each.turn_id, each.figures, each.now) for each in used])
    for each in used:
        if each.after is not None:
            each.after(connection)


class UsageRecorder:
    """The calls of one turn. Without limits nothing is reserved, and two rows grow with what a call took.

    Attributes:
        attempts: How the model was asked for the step that is on its way.
    """

    def __init__(
        self,
        options: RunOptions,
        context: AgentContext,
        turn: Turn,
        *,
        agent: Agent | None = None,
        asking: AgentContext | None = None,
    ) -> None:
        """Record the usage of a turn, or of an agent that works for it.

        Args:
            agent: Whose model is asked; by default the turn's own.
            asking: The context that it is asked in; by default the turn's own.
        """
        self.attempts = ModelAttempts(options.clock)
        self._budgets = options.budgets
        self._clock = options.clock
        self._agent = agent or options.agent
        self._context = context
        self._asking = asking or context
        self._turn = turn
        self._models = models_of(self._agent)
        self._payer: Payer | None = None
        self._reservation: Reservation | None = None
        self._call: ModelCall | None = None

    def watch(self) -> None:
        """Make the agent announce each prompt before it is sent."""
        self._asking.before_call = self._before_call

    async def open(self) -> None:
        """Reserve for an agent that does not say what it sends."""
        if self._budgets.has_limits and not self._agent.announces_calls:
            await self._reserve(_UNSEEN_PROMPT_TOKENS)

    async def _before_call(self, prompt: Sequence[ChatMessage], tools: Sequence[ToolSchema]) -> None:
        if self._budgets.has_limits:
            await self.reserve(prompt, tools)
        self.attempts.note_prompt(prompt, tools, self._asking.withheld_tools)

    async def reserve(self, prompt: Sequence[ChatMessage], tools: Sequence[ToolSchema]) -> None:
        """Reserve what a call with a prompt may take.

        Raises:
            BudgetExceeded: it would be more than is left.
        """
        tokens = await count_aside(count_tokens, prompt, tools, self._models[0])
        await self._reserve(tokens, searches=count_searches(tools))

    async def give_back(self) -> None:
        """Give back what was reserved for a call that failed."""
        if self._reservation is not None:
            self._reservation = None
            await self._budgets.release(self._context.storage, self._turn.id)

    def take(self, usage: TokenUsage | None, said: str, model: str | None = None) -> None:
        """Remember what a call took, estimated if its server does not count.

        Args:
            said: What the model said.
            model: Which one answered; servers may call it by a longer name than the caller.
        """
        if usage is None:
            usage = self._estimate(said)
        asked = model if model is not None and model in self._models else self._models[0]
        self._call = ModelCall.of(asked, usage, self._budgets.prices)

    def take_cut_off(self, said: str) -> None:
        """Remember a call that was stopped: what was sent and said until then is paid."""
        if self._reservation is not None and self._call is None:
            self.take(None, said)

    def write(self, connection: Connection, now: datetime) -> None:
        """Store what the last call took, in the transaction that stores what came of it."""
        write_usage(connection, self.used(now))

    def used(self, now: datetime) -> Sequence[PaidCall]:
        """Return what the last call took, if there was one."""
        call = self._call
        if call is None:
            return ()
        payer = self._payer_now()
        after = partial(self._settle, payer=payer, now=now) if self._budgets.has_limits else None
        return (PaidCall(self._turn.id, payer, call, self._figures(call), now, after),)

    def _settle(self, connection: Connection, payer: Payer, now: datetime) -> None:
        """Release the reservation, and log that a budget of the whole service is nearly used, once in its period."""
        delete_reservation(connection, self._turn.id)
        for standing in self._nearly_used():
            if standing.scope is Scope.SERVICE and self._budgets.note(connection, payer, standing, now):
                facts = {"unit": standing.limit.unit.value, "period": standing.limit.period.value}
                logger.warning("budget.nearly_used", extra=facts)

    def _figures(self, call: ModelCall) -> Figures:
        return replace(
            self.attempts.figures(),
            calls=1,
            model=call.model,
            input_tokens=call.input_tokens,
            output_tokens=call.output_tokens,
            cached_tokens=call.cached_tokens,
            cost=call.cost,
        )

    def write_failed(self, connection: Connection) -> None:
        """Store that the model was asked without success."""
        figures = self.attempts.figures()
        if figures.failed_calls:
            add_figures(connection, [(self._turn.id, replace(figures, model=self._models[0]), self._clock())])

    def write_speech(self, connection: Connection, speech: Speech, now: datetime) -> None:
        """Store an answer as it is spoken until it is sent, and what it took."""
        store_blob(connection, self._context.id, speech.attachment.data or b"")
        record_call(connection, self._payer_now(), speech.call, now)

    def confirm(self) -> None:
        """Forget the call, once it is stored."""
        if self._call is not None and self._call.cost:
            take_paid(self._call.model, self._call.cost)
        self._call = self._reservation = None
        self.attempts.clear()

    def warning(self) -> Standing | None:
        """Return the budget that the person is told about, because most of it is used."""
        return next((each for each in self._nearly_used() if each.scope is not Scope.SERVICE), None)

    def warning_text(self, standing: Standing) -> FormattedText:
        """Return what the person is told about a budget."""
        return nearly_used_text(standing.scope, standing.ends_at, self._context.language, self._clock())

    def is_due(self, connection: Connection, standing: Standing, now: datetime) -> bool:
        """Return whether the warning is new in this period, and mark it as given."""
        return self._budgets.note(connection, self._payer_now(), standing, now)

    def _nearly_used(self) -> list[Standing]:
        call, reservation = self._call, self._reservation
        if call is None or reservation is None:
            return []
        tokens = call.input_tokens + call.output_tokens
        return [
            standing
            for standing in reservation.standings
            if standing.is_worth_a_warning(tokens if standing.limit.unit is Unit.TOKENS else call.cost)
        ]

    async def _reserve(self, prompt_tokens: int, *, searches: int = 0) -> None:
        model, now = self._budgets.most_expensive(self._models, prompt_tokens), self._clock()
        self._reservation = await self._budgets.reserve(
            self._context.storage, self._turn.id, self._payer_now(), model, prompt_tokens, now, searches=searches
        )

    def _payer_now(self) -> Payer:
        if self._payer is None:
            asked = self._context.chat_history.last_user_message
            author = None if asked is None else asked.author
            self._payer = Payer.of(self._context.id, self._context.context_keys, author)
        return self._payer

    def _estimate(self, said: str) -> TokenUsage:
        """Return about what a call took; nothing without limits, because counting takes time."""
        if self._reservation is None:
            return TokenUsage(0, 0)
        return TokenUsage(self._reservation.prompt_tokens, counter_for(self._models[0]).count(said))
