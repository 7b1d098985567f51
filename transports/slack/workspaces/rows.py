"""Rows that are written once, whichever process comes first."""

from typing import Any, Final

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

_DIALECTS: Final = {"sqlite": sqlite, "postgresql": postgresql}


def insert_once(connection: Connection, table: Table, row: dict[str, Any]) -> bool:
    """Store a row where there is none of its key; return whether there was none."""
    insert = _DIALECTS[connection.dialect.name].insert(table)
    return connection.execute(insert.on_conflict_do_nothing(), row).rowcount > 0
