"""Statements as SQL that all tests of a process share: compiling them again takes a fifth of the suite's time."""

from typing import Any

from sqlalchemy import Connection, Engine, event
from sqlalchemy.engine.default import DefaultDialect

_COMPILED: dict[Any, Any] = {}


def share_compiled() -> None:
    """Have every engine use what another compiled for the same kind of database.

    SQLAlchemy keeps what it compiled by the dialect, and each engine, so each test, has a dialect of its own. Those of
    one kind differ in nothing here: all are made by the same code for the same driver.
    """
    DefaultDialect.__eq__ = lambda self, other: type(self) is type(other)  # type: ignore[method-assign]
    DefaultDialect.__hash__ = lambda self: hash(type(self))  # type: ignore[method-assign]

    @event.listens_for(Engine, "engine_connect")
    def share(connection: Connection) -> None:
        connection.execution_options(compiled_cache=_COMPILED)
