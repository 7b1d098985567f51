"""What still names somebody who is forgotten: conversations that are called by their number, and notes about them."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection, Text, bindparam, cast, delete, exists, not_, or_, select, text, update

from botservice.messages import Author
from botservice.people.names import chat_name
from botservice.storage.tables.access import budget_notices, budget_rates
from botservice.storage.tables.conversations import contexts, deliveries, events, messages, reminders, turns
from botservice.storage.tables.people import exports

# So long a platform may deliver again what it has delivered: only the names of events tell that it is nothing new.
DELIVERED_AGAIN: Final = timedelta(hours=2)

# Word for word the condition of the partial index: with a bound parameter in it, a planner cannot know that it fits.
_IS_FORGOTTEN = text("contexts.forgotten_at IS NOT NULL")
_IS_USED = or_(*(exists().where(table.c.context_id == contexts.c.id) for table in (messages, reminders, exports)))
_IS_BUSY = or_(
    exists().where(turns.c.context_id == contexts.c.id, turns.c.status != "done"),
    exists().where(deliveries.c.context_id == contexts.c.id, deliveries.c.finished_at.is_(None)),
)
_COME_BACK = update(contexts).where(_IS_FORGOTTEN, _IS_USED).values(forgotten_at=None)
_RELEASE = delete(contexts).where(
    _IS_FORGOTTEN, contexts.c.forgotten_at < bindparam("before"), not_(_IS_USED), not_(_IS_BUSY)
)


def note_forgotten(connection: Connection, context_id: int, now: datetime) -> None:
    """Take note that a conversation is to go as soon as nothing is owed there any more."""
    connection.execute(update(contexts).where(contexts.c.id == context_id).values(forgotten_at=now))


def release_forgotten(connection: Connection, now: datetime) -> int:
    """Delete the conversations of forgotten people in which nothing is owed any more, and return how many.

    Who came back keeps theirs.
    """
    connection.execute(_COME_BACK)
    return connection.execute(_RELEASE, {"before": now - DELIVERED_AGAIN}).rowcount


def rename_events(connection: Connection, context_id: int, accounts: Sequence[Author]) -> None:
    """Take the numbers of people out of the names of events, where a platform says by them who pressed a button."""
    for account in accounts:
        number = (account.id or "").rpartition(":")[2]  # Slack names the team before it
        is_theirs = or_(
            events.c.key.contains(f":pressed:{number}:", autoescape=True),
            events.c.key.contains(":button:", autoescape=True) & events.c.key.endswith(f":{number}", autoescape=True),
        )
        change = update(events).where(events.c.context_id == context_id, is_theirs)
        connection.execute(change.values(key="forgotten:" + cast(events.c.id, Text)))


def forget_notices(connection: Connection, scope: str, subject: str) -> None:
    """Forget what was said to somebody, or in a chat, about its budget, and how much was written there just now."""
    told = budget_notices.c.notice.startswith(f"{scope} {subject} ", autoescape=True)
    connection.execute(delete(budget_notices).where(told))
    connection.execute(delete(budget_rates).where(budget_rates.c.scope == scope, budget_rates.c.subject == subject))


def forget_chat_notices(connection: Connection, context_id: int) -> None:
    """Forget what was said in a private chat about its budget."""
    query = select(contexts.c.context_keys).where(contexts.c.id == context_id)
    keys: Mapping[str, str] | None = connection.execute(query).scalar_one_or_none()
    if keys:
        forget_notices(connection, "chat", chat_name(keys))
