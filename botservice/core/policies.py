"""What the owner decides, as settings spell it: who may come in, and what it may cost."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from types import MappingProxyType
from typing import Final

NANO: Final = 1_000_000_000
"""Money is counted in whole billionths of the currency: sums are exact on every database."""
ANY_MODEL: Final = "*"
SHORTEST_ENCRYPTION_KEY: Final = 32  # characters

# On Slack, people and channels have ids within their team alone: without it, nobody would be meant. On Telegram, ids
# are numbers, those of groups and channels below zero; an @name changes hands, and nobody is known by it.
_IDENTITY = re.compile(r"(?!slack:|telegram:)[a-z][a-z0-9_]*:\S+|slack:[^\s:]+:[^\s:]+|telegram:-?[1-9][0-9]*")
OWNER_ROLE: Final = "owner"
MEMBER_ROLE: Final = "member"
GUEST_ROLE: Final = "guest"
"""The roles that exist by themselves: an owner may use every tool, and everybody who is not blocked is a guest."""

_ROLE = re.compile(r"(?!blocked$)[a-z][a-z0-9_-]{0,31}")
_LIMIT = re.compile(r"(?P<amount>[0-9][0-9_.]*)(?P<factor>[kKmM]?)\s*(?P<unit>[a-z]+)\s*/\s*(?P<period>[a-z]+)")
_PRICE = re.compile(r"(?P<model>[^=\s]+)\s*=\s*(?P<prices>[0-9./\s]+)")
_DATE = re.compile(r"-(20[0-9]{2}-[0-9]{2}-[0-9]{2}|20[0-9]{6}|latest)$")
_FACTORS = {"": 1, "k": 1_000, "m": 1_000_000}
_MILLION = 1_000_000


class AccessMode(StrEnum):
    """Whom the service answers."""

    OPEN = "open"  # everybody
    ALLOW = "allow"  # whom the owner has named
    PAIRING = "pairing"  # the same; a newcomer gets a code that the owner approves


class WebAccess(StrEnum):
    """Who may open the pages in a browser."""

    ADMIN = "admin"  # the owner of ADMIN_TOKEN
    LINK = "link"  # people as well, each their own chat, by a link that /web gives


class Unit(StrEnum):
    """What is counted."""

    MESSAGES = "messages"
    TOKENS = "tokens"  # in both directions
    MONEY = "money"


class Period(StrEnum):
    """How long is counted, by the clock of UTC."""

    MINUTE = "minute"
    DAY = "day"
    MONTH = "month"


class Scope(StrEnum):
    """Whose use is counted together."""

    PERSON = "person"
    CHAT = "chat"
    SERVICE = "service"


@dataclass(frozen=True, slots=True)
class Limit:
    """How much of something may be used in a period.

    Attributes:
        amount: Messages, tokens, or billionths of the currency.
    """

    amount: int
    unit: Unit
    period: Period


@dataclass(frozen=True, slots=True)
class Price:
    """What a model's tokens cost, in billionths of the currency per million tokens.

    Attributes:
        cached: Of the part of a prompt that the server had read before.
        write: Of the part that it keeps for later calls, or None if that costs like any other input.
        long_above: A prompt of more tokens costs twice as much, and its answer half as much again.
    """

    input: int
    output: int
    cached: int
    write: int | None = None
    long_above: int | None = None

    def of(self, input_tokens: int, output_tokens: int, cached_tokens: int = 0, written_tokens: int = 0) -> int:
        """Return what a call costs, in billionths of the currency, rounded up.

        Args:
            cached_tokens: How many of input_tokens count as cached.
            written_tokens: How many of the others count as written to the cache.
        """
        cached = min(cached_tokens, input_tokens)
        written = min(written_tokens, input_tokens - cached)
        write = self.input if self.write is None else self.write
        prompt = (input_tokens - cached - written) * self.input + cached * self.cached + written * write
        total = prompt + output_tokens * self.output
        if self.long_above is not None and input_tokens > self.long_above:
            total = 2 * prompt + -(-3 * output_tokens * self.output // 2)
        return -(-total // _MILLION)


Prices = Mapping[str, Price]
"""By the model's name; ANY_MODEL for all others."""

_PERIODS: Final = {
    Unit.MESSAGES: (Period.MINUTE,),
    Unit.TOKENS: (Period.DAY, Period.MONTH),
    Unit.MONEY: (Period.DAY, Period.MONTH),
}


def parse_identities(text: str) -> frozenset[str]:
    """Return the people or chats that text lists, such as "telegram:42, slack:T1:U2".

    Raises:
        ValueError: one of them is no such thing.
    """
    found = [part for part in re.split(r"[,\s]+", text) if part]
    if not all(_IDENTITY.fullmatch(part) for part in found):
        raise ValueError("no platform:id")
    return frozenset(found)


def is_identity(name: str) -> bool:
    """Return whether name may be a person's or a chat's: platform:id."""
    return _IDENTITY.fullmatch(name) is not None


def is_role(name: str) -> bool:
    """Return whether a person may have a role of this name."""
    return _ROLE.fullmatch(name) is not None


def read_roles(given: object) -> frozenset[str] | None:
    """Return the roles that are listed, or None if it is no list of at least one role."""
    listed = [] if isinstance(given, str) or not isinstance(given, Iterable) else list(given)
    is_right = bool(listed) and all(isinstance(each, str) and is_role(each) for each in listed)
    return frozenset(map(str, listed)) if is_right else None


def parse_limits(text: str) -> tuple[Limit, ...]:
    """Return the limits that text lists, such as "10 messages/minute, 200k tokens/day, 2.50 money/month".

    Raises:
        ValueError: it is no list of limits, or counts something twice in one period.
    """
    limits = tuple(_limit(part.strip()) for part in re.split(r"[,\n]+", text) if part.strip())
    if len({(limit.unit, limit.period) for limit in limits}) < len(limits):
        raise ValueError("a limit is there twice")
    return limits


def parse_prices(text: str) -> Prices:
    """Return prices by model from "MODEL=INPUT/OUTPUT/CACHED/WRITE, …", in the currency per million tokens.

    Without a price for what is cached, or for what is written to a cache, it costs like any other input.

    Raises:
        ValueError: it is no list of prices.
    """
    prices: dict[str, Price] = {}
    for part in re.split(r"[,\n]+", text):
        if not part.strip():
            continue
        found = _PRICE.fullmatch(part.strip())
        amounts = [round(_decimal(amount.strip()) * NANO) for amount in found["prices"].split("/")] if found else []
        if found is None or len(amounts) not in (2, 3, 4) or found["model"] in prices:
            raise ValueError("no price")
        cached = amounts[2] if len(amounts) > 2 else amounts[0]
        prices[found["model"]] = Price(amounts[0], amounts[1], cached, amounts[3] if len(amounts) > 3 else None)
    return MappingProxyType(prices)


def price_of(prices: Prices, model: str) -> Price | None:
    """Return the price of a model, or of the family that its name is a dated one of, or None if nobody named one."""
    return prices.get(model) or prices.get(_DATE.sub("", model)) or prices.get(ANY_MODEL)


def _limit(text: str) -> Limit:
    found = _LIMIT.fullmatch(text)
    if found is None:
        raise ValueError("no limit")
    unit, period = Unit(found["unit"]), Period(found["period"])
    number = _decimal(found["amount"]) * _FACTORS[found["factor"].lower()]
    amount = number * NANO if unit is Unit.MONEY else number
    if period not in _PERIODS[unit] or amount <= 0 or amount != int(amount):
        raise ValueError("no such limit")
    return Limit(int(amount), unit, period)


def _decimal(text: str) -> Decimal:
    if not re.fullmatch(r"[0-9][0-9_]*(\.[0-9]+)?", text):
        raise ValueError("no number")
    return Decimal(text.replace("_", ""))
