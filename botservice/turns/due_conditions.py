"""Finding the rows that may be done now, as `is_due` says of a turn or a delivery that is read."""

from datetime import datetime

from sqlalchemy import ColumnElement, Table, bindparam, func

from botservice.turns.turn import AT_ONCE


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


def _was_set(table: Table) -> ColumnElement[datetime]:
    return func.coalesce(table.c.due_set_at, table.c.created_at)
