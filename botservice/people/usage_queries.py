"""Every statement of use: of models, one row for each day, conversation, person and model; and of budgets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import ColumnElement, Select, Table, Text, bindparam, case, delete, exists, func, select, text
from sqlalchemy.sql import literal_column, union_all

from botservice.core.policies import Limit, Period, Scope, Unit
from botservice.people.queries import PERSON_NAMES, person_parts
from botservice.people.usage import ModelCall, Payer, Strangers, UsageBy, UsageLine, day_of, period_start
from botservice.storage.database import Connection
from botservice.storage.postgres_replicas import lock_space
from botservice.storage.statements import execute_each, of_each_database, upserting
from botservice.storage.tables.conditions import TURN_IS_OPEN
from botservice.storage.tables.conversations import turns
from botservice.storage.tables.knowledge import observer_reservations
from botservice.storage.tables.people import (
    budget_notices,
    budget_rates,
    budget_reservations,
    identities,
    model_usage,
    model_usage_days,
)

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


def record_call(connection: Connection, payer: Payer, call: ModelCall, now: datetime) -> None:
    """Add a call to the use of its day."""
    record_calls(connection, [(payer, call, now)])


def record_calls(connection: Connection, calls: Sequence[tuple[Payer, ModelCall, datetime]]) -> None:
    """Add calls to the use of their days."""
    rows = [
        {
            "day": day_of(now),
            "calls": 1,
            "context_id": payer.context_id,
            "person": payer.person,
            "chat": payer.chat,
            "model": call.model,
            **{name: getattr(call, name) for name in _TAKEN},
        }
        for payer, call, now in calls
    ]
    if rows:
        execute_each(connection, _add(connection), rows)


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


RESERVED_FOR = timedelta(hours=1)  # far longer than a call takes: what a killed process had reserved is free then
_NOTICES_KEPT = timedelta(days=62)  # longer than the longest period
_LOCK = text(f"SELECT pg_advisory_xact_lock({lock_space('budgets', offset=1)}, 0)")  # claims have theirs
Reserved = Callable[[Table], list[ColumnElement[bool]]]
"""Says which of the reservations in a table count."""


def _open_ones(table: Table, of_reservations: Reserved) -> Select[Any]:
    """Return the query of the reservations in a table that have not expired."""
    today = bindparam("today", type_=Text).label("day")
    is_valid = table.c.expires_at > bindparam("now", type_=table.c.expires_at.type)
    query = select(today, table.c.tokens, table.c.cost, literal_column("1"))
    return query.where(is_valid, *of_reservations(table))


def _used(usage: Table, of_usage: list[ColumnElement[bool]], of_reservations: Reserved) -> Select[Any]:
    """Return the query of settled use and open reservations, in one statement and so at one moment.

    Read one after the other, a call that is settled in between would count nowhere.
    """
    tokens = usage.c.input_tokens + usage.c.output_tokens
    settled = select(
        usage.c.day, tokens.label("tokens"), usage.c.cost.label("cost"), literal_column("0").label("is_open")
    ).where(usage.c.day >= bindparam("since"), *of_usage)
    reserved = _open_ones(budget_reservations, of_reservations).where(
        # Not joined: SQLite would look through all turns for those that are open.
        exists().where(turns.c.id == budget_reservations.c.turn_id, TURN_IS_OPEN),
        budget_reservations.c.turn_id != bindparam("turn"),
    )
    every = union_all(settled, reserved, _open_ones(observer_reservations, of_reservations)).subquery()
    is_today = every.c.day >= bindparam("today", type_=Text)
    return select(
        every.c.is_open,
        func.sum(case((is_today, every.c.tokens), else_=0)).label("tokens_today"),
        func.sum(every.c.tokens).label("tokens"),
        func.sum(case((is_today, every.c.cost), else_=0)).label("cost_today"),
        func.sum(every.c.cost).label("cost"),
    ).group_by(every.c.is_open)


_USED = {
    Scope.PERSON: _used(
        model_usage, [model_usage.c.person.in_(PERSON_NAMES)], lambda table: [table.c.person.in_(PERSON_NAMES)]
    ),
    Scope.CHAT: _used(
        model_usage, [model_usage.c.chat == bindparam("chat")], lambda table: [table.c.chat == bindparam("chat")]
    ),
    Scope.SERVICE: _used(model_usage_days, [], lambda _: []),
}
_RELEASE = delete(budget_reservations).where(budget_reservations.c.turn_id == bindparam("turn"))
_reserve = upserting(budget_reservations, "turn_id")
_reserve_observer = upserting(observer_reservations, "context_id")

HOOK_RATE: Final = "hook"
"""The scope of the events that a hook takes, whose name is their subject."""
HAND_OVER_RATE: Final = "hand_over"
"""The scope of the calls of the owners for a person, in an hour."""


@of_each_database
def _count(insert: Callable[..., Any]) -> Any:
    new = insert(budget_rates)
    is_same = budget_rates.c.minute == new.excluded.minute
    messages = case((is_same, budget_rates.c.messages + 1), else_=1)
    return new.on_conflict_do_update(
        index_elements=["scope", "subject"], set_={"minute": new.excluded.minute, "messages": messages}
    ).returning(budget_rates.c.messages)


_note = of_each_database(
    lambda insert: insert(budget_notices).on_conflict_do_nothing().returning(budget_notices.c.notice)
)
_MESSAGES = select(budget_rates.c.messages).where(
    budget_rates.c.scope == bindparam("scope"),
    budget_rates.c.subject == bindparam("subject"),
    budget_rates.c.minute == bindparam("minute"),
)


@dataclass(frozen=True, slots=True)
class Used:
    """What was used of one budget, or is reserved: today and in this month; costs in billionths of the currency."""

    tokens_today: int = 0
    tokens: int = 0
    cost_today: int = 0
    cost: int = 0

    def of(self, limit: Limit) -> int:
        """Return the amount in the unit and period of a limit."""
        if limit.unit is Unit.TOKENS:
            return self.tokens_today if limit.period is Period.DAY else self.tokens
        return self.cost_today if limit.period is Period.DAY else self.cost


def read_used(
    connection: Connection, scope: Scope, payer: Payer, now: datetime, *, turn_id: int = 0
) -> tuple[Used, Used]:
    """Return the settled use of a budget, and the reservations of other turns than turn_id."""
    month, today = day_of(period_start(Period.MONTH, now)), day_of(now)
    values = {"today": today, "since": month, "now": now, "turn": turn_id}
    if scope is Scope.PERSON:
        values |= person_parts(payer.person)
    elif scope is Scope.CHAT:
        values["chat"] = payer.chat
    rows = {is_open: Used(*map(int, sums)) for is_open, *sums in connection.execute(_USED[scope], values)}
    return rows.get(0, Used()), rows.get(1, Used())


def lock_budgets(connection: Connection) -> None:
    """Lock reservations until this transaction ends. SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(_LOCK)


def write_reservation(
    connection: Connection, turn_id: int, payer: Payer, tokens: int, cost: int, now: datetime
) -> None:
    """Reserve an amount for the next call of a turn, in place of an earlier reservation."""
    values = _reservation(payer, tokens, cost, now)
    connection.execute(_reserve(connection), {"turn_id": turn_id, **values})


def delete_reservation(connection: Connection, turn_id: int) -> None:
    """Delete the reservation of a turn."""
    connection.execute(_RELEASE, {"turn": turn_id})


def write_observer_reservation(connection: Connection, payer: Payer, tokens: int, cost: int, now: datetime) -> None:
    """Reserve an amount for the observer of a conversation."""
    values = _reservation(payer, tokens, cost, now)
    connection.execute(_reserve_observer(connection), {"context_id": payer.context_id, **values})


def release_observer(connection: Connection, context_id: int) -> None:
    """Delete the observer's reservation for a conversation."""
    connection.execute(delete(observer_reservations).where(observer_reservations.c.context_id == context_id))


def drop_expired(connection: Connection, now: datetime) -> int:
    """Delete the observer's reservations of killed processes, and return how many they were."""
    is_over = observer_reservations.c.expires_at <= now
    return connection.execute(delete(observer_reservations).where(is_over)).rowcount


def read_messages_sent(connection: Connection, scope: Scope, subject: str, minute: str) -> int:
    """Return how many messages a person has sent in a minute."""
    values = {"scope": scope.value, "subject": subject, "minute": minute}
    return connection.execute(_MESSAGES, values).scalar_one_or_none() or 0


def count_message(connection: Connection, scope: str, subject: str, minute: str) -> int:
    """Count one more message in a minute, and return how many they are.

    Args:
        scope: What a `Scope` has, `HOOK_RATE` for an event of a hook, or `HAND_OVER_RATE`.
        minute: Or the hour.
    """
    values = {"scope": str(scope), "subject": subject, "minute": minute, "messages": 1}
    return int(connection.execute(_count(connection), values).scalar_one())


def note_once(connection: Connection, notice: str, now: datetime) -> bool:
    """Mark a notice as given, and return whether it is new."""
    connection.execute(delete(budget_notices).where(budget_notices.c.told_at < now - _NOTICES_KEPT))
    told = connection.execute(_note(connection), {"notice": notice, "told_at": now})
    return told.scalar_one_or_none() is not None


def _reservation(payer: Payer, tokens: int, cost: int, now: datetime) -> dict[str, Any]:
    who = {"person": payer.person, "chat": payer.chat}
    return {**who, "tokens": tokens, "cost": cost, "expires_at": now + RESERVED_FOR}
