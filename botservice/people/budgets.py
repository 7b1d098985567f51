"""Budgets: the most that a call may take is reserved before it is made, and settled with what it took."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final

from botservice.config.known_prices import KNOWN_CURRENCY, KNOWN_PRICES
from botservice.config.settings import OPENAI_API_URL, Settings
from botservice.core.errors import BudgetExceeded, SettingsError
from botservice.core.formatted_text import FormattedText
from botservice.core.messages import TokenUsage
from botservice.core.policies import ANY_MODEL, NANO, Limit, Period, Prices, Scope, Unit, price_of
from botservice.llm.server_limits import is_openai
from botservice.people.usage import ModelCall, Payer, period_end, period_start
from botservice.people.usage_queries import (
    Used,
    count_message,
    delete_reservation,
    lock_budgets,
    note_once,
    read_messages_sent,
    read_used,
    record_call,
    release_observer,
    write_observer_reservation,
    write_reservation,
)
from botservice.storage.database import Connection, Storage
from botservice.texts import in_language
from botservice.texts.formatted import say, time

logger = logging.getLogger(__name__)

DEFAULT_ANSWER_TOKENS: Final = 4096
OBSERVER: Final = "observer"
"""What the use of reading conversations off the reply path is called, in the place of a model's name."""
GATE: Final = "gate"
"""What the use of deciding when to speak in groups is called, likewise."""
_OBSERVER_PERCENT: Final = 80
_WARN_AT_PERCENT: Final = 80
# Last in its commit: what comes after the lock of the budgets has to wait for the other replicas, too.
SORT_KEY: Final = ("~budgets",)


@dataclass(frozen=True, slots=True)
class Standing:
    """How much of a limit is used.

    Attributes:
        used: What calls took that are over; without what is reserved for others.
        ends_at: When the next period begins.
    """

    scope: Scope
    limit: Limit
    used: int
    ends_at: datetime

    def is_worth_a_warning(self, more: int = 0) -> bool:
        """Return whether most of it is used, counting what one more call took."""
        return (self.used + more) * 100 >= self.limit.amount * _WARN_AT_PERCENT


@dataclass(frozen=True, slots=True)
class Reservation:
    """What may be used by a call.

    Attributes:
        prompt_tokens: How long the prompt seemed to be.
        standings: How the payer's budgets stood before it.
    """

    prompt_tokens: int
    standings: tuple[Standing, ...] = ()


class Budgets:
    """What people, chats and the whole service may use.

    Days, months and minutes are those of UTC. Every method takes the present moment.

    Attributes:
        has_limits: Whether calls have to be reserved.
        has_rates: Whether messages have to be counted.
    """

    def __init__(
        self,
        limits: Mapping[Scope, Sequence[Limit]] = MappingProxyType({}),
        prices: Prices = MappingProxyType({}),
        *,
        answer_tokens: int = DEFAULT_ANSWER_TOKENS,
        currency: str = "USD",
        exports_per_day: int = 1,
    ) -> None:
        """Make budgets.

        Args:
            exports_per_day: How many archives of their data a person may ask for.
            answer_tokens: How long an answer may become: so much is reserved for it, next to the prompt.

        Raises:
            SettingsError: a limit is so low that no call would ever fit.
        """
        every = [limit for of_scope in limits.values() for limit in of_scope]
        too_low = [limit for limit in every if limit.unit is Unit.TOKENS and limit.amount <= answer_tokens]
        if too_low:
            raise SettingsError(
                f"a budget of {too_low[0].amount} tokens/{too_low[0].period} allows no call: it must be more than an "
                f"answer may take, {answer_tokens} tokens; set MAX_ANSWER_TOKENS to less, or the budget to more"
            )
        self.currency = currency
        self.exports_per_day = exports_per_day
        self.prices = prices
        self._answer_tokens = answer_tokens
        self._limits = {scope: [each for each in limits.get(scope, ()) if _is_spent(each)] for scope in Scope}
        self._rates = {scope: [each for each in limits.get(scope, ()) if not _is_spent(each)] for scope in Scope}
        self.has_limits = any(self._limits.values())
        self.has_rates = any(self._rates.values())

    @classmethod
    def of(cls, settings: Settings) -> "Budgets":
        """Return the budgets that the settings describe.

        Raises:
            SettingsError: a limit is so low that no call would ever fit.
        """
        limits = {
            Scope.PERSON: settings.budget_person,
            Scope.CHAT: settings.budget_chat,
            Scope.SERVICE: settings.budget_service,
        }
        answer_tokens = settings.max_answer_tokens or DEFAULT_ANSWER_TOKENS
        return cls(
            limits,
            _prices(settings),
            answer_tokens=answer_tokens,
            currency=settings.currency,
            exports_per_day=settings.exports_per_day,
        )

    def check_model(self, model: str) -> None:
        """Return if calls of a model can be counted.

        Raises:
            SettingsError: money is limited, and nobody said what the model costs.
        """
        is_about_money = any(limit.unit is Unit.MONEY for limits in self._limits.values() for limit in limits)
        if is_about_money and not self.has_price(model):
            raise SettingsError(f"PRICES must say what {model} costs, because a budget limits money: {model}=1/5")

    def most_expensive(self, models: Sequence[str], prompt_tokens: int) -> str:
        """Return the model, of those that may answer, whose longest answer would cost most: so much is kept for it.

        Raises:
            SettingsError: money is limited, and nobody said what one of them costs.
        """
        for model in models:
            self.check_model(model)
        usage = TokenUsage(prompt_tokens, self._answer_tokens)
        return max(models, key=lambda model: self.price(model, usage).cost)

    def has_price(self, model: str) -> bool:
        """Return whether the price of a model is known."""
        return price_of(self.prices, model) is not None

    def is_for(self, scope: Scope) -> bool:
        """Return whether a budget of this scope is set."""
        return bool(self._limits[scope] or self._rates[scope])

    def price(self, model: str, usage: TokenUsage) -> ModelCall:
        """Return a call with its cost."""
        return ModelCall.of(model, usage, self.prices)

    async def count_message(self, storage: Storage, payer: Payer, now: datetime) -> Standing | None:
        """Count a message; return the limit that it is beyond, if there is one: then it is not counted."""
        minute = period_start(Period.MINUTE, now).isoformat()
        limited = [(scope, subject, limit) for scope, subject in _subjects(payer) for limit in self._rates[scope]]

        def operation(connection: Connection) -> Standing | None:
            lock_budgets(connection)
            for scope, subject, limit in limited:
                sent = read_messages_sent(connection, scope, subject, minute)
                if sent >= limit.amount:
                    return Standing(scope, limit, sent, period_end(limit.period, now))
            for scope, subject, _ in limited:
                count_message(connection, scope, subject, minute)
            return None

        return await storage.write(operation, sort_key=SORT_KEY) if limited else None

    async def reserve(
        self,
        storage: Storage,
        turn_id: int,
        payer: Payer,
        model: str,
        prompt_tokens: int,
        now: datetime,
        *,
        searches: int = 0,
        percent: int = 100,
    ) -> Reservation:
        """Reserve the most that a call may take: its prompt and the longest answer. The turn's last one is released.

        Args:
            searches: How often the server may search the web for it.
            percent: How much of each budget may be used for it.

        Raises:
            BudgetExceeded: it would be more than is left.
            SettingsError: money is limited, and nobody said what the model costs.
        """
        tokens, cost = self._most(model, prompt_tokens, searches)

        def operation(connection: Connection) -> tuple[Standing, ...]:
            standings = self._fit(connection, payer, tokens, cost, now, turn_id=turn_id, percent=percent)
            write_reservation(connection, turn_id, payer, tokens, cost, now)
            return tuple(standings)

        return Reservation(prompt_tokens, await storage.write(operation, sort_key=SORT_KEY))

    async def reserve_observing(
        self, storage: Storage, payer: Payer, model: str, prompt_tokens: int, now: datetime
    ) -> None:
        """Reserve the most that observing a conversation may take; it leaves a fifth of every budget to answers.

        Raises:
            BudgetExceeded: it would be more than is left for that.
            SettingsError: money is limited, and nobody said what the model costs.
        """
        tokens, cost = self._most(model, prompt_tokens)

        def operation(connection: Connection) -> None:
            self._fit(connection, payer, tokens, cost, now, percent=_OBSERVER_PERCENT)
            write_observer_reservation(connection, payer, tokens, cost, now)

        await storage.write(operation, sort_key=SORT_KEY)

    def settle_observing(self, connection: Connection, payer: Payer, call: ModelCall, now: datetime) -> None:
        """Count what observing a conversation took, under a name of its own."""
        record_call(connection, payer, replace(call, model=OBSERVER), now)
        if self.has_limits:
            release_observer(connection, payer.context_id)

    async def release_observing(self, storage: Storage, context_id: int) -> None:
        """Release the reservation for observing a conversation."""
        await storage.write(lambda connection: release_observer(connection, context_id))

    def settle(self, connection: Connection, turn_id: int, payer: Payer, call: ModelCall, now: datetime) -> None:
        """Count what a call took, in the transaction that stores what came of it."""
        record_call(connection, payer, call, now)
        if self.has_limits:
            delete_reservation(connection, turn_id)

    async def release(self, storage: Storage, turn_id: int) -> None:
        """Release the reservation for a call that failed."""
        await storage.write(lambda connection: delete_reservation(connection, turn_id))

    def note(self, connection: Connection, payer: Payer, standing: Standing, now: datetime) -> bool:
        """Take note that people are told how a budget stands; return whether this is the first time in its period."""
        subject = dict(_subjects(payer)).get(standing.scope, "")
        start = period_start(standing.limit.period, now).isoformat()
        kind = f"{standing.limit.unit}/{standing.limit.period}"
        return note_once(connection, f"{standing.scope} {subject} {kind} {start}", now)

    async def standings(self, storage: Storage, payer: Payer, now: datetime) -> list[Standing]:
        """Return how the limits of tokens and money stand that a payer meets."""

        def query(connection: Connection) -> list[Standing]:
            return [
                standing
                for scope, _ in _subjects(payer)
                if self._limits[scope]
                for standing in self._stand(scope, read_used(connection, scope, payer, now)[0], now)
            ]

        return await storage.read(query)

    def _most(self, model: str, prompt_tokens: int, searches: int = 0) -> tuple[int, int]:
        """Return the most that a call may take, in tokens and money.

        Nothing was read before, all of it is kept, and every search is made.
        """
        self.check_model(model)
        usage = TokenUsage(prompt_tokens, self._answer_tokens, cache_write_tokens=prompt_tokens, web_searches=searches)
        return usage.total_tokens, self.price(model, usage).cost

    def _fit(
        self,
        connection: Connection,
        payer: Payer,
        tokens: int,
        cost: int,
        now: datetime,
        *,
        turn_id: int = 0,
        percent: int = 100,
    ) -> list[Standing]:
        """Return how the payer's budgets stand.

        Args:
            turn_id: What it has reserved before does not count.
            percent: How much of each budget may be used for this.

        Raises:
            BudgetExceeded: one of them has no room for what is wanted.
        """
        lock_budgets(connection)
        standings = []
        for scope, _ in _subjects(payer):
            if not self._limits[scope]:
                continue
            settled, reserved = read_used(connection, scope, payer, now, turn_id=turn_id)
            for standing in self._stand(scope, settled, now):
                limit = standing.limit
                wanted = tokens if limit.unit is Unit.TOKENS else cost
                if (standing.used + reserved.of(limit) + wanted) * 100 > limit.amount * percent:
                    raise exceeded(standing)
                standings.append(standing)
        return standings

    def _stand(self, scope: Scope, used: Used, now: datetime) -> list[Standing]:
        return [Standing(scope, limit, used.of(limit), period_end(limit.period, now)) for limit in self._limits[scope]]


def exceeded(standing: Standing) -> BudgetExceeded:
    """Return the error that says which limit is reached, and when it ends."""
    limit = standing.limit
    amount = f"{limit.amount / NANO:g}" if limit.unit is Unit.MONEY else f"{limit.amount:,}"
    message = (
        f"the {standing.scope}'s budget of {amount} {limit.unit} a {limit.period} has no room for this call: "
        f"it resets at {standing.ends_at:%Y-%m-%d %H:%M} UTC"
    )
    return BudgetExceeded(message, scope=standing.scope, unit=limit.unit, ends_at=standing.ends_at)


def _prices(settings: Settings) -> Prices:
    """Return the prices of the settings, and the known ones of OpenAI if its own API is asked."""
    is_known = is_openai(settings.openai_base_url or OPENAI_API_URL) and settings.currency == KNOWN_CURRENCY
    if not is_known or ANY_MODEL in settings.prices:
        return settings.prices
    return {**KNOWN_PRICES, **settings.prices}


def _is_spent(limit: Limit) -> bool:
    return limit.unit is not Unit.MESSAGES


def _subjects(payer: Payer) -> list[tuple[Scope, str]]:
    """Return the scopes and subjects of a payer's budgets; without an identity there is no personal one."""
    person = [(Scope.PERSON, payer.person)] if payer.person else []
    return [*person, (Scope.CHAT, payer.chat), (Scope.SERVICE, "")]


_WHOSE: Final[Mapping[str, str]] = {
    Scope.PERSON: "budgets.person",
    Scope.CHAT: "budgets.chat",
    Scope.SERVICE: "budgets.service",
}


def used_up_text(scope: str, ends_at: datetime, language: str | None, now: datetime) -> FormattedText:
    """Explain that a question would take more than is left of a budget."""
    return _tell("budgets.used_up", scope, ends_at, language, now)


def too_fast_text(ends_at: datetime, language: str | None) -> FormattedText:
    """Explain that a message is beyond the rate limit."""
    return say("budgets.too_fast", language, when=time(ends_at, language, now=ends_at, is_today=True))


def nearly_used_text(scope: str, ends_at: datetime, language: str | None, now: datetime) -> FormattedText:
    """Warn, below an answer, that most of a budget is used."""
    return _tell("budgets.nearly", scope, ends_at, language, now)


def _tell(key: str, scope: str, ends_at: datetime, language: str | None, now: datetime) -> FormattedText:
    when = time(ends_at, language, now=now)
    return say(key, language, whose=in_language(_WHOSE[scope], language), when=when)
