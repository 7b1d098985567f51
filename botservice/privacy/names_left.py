"""Deleting what still names a forgotten person: context keys with their number, and notices about them."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Text,
    bindparam,
    cast,
    delete,
    exists,
    false,
    func,
    not_,
    or_,
    select,
    update,
)

from botservice.core.messages import Author
from botservice.people.names import chat_name
from botservice.storage.chunks import chunks
from botservice.storage.database import Storage
from botservice.storage.ranges import sure_up_to
from botservice.storage.tables.access import budget_notices, budget_rates
from botservice.storage.tables.conditions import CONTEXT_IS_FORGOTTEN
from botservice.storage.tables.conversations import contexts, deliveries, events, messages, reminders, turns
from botservice.storage.tables.people import exports

# So long a platform may deliver again what it has delivered: only the names of events tell that it is nothing new.
DELIVERED_AGAIN: Final = timedelta(hours=2)

_IS_USED = or_(*(exists().where(table.c.context_id == contexts.c.id) for table in (messages, reminders, exports)))
_IS_BUSY = or_(
    exists().where(turns.c.context_id == contexts.c.id, turns.c.status != "done"),
    exists().where(deliveries.c.context_id == contexts.c.id, deliveries.c.finished_at.is_(None)),
)
_COME_BACK = update(contexts).where(CONTEXT_IS_FORGOTTEN, _IS_USED).values(forgotten_at=None)
_RELEASE = delete(contexts).where(
    CONTEXT_IS_FORGOTTEN, contexts.c.forgotten_at < bindparam("before"), not_(_IS_USED), not_(_IS_BUSY)
)


def note_forgotten(connection: Connection, context_id: int, now: datetime) -> None:
    """Mark a conversation for deletion as soon as nothing is owed there any more."""
    connection.execute(update(contexts).where(contexts.c.id == context_id).values(forgotten_at=now))


def release_forgotten(connection: Connection, now: datetime) -> int:
    """Delete the conversations of forgotten people in which nothing is owed any more, and return how many.

    Who came back keeps theirs.
    """
    connection.execute(_COME_BACK)
    return connection.execute(_RELEASE, {"before": now - DELIVERED_AGAIN}).rowcount


def rename_events(connection: Connection, context_id: int, accounts: Sequence[Author], *, after: int = 0) -> None:
    """Remove people's ids from the keys of events, where a platform names by them who pressed a button."""
    later = (events.c.context_id == context_id) & (events.c.id > after)
    _rename(connection, connection.execute(select(events.c.id).where(later, _names_any(accounts))).scalars().all())


async def rename_earlier_events(storage: Storage, context_id: int, accounts: Sequence[Author]) -> int:
    """Remove people's ids from the keys of events, a few at a time; return the last event that was looked at."""
    of_context = events.c.context_id == context_id

    def find(connection: Connection) -> tuple[int, Sequence[int]]:
        newest = connection.execute(select(func.coalesce(func.max(events.c.id), 0))).scalar_one()
        theirs = connection.execute(select(events.c.id).where(of_context, _names_any(accounts)))
        return sure_up_to(connection, newest), theirs.scalars().all()

    up_to, theirs = await storage.read(find, is_long=True)
    for chunk in chunks(theirs):
        await storage.write(partial(_rename, event_ids=chunk))
    return up_to


def _names_any(accounts: Sequence[Author]) -> ColumnElement[bool]:
    numbers = [(account.id or "").rpartition(":")[2] for account in accounts]  # Slack names the team before it
    button = events.c.key.contains(":button:", autoescape=True)
    pressed = [events.c.key.contains(f":pressed:{number}:", autoescape=True) for number in numbers]
    ends = [events.c.key.endswith(f":{number}", autoescape=True) for number in numbers]
    return or_(false(), *pressed, *(button & each for each in ends))


def _rename(connection: Connection, event_ids: Sequence[int]) -> None:
    for chunk in chunks(event_ids):
        change = update(events).where(events.c.id.in_(chunk))
        connection.execute(change.values(key="forgotten:" + cast(events.c.id, Text)))


def forget_notices(connection: Connection, scope: str, subject: str) -> None:
    """Delete the budget notices and the message rates of a person or chat."""
    told = budget_notices.c.notice.startswith(f"{scope} {subject} ", autoescape=True)
    connection.execute(delete(budget_notices).where(told))
    connection.execute(delete(budget_rates).where(budget_rates.c.scope == scope, budget_rates.c.subject == subject))


def forget_chat_notices(connection: Connection, context_id: int) -> None:
    """Delete the budget notices of a private chat."""
    query = select(contexts.c.context_keys).where(contexts.c.id == context_id)
    keys: Mapping[str, str] | None = connection.execute(query).scalar_one_or_none()
    if keys:
        forget_notices(connection, "chat", chat_name(keys))
