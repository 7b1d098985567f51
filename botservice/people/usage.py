"""The use of models: who pays, what a call took, and the periods that budgets count, by the clock of UTC."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Self

from botservice.config.known_prices import SEARCHES
from botservice.core.messages import Author, TokenUsage
from botservice.core.policies import NANO, Period, Prices, price_of
from botservice.people.names import chat_name, is_chat_name, person_name


class UsageBy(StrEnum):
    """What usage may be listed by."""

    PERSON = "person"
    CHAT = "chat"
    MODEL = "model"
    DAY = "day"


@dataclass(frozen=True, slots=True)
class Payer:
    """Whose use a call is.

    Attributes:
        person: Such as "telegram:42"; empty without an identity.
        chat: Such as "telegram:-100".
    """

    context_id: int
    person: str
    chat: str

    @classmethod
    def of(cls, context_id: int, context_keys: Mapping[str, str], author: Author | None) -> Self:
        """Return the payer of an author's questions in a context; all who write in channels' names are one there."""
        person, chat = person_name(author), chat_name(context_keys)
        return cls(context_id, f"{chat}:anonymous" if is_chat_name(person) else person, chat)


@dataclass(frozen=True, slots=True)
class ModelCall:
    """The tokens and the cost of a model call.

    Attributes:
        cost: In billionths of the currency; 0 where nobody set a price.
    """

    model: str
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: int = 0
    cache_write_tokens: int = 0

    @classmethod
    def of(cls, model: str, usage: TokenUsage, prices: Prices) -> Self:
        """Return a call with its cost."""
        price = price_of(prices, model) if prices else None
        cached, written = usage.cached_tokens or 0, usage.cache_write_tokens or 0
        cost = price.of(usage.input_tokens, usage.output_tokens, cached, written) if price else 0
        search = prices.get(SEARCHES)  # priced as if each was a token
        cost += search.of(usage.web_searches or 0, 0) if search else 0
        return cls(model, usage.input_tokens, usage.output_tokens, cached, cost, cache_write_tokens=written)


@dataclass(frozen=True, slots=True)
class UsageLine:
    """The usage of a person, chat, model or day; the whole usage if subject is None."""

    subject: str | None
    calls: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cache_write_tokens: int
    cost: int

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON values; the cost in the currency."""
        return {**asdict(self), "cost": self.cost / NANO}


@dataclass(frozen=True, slots=True)
class Strangers:
    """People of whom nothing but their use is known."""

    names: Sequence[str]
    last: str
    is_last: bool


def day_of(moment: datetime) -> str:
    """Return a day as it is kept: sortable, such as "2026-01-31"."""
    return moment.astimezone(UTC).strftime("%Y-%m-%d")


def period_start(period: Period, now: datetime) -> datetime:
    """Return when the period that now lies in began."""
    start = now.astimezone(UTC).replace(second=0, microsecond=0)
    if period is Period.MINUTE:
        return start
    start = start.replace(hour=0, minute=0)
    return start if period is Period.DAY else start.replace(day=1)


def period_end(period: Period, now: datetime) -> datetime:
    """Return when the next period begins."""
    start = period_start(period, now)
    if period is Period.MINUTE:
        return start + timedelta(minutes=1)
    if period is Period.DAY:
        return start + timedelta(days=1)
    return (start + timedelta(days=32)).replace(day=1)
