"""The tables, with the triggers on them. The migrations make both; a test holds the tables against each other.

All are there as soon as one is: forgetting, merging and looking for files go through all that `metadata` knows.

Triggers are what the database itself does for every writer, also for an earlier release or an import. Lists show how
many messages a conversation has, and budgets go by what was used of every model on a day; both would otherwise be
counted again each time. What was noted of messages goes with them, and with any change of them; what is left is read
again. A migration that makes one of these tables again has to call `make_triggers` again. Their SQL stands in
`triggers_sql/`, a blank line between two statements.
"""

from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, event

from botservice.storage.tables import conversations, knowledge, people, services, waiting
from botservice.storage.tables.columns import metadata

__all__ = ["conversations", "knowledge", "people", "services", "waiting"]

_FOLDER: Final = Path(__file__).with_name("triggers_sql")


def make_triggers(connection: Connection) -> None:
    """Have the database count from now on."""
    _run(connection, "counting")


def make_observing_triggers(connection: Connection) -> None:
    """Have what was noted of messages go with them from now on."""
    _run(connection, "observing")


def _run(connection: Connection, name: str) -> None:
    statements = (_FOLDER / f"{name}.{connection.dialect.name}.sql").read_text(encoding="utf-8")
    for statement in statements.split("\n\n"):
        connection.exec_driver_sql(statement)


@event.listens_for(metadata, "after_create")
def _make_triggers(_target: object, connection: Connection, **_: Any) -> None:
    make_triggers(connection)
    make_observing_triggers(connection)
