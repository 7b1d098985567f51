"""What statements share: the words of the two databases, long lists of values, and conditions for parts of tables."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import islice
from typing import Any, Final, TypeVar

from sqlalchemy import ColumnElement, Connection, CursorResult, Executable, FromClause, Select, Table, and_

from botservice.core.messages import Author
from botservice.storage.failures import as_sqlalchemy_error

BEGIN_WRITING = "BEGIN IMMEDIATE"  # in SQLite: otherwise a transaction that has read could not go on to write


def of_each_database(make: Callable[[Callable[..., Any]], Any]) -> Callable[[Connection], Any]:
    """Return what gives a statement as a connection's database says it; make makes it from that database's INSERT.

    It is made once, when it is first needed: nobody loads SQLAlchemy's part for a database that is not used.
    """

    @cache
    def made(name: str) -> Any:
        return make(import_module(f"sqlalchemy.dialects.{name}").insert)

    return lambda connection: made(connection.dialect.name)


def upserting(table: Table, *keys: str) -> Callable[[Connection], Any]:
    """Return what gives the statement that writes a row in the place of the one with the same keys."""
    changed = [column.name for column in table.columns if column.name not in keys]
    return of_each_database(lambda insert: _replacing(insert(table), keys, changed))


def _replacing(new: Any, keys: Sequence[str], changed: Sequence[str]) -> Any:
    return new.on_conflict_do_update(index_elements=keys, set_={name: new.excluded[name] for name in changed})


def execute_each(connection: Connection, statement: Executable, rows: Sequence[Mapping[str, Any]]) -> CursorResult[Any]:
    """Execute a statement that returns no rows once for each of some rows of parameters, all of them at once."""
    return connection.execute(statement, rows[0] if len(rows) == 1 else rows)


def run_text(connection: Connection, text: str, **options: Any) -> None:
    """Run SQL such as BEGIN by the driver, which begins no transaction for it.

    Args:
        options: Of the driver.
    """
    driver: Any = connection.connection.dbapi_connection
    try:
        (driver.executescript if ";" in text and not options else driver.execute)(text, **options)
    except connection.dialect.loaded_dbapi.Error as error:
        told = as_sqlalchemy_error(connection, text, error)
        if told.connection_invalidated:
            connection.invalidate(error)
        raise told from error


LARGEST_ID: Final = 2**63 - 1


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
