"""Lists that may be longer than one statement takes."""

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from sqlalchemy import ColumnElement, Connection, Select

T = TypeVar("T")

# SQLite takes 32,766 parameters in a statement, Postgres 65,535.
CHUNK = 1_000


def chunks(values: Iterable[T], size: int = CHUNK) -> Iterator[list[T]]:
    """Yield values in lists of at most so many."""
    rest = iter(values)
    while chunk := list(islice(rest, size)):
        yield chunk


def select_among(
    connection: Connection, query: Select[*tuple[Any, ...]], column: ColumnElement[Any], values: Iterable[Any]
) -> list[Any]:
    """Return the rows of a query in which a column has one of many values."""
    found = (connection.execute(query.where(column.in_(chunk))) for chunk in chunks(sorted(set(values))))
    return [row for rows in found for row in rows]
