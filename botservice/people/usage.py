"""The use of models: one row for each day, conversation, person and model."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Self

from sqlalchemy import delete, func, select

from botservice.config.known_prices import SEARCHES
from botservice.core.messages import Author, TokenUsage
from botservice.core.policies import NANO, Period, Prices, price_of
from botservice.people.budget_periods import period_start
from botservice.people.names import chat_name, is_chat_name, person_name
from botservice.storage.database import Connection
from botservice.storage.statements import of_each_database
from botservice.storage.tables.access import model_usage, model_usage_days
from botservice.storage.tables.people import identities

_KEY = ("day", "context_id", "person", "model")
PEOPLE_AT_ONCE = 200
_TAKEN = ("input_tokens", "output_tokens", "cached_tokens", "cache_write_tokens", "cost")
_SUMS = ("calls", *_TAKEN)


@of_each_database
def _add(insert: Callable[..., Any]) -> Any:
    new = insert(model_usage)
    return new.on_conflict_do_update(
        index_elements=list(_KEY), set_={name: model_usage.c[name] + new.excluded[name] for name in _SUMS}
    )


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


def record_call(connection: Connection, payer: Payer, call: ModelCall, now: datetime) -> None:
    """Add a call to the use of its day."""
    whose = {"context_id": payer.context_id, "person": payer.person, "chat": payer.chat, "model": call.model}
    taken = {name: getattr(call, name) for name in _TAKEN}
    connection.execute(_add(connection), {"day": day_of(now), "calls": 1, **whose, **taken})


def list_usage(
    connection: Connection, by: UsageBy | None, since: datetime, *, persons: Sequence[str] | None = None
) -> list[UsageLine]:
    """Return the use since the beginning of a day, most tokens first; days in their order.

    Args:
        by: What to sum up by; None for one line with all of it.
        persons: Only what these people used.
    """
    # Sums by day and model are kept; those by person and chat are as many as there are people and chats.
    is_kept = persons is None and by in (None, UsageBy.MODEL, UsageBy.DAY)
    usage = model_usage_days if is_kept else model_usage
    sums = [func.coalesce(func.sum(usage.c[name]), 0).label(name) for name in _SUMS]
    query = select(*sums).where(usage.c.day >= day_of(since))
    if persons is not None:
        query = query.where(model_usage.c.person.in_(persons))
    if by is None:
        return [UsageLine(None, *map(int, connection.execute(query).one()))]
    subject = usage.c[by.value]
    query = query.add_columns(subject.label("subject")).group_by(subject)
    rows = connection.execute(query).all()
    lines = [UsageLine(row.subject, *(int(getattr(row, name)) for name in _SUMS)) for row in rows]
    if by is UsageBy.DAY:
        return sorted(lines, key=lambda line: line.subject or "")
    return sorted(lines, key=lambda line: (-line.input_tokens - line.output_tokens, line.subject or ""))


def find_strangers(connection: Connection, after: str, now: datetime) -> Strangers:
    """Return the next people who used something before this month and are not known any more."""
    used = (
        select(model_usage.c.person)
        .where(model_usage.c.person > after, model_usage.c.day < day_of(period_start(Period.MONTH, now)))
        .distinct()
        .order_by(model_usage.c.person)
        .limit(PEOPLE_AT_ONCE)
    )
    people = connection.execute(used).scalars().all()
    by_platform: dict[str, list[str]] = {}
    for person in people:
        platform, _, platform_id = person.partition(":")
        by_platform.setdefault(platform, []).append(platform_id)
    known: set[str] = set()
    for platform, ids in by_platform.items():  # pairs of both would be looked for in every row by SQLite
        of_platform = (identities.c.platform == platform) & identities.c.platform_id.in_(ids)
        found = connection.execute(select(identities.c.platform_id).where(of_platform)).scalars()
        known.update(f"{platform}:{each}" for each in found)
    names = [person for person in people if person not in known]
    return Strangers(names, people[-1] if people else after, is_last=len(people) < PEOPLE_AT_ONCE)


def forget_usage(connection: Connection, names: Sequence[str], now: datetime) -> None:
    """Remove people's names from their use before this month; the sums of the service stay.

    This month's sums keep them until the month is over: forgetting refills no budget.
    """
    for name in names:
        is_over = (model_usage.c.person == name) & (model_usage.c.day < day_of(period_start(Period.MONTH, now)))
        for row in connection.execute(delete(model_usage).where(is_over).returning(model_usage)).mappings().all():
            # A private chat is called as its person is: what is nobody's has no chat either.
            connection.execute(_add(connection), {**row, "context_id": 0, "person": "", "chat": ""})
