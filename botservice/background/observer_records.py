"""Which conversations are to be read, and how far they were read: the queries."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from sqlalchemy import Connection, and_, bindparam, func, insert, literal_column, or_, select, update

from botservice.history.queries import IS_SAID
from botservice.storage.tables.conditions import READING_IS_DUE
from botservice.storage.tables.conversations import contexts, messages
from botservice.storage.tables.observing import observed

AT_ONCE: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""When something is due that the database itself has put back."""

CHANGED_AT_ONCE: Final = 50
_DUE_AT_ONCE: Final = 20
_MOST_ROWS: Final = 4_000
_CHARACTERS_PER_TOKEN: Final = 4
_CHANGED = (
    select(contexts.c.id, contexts.c.last_message_id)
    .outerjoin(observed, observed.c.context_id == contexts.c.id)
    .where(
        contexts.c.last_message_id > bindparam("after"),
        contexts.c.forgotten_at.is_(None),
        or_(observed.c.seen_id.is_(None), observed.c.seen_id != contexts.c.last_message_id),
    )
    .order_by(contexts.c.last_message_id, contexts.c.id)
    .limit(CHANGED_AT_ONCE)
)
_DUE = (
    select(observed.c.context_id)
    .where(READING_IS_DUE, observed.c.due_at <= bindparam("now", type_=observed.c.due_at.type))
    .order_by(observed.c.due_at)
    .limit(_DUE_AT_ONCE)
)
_STATE = select(observed).where(observed.c.context_id == bindparam("context"))
_UNREAD = (
    select(
        messages.c.position,
        messages.c.created_at,
        func.coalesce(
            messages.c.token_count, func.length(messages.c.text) / literal_column(str(_CHARACTERS_PER_TOKEN)) + 1
        ).label("tokens"),
    )
    .where(messages.c.context_id == bindparam("context"), messages.c.position > bindparam("after"), IS_SAID)
    .order_by(messages.c.position.desc())
    .limit(_MOST_ROWS)
)


@dataclass(frozen=True, slots=True)
class Unread:
    """The unread end of a conversation.

    Attributes:
        tokens: Of all of it.
        beyond: Of them, those that no window shows any more.
        last: The position of the last message; 0 for none.
        last_beyond: That of the last one that no window shows any more.
        last_at: When the last one was said.
        backlog_from: Where the last so many tokens beyond the window begin; 0 where that is all of it.
    """

    tokens: int = 0
    beyond: int = 0
    last: int = 0
    last_beyond: int = 0
    last_at: datetime = AT_ONCE
    backlog_from: int = 0


def find_changed(connection: Connection, after: int) -> list[tuple[int, int]]:
    """Return conversations in which something was said since they were looked at, with their last messages' ids."""
    return [(row.id, row.last_message_id) for row in connection.execute(_CHANGED, {"after": after}).all()]


def find_seen(connection: Connection) -> int:
    """Return the id of the newest message that was looked at."""
    return int(connection.execute(select(func.coalesce(func.max(observed.c.seen_id), 0))).scalar_one())


def find_due(connection: Connection, now: datetime) -> list[int]:
    """Return conversations that are to be looked at or read, those that have waited longest first."""
    return [row.context_id for row in connection.execute(_DUE, {"now": now}).all()]


def read_state(connection: Connection, context_id: int) -> Any | None:
    """Return how far a conversation is read, or None if nobody has looked at it."""
    return connection.execute(_STATE, {"context": context_id}).one_or_none()


def read_unread(
    connection: Connection, context_id: int, after: int, *, window_tokens: int, backlog_tokens: int
) -> Unread:
    """Return the size of the unread end of a conversation.

    Args:
        window_tokens: How many of the newest tokens prompts show anyway.
        backlog_tokens: How many tokens beyond that are worth reading of a conversation that was never read.
    """
    rows = connection.execute(_UNREAD, {"context": context_id, "after": after}).all()
    tokens = beyond = last_beyond = backlog_from = 0
    for row in rows:
        tokens += row.tokens
        if tokens > window_tokens:
            beyond += row.tokens
            last_beyond = last_beyond or row.position
        if beyond <= backlog_tokens:
            oldest = row.position
    if not rows:
        return Unread()
    backlog_from = oldest if beyond > backlog_tokens or len(rows) == _MOST_ROWS else 0
    return Unread(tokens, beyond, rows[0].position, last_beyond, rows[0].created_at, backlog_from)


def ensure_state(connection: Connection, context_id: int, *, read_to: int = 0) -> None:
    """Create the reading state of a conversation if there is none, unless the conversation is gone."""
    if read_state(connection, context_id) is not None:
        return
    found = select(contexts.c.id).where(contexts.c.id == context_id).with_for_update(key_share=True)
    if connection.execute(found).first() is None or read_state(connection, context_id) is not None:
        return
    connection.execute(insert(observed).values(context_id=context_id, read_to=read_to))


def note_seen(connection: Connection, context_id: int, seen_id: int, due_at: datetime | None) -> None:
    """Note that a conversation was looked at; what is to be read at once stays so."""
    is_put_back = and_(observed.c.due_at == AT_ONCE, observed.c.again_to > observed.c.read_to)
    of_context = observed.c.context_id == context_id
    connection.execute(update(observed).where(of_context).values(seen_id=seen_id))
    connection.execute(update(observed).where(of_context, ~func.coalesce(is_put_back, False)).values(due_at=due_at))


def put_off(connection: Connection, context_id: int, due_at: datetime | None, *, tries: int | None = None) -> None:
    """Set when to look at a conversation again; None for not before its next message."""
    values: dict[str, Any] = {"due_at": due_at}
    if tries is not None:
        values["tries"] = tries
    connection.execute(update(observed).where(observed.c.context_id == context_id).values(values))


def end_again(connection: Connection, context_id: int) -> None:
    """Note that nothing is left to be read again."""
    of_context = (observed.c.context_id == context_id) & (observed.c.again_to > observed.c.read_to)
    connection.execute(update(observed).where(of_context).values(again_to=observed.c.read_to))


def mark_read(connection: Connection, context_id: int, version: int, last: int) -> bool:
    """Note that a stretch was read, or is left out for good; return whether nothing changed meanwhile."""
    change = update(observed).where(observed.c.context_id == context_id, observed.c.version == version)
    values = {"read_to": last, "version": version + 1, "tries": 0}
    return connection.execute(change.values(values)).rowcount > 0
