"""Every statement of the proof: its database is empty before and afterwards, and says what was recorded."""

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection, Engine, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from botservice.core.errors import BotServiceError, SettingsError

# The tables of an extension do not count.
_NO_EXTENSION: Final = "NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = found.oid AND d.deptype = 'e')"
_RELATIONS: Final = (
    "SELECT oid::regclass::text FROM pg_class found WHERE relkind IN ('r', 'p', 'v', 'm', 'S', 'f') "  # noqa: S608 - no text of others
    f"AND relnamespace = quote_ident(current_schema())::regnamespace AND {_NO_EXTENSION}"
)
_TABLES: Final = f"{_RELATIONS} AND relkind IN ('r', 'p')"
_FUNCTIONS: Final = (
    "SELECT oid::regprocedure::text FROM pg_proc found "  # noqa: S608 - no text of others
    f"WHERE pronamespace = quote_ident(current_schema())::regnamespace AND {_NO_EXTENSION}"
)
_TABLE_SECONDS: Final = 20


@contextlib.contextmanager
def database_at(url: str | None, folder: Path) -> Iterator[str]:
    """Give the address of an empty database: a file in a folder, or a Postgres by its URL.

    Raises:
        SettingsError: it is no Postgres, or not empty.
        BotServiceError: it cannot be reached.
    """
    if url is None:
        yield f"sqlite:///{folder / 'town.db'}"
        return
    engine = _engine_of(url)
    try:
        functions = _check_empty(engine)
        try:
            yield url
        finally:
            _empty(engine, functions)
    except SQLAlchemyError as error:
        raise BotServiceError(f"--database does not work: {getattr(error, 'orig', error)}") from error
    finally:
        engine.dispose()


def _engine_of(url: str) -> Engine:
    try:
        address = make_url(url)
    except (ArgumentError, ValueError):
        raise SettingsError("--database must be postgresql://user@host/name; what it holds is no URL") from None
    if address.drivername.partition("+")[0] not in ("postgres", "postgresql"):
        raise SettingsError("--database must be postgresql://...; without it, the proof has an SQLite file of its own")
    return create_engine(address.set(drivername="postgresql+psycopg"), poolclass=NullPool)


def write_record(url: str, path: Path) -> None:
    """Write what the service has recorded of its transitions, as JSON lines."""
    engine = _engine_of(url) if url.startswith("postgres") else create_engine(url, poolclass=NullPool)
    try:
        with engine.connect() as connection, path.open("w", encoding="utf-8") as file:
            for row in connection.execute(text("SELECT * FROM transitions ORDER BY seq")).mappings():
                file.write(f"{json.dumps(dict(row))}\n")
    finally:
        engine.dispose()


def _check_empty(engine: Engine) -> set[str]:
    """Return the functions that are there, of which none is ours."""
    with engine.connect() as connection:
        if (schema := connection.execute(text("SELECT current_schema()")).scalar_one()) is None:
            raise SettingsError("--database has no schema to make tables in: see its search_path")
        tables = _names(connection, _RELATIONS)
        if tables:
            raise SettingsError(
                f"--database is not empty: its schema {schema} has {len(tables)} tables and the like. "
                "Make an empty one with createdb; it is left empty"
            )
        return _names(connection, _FUNCTIONS)


def _empty(engine: Engine, functions: set[str]) -> None:
    """Take away what was made since."""
    with engine.begin() as connection:
        connection.execute(text(f"SET LOCAL lock_timeout = '{_TABLE_SECONDS}s'"))
        for name in _names(connection, _TABLES):
            connection.execute(text(f"DROP TABLE IF EXISTS {name} CASCADE"))
        for name in _names(connection, _FUNCTIONS) - functions:
            connection.execute(text(f"DROP FUNCTION IF EXISTS {name} CASCADE"))


def _names(connection: Connection, query: str) -> set[Any]:
    return set(connection.execute(text(query)).scalars())
