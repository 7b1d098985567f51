"""Conditions for parts of tables: open work of a context, rows since a known one, and those of an author."""

from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, FromClause, and_

from botservice.core.messages import Author

_SEEN_LATE: Final = 1_000  # on Postgres, of two transactions the one that took its id earlier may be seen later


def is_of(table: FromClause, context_id: ColumnElement[Any]) -> ColumnElement[bool]:
    """Return the condition for the rows of a context, where others say that few of these are meant.

    A range of one: by an equality SQLite goes through all that the context ever had, in the narrower index of that,
    instead of through the partial index of what is still to be done.
    """
    return table.c.context_id.between(context_id, context_id)


def is_by(table: FromClause, author: Author) -> ColumnElement[bool]:
    """Return the condition for the rows of an author, by their account."""
    return and_(table.c.author_platform == author.platform, table.c.author_id == author.id)


def sure_up_to(connection: Connection, newest: int) -> int:
    """Return the id up to which no row can appear any more once the newest one has been seen."""
    return newest if connection.dialect.name == "sqlite" else max(0, newest - _SEEN_LATE)
