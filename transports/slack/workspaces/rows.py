"""Rows that are written once, whichever process comes first."""

from typing import Any, Final

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

_DIALECTS: Final = {"sqlite": sqlite, "postgresql": postgresql}


def insert_once(connection: Connection, table: Table, row: dict[str, Any]) -> bool:
    """Store a row where there is none of its key; return whether there was none."""
    insert = _DIALECTS[connection.dialect.name].insert(table).on_conflict_do_nothing()
    # Not rowcount: of an insert, drivers need not know it.
    return connection.execute(insert.returning(*table.primary_key), row).first() is not None
