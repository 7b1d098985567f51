"""When what waits may be done: at its time, or at once where the clock was ahead when that time was set.

A clock that is put right would otherwise hold up a chat for as long as it was wrong.
"""

from datetime import datetime, timedelta
from typing import Protocol, TypeVar

from sqlalchemy import ColumnElement, Table, bindparam, func

T = TypeVar("T")

AT_ONCE = timedelta(seconds=2)
"""Within this, two moments are the same: replicas read the clock of their database not quite alike."""


class Waiting(Protocol):
    """What is to be done at some time."""

    @property
    def due_at(self) -> datetime:
        """Not before then."""

    @property
    def due_set_at(self) -> datetime | None:
        """When that time was set, by the same clock; None where it is sure to be right."""


def is_due(waiting: Waiting, now: datetime) -> bool:
    """Return whether something may be done now."""
    is_wrong = waiting.due_set_at is not None and waiting.due_set_at > now + AT_ONCE
    return is_wrong or waiting.due_at <= now


def when_due_was_set(table: Table) -> ColumnElement[datetime]:
    """Return the column to select as due_set_at."""
    return _was_set(table).label("due_set_at")


def due_in(table: Table) -> ColumnElement[bool]:
    """Return the condition that something is due at its time, of the parameters of `due_by`: an index finds it."""
    is_past: ColumnElement[bool] = table.c.due_at <= bindparam("due_by")
    return is_past


def due_by_a_wrong_clock_in(table: Table) -> ColumnElement[bool]:
    """Return the condition that its time was set while the clock was ahead: whatever is open has to be looked at."""
    return _was_set(table) > bindparam("due_ahead")


def due_by(now: datetime) -> dict[str, datetime]:
    """Return the parameters of these conditions, which together are what `is_due` says of rows that are read."""
    return {"due_by": now, "due_ahead": now + AT_ONCE}


def set_due(moment: T, now: T) -> dict[str, T]:
    """Return the columns that have something wait until a moment."""
    return {"due_at": moment, "due_set_at": now}


def _was_set(table: Table) -> ColumnElement[datetime]:
    return func.coalesce(table.c.due_set_at, table.c.created_at)
