"""Scheduling when a conversation is read: when enough has left its window, or when it has become quiet."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from botservice.background import queries
from botservice.background.queries import AT_ONCE
from botservice.storage.database import Connection

BEYOND_TOKENS: Final = 1_500  # that have left the window
QUIET_TOKENS: Final = 300
QUIET: Final = timedelta(minutes=10)
_BACKLOG_TOKENS: Final = 20_000  # that are read of a conversation that was there before anybody read it
_OLD: Final = timedelta(days=30)  # for so long nothing was said: it is left alone until something is


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


@dataclass(frozen=True, slots=True)
class ReadingSchedule:
    """When a conversation in which something was said is to be read."""

    context_id: int
    seen_id: int
    due_at: datetime | None
    read_to: int


def plan_readings(
    connection: Connection, changed: Sequence[tuple[int, int]], window_tokens: int, now: datetime
) -> list[ReadingSchedule]:
    """Return plans for conversations in which something was said; changes nothing.

    Args:
        window_tokens: How many of the newest tokens prompts show anyway.
    """
    return [_plan(connection, context_id, seen_id, window_tokens, now) for context_id, seen_id in changed]


def _plan(connection: Connection, context_id: int, seen_id: int, window_tokens: int, now: datetime) -> ReadingSchedule:
    state = queries.read_state(connection, context_id)
    unread = read_unread(connection, context_id, 0 if state is None else state.read_to, window_tokens)
    if state is not None:
        return ReadingSchedule(context_id, seen_id, _due_at(state, unread, now), 0)
    read_to = max(0, unread.backlog_from - 1)
    is_old = unread.last_at < now - _OLD
    return ReadingSchedule(context_id, seen_id, None if is_old else _first_due_at(unread, now), read_to)


def note_plans(connection: Connection, plans: Sequence[ReadingSchedule]) -> None:
    """Store plans."""
    for each in plans:
        queries.ensure_state(connection, each.context_id, read_to=each.read_to)
        queries.note_seen(connection, each.context_id, each.seen_id, each.due_at)


def next_end(
    connection: Connection, context_id: int, window_tokens: int, now: datetime
) -> tuple[int | None, datetime | None]:
    """Return the last position to read now, or None, and when to look again; None for not before the next message."""
    state = queries.read_state(connection, context_id)
    if state is None:
        return None, None
    unread = read_unread(connection, context_id, state.read_to, window_tokens)
    due_at = _due_at(state, unread, now)
    if due_at is None or due_at > now:
        return None, due_at
    is_quiet = unread.last_at + QUIET <= now and unread.tokens >= QUIET_TOKENS
    return max(unread.last if is_quiet else unread.last_beyond, state.again_to), due_at


def _due_at(state: Any, unread: Unread, now: datetime) -> datetime | None:
    if state.again_to > state.read_to and unread.last:
        # The author may be about to delete more of it: the more there is to read, the longer the observer waits.
        wait = QUIET * max(1.0, float(unread.tokens) / _BACKLOG_TOKENS)
        return now + wait if state.due_at == AT_ONCE else state.due_at or now
    return _first_due_at(unread, now)


def _first_due_at(unread: Unread, now: datetime) -> datetime | None:
    if unread.beyond >= BEYOND_TOKENS:
        return now
    return unread.last_at + QUIET if unread.tokens >= QUIET_TOKENS else None


def read_unread(connection: Connection, context_id: int, after: int, window_tokens: int) -> Unread:
    """Return the size of the unread end of a conversation."""
    rows = queries.list_unread(connection, context_id, after)
    if not rows:
        return Unread()
    tokens = beyond = last_beyond = 0
    oldest = rows[0].position  # which is read also where it alone is longer than the backlog
    for row in rows:
        tokens += row.tokens
        if tokens > window_tokens:
            beyond += row.tokens
            last_beyond = last_beyond or row.position
        if beyond <= _BACKLOG_TOKENS:
            oldest = row.position
    backlog_from = oldest if beyond > _BACKLOG_TOKENS or len(rows) == queries.MOST_UNREAD else 0
    return Unread(tokens, beyond, rows[0].position, last_beyond, rows[0].created_at, backlog_from)
