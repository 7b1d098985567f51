"""Statements of the two databases: what they say differently, and what is handed to their drivers as it is."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final

from sqlalchemy import Connection, CursorResult, Executable, Table

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
