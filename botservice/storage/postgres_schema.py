"""The schema of Postgres that an address asks for, and whether a connection is there."""

import re
from typing import Any

from botservice.core.errors import SchemaMismatch, SettingsError, UnsuitableDatabase

_SEARCH_PATH = re.compile(r"(?:-c\s*|--)search[_-]path=((?:\\.|[^\\\s])*)", re.IGNORECASE)  # as libpq's options have it
_NAME = re.compile(r"(?!pg_)[a-z_][a-z0-9_]{0,62}")  # what Postgres takes without quotation marks
_OF_USER = "$user"


def find_schema(options: str, *, source: str) -> str | None:
    """Return the schema that options of a connection ask for, the first of a search path; None where they ask for none.

    Args:
        options: As libpq takes them, such as `-csearch_path=ada`.
        source: What they were read from, for the error.

    Raises:
        SettingsError: it has a name that does not stand for itself in SQL.
    """
    found = _SEARCH_PATH.findall(options)
    if not found:
        return None
    first = _names(re.sub(r"\\(.)", r"\1", found[-1]))[0]
    if first == _OF_USER:
        return None
    if not _NAME.fullmatch(first):
        raise SettingsError(
            f"{source} asks for the schema {first!r}: the name of a schema must begin with a small letter or _, go on "
            "with small letters, digits and _, and must not begin with pg_, such as my_bot"
        )
    return first


def check_database(driver: Any, *, schema: str | None, is_made: bool = True) -> None:
    """Return if a new connection leads where the address says, and texts can be stored there.

    Args:
        schema: The one that is asked for, if any.
        is_made: Whether it has to exist.

    Raises:
        UnsuitableDatabase: something on the way has left out the schema, or the database is not in UTF-8.
        SchemaMismatch: there is no such schema.
    """
    encoding = driver.info.parameter_status("server_encoding")
    if encoding not in (None, "UTF8"):
        raise UnsuitableDatabase(
            f"the database {driver.info.dbname} has the encoding {encoding}, which cannot hold every message: make one "
            "with CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0"
        )
    if schema is None:
        return
    path, current = driver.execute("SELECT current_setting('search_path'), current_schema()").fetchone()
    if _names(path)[0] != schema:
        raise UnsuitableDatabase(
            f"DATABASE_URL asks for the schema {schema}, and the server's search_path is {path}: a connection pooler "
            "has left out the options of the address (PgBouncer: ignore_startup_parameters). Use the database's direct "
            f"address, or a role of the bot's own with ALTER ROLE name SET search_path = {schema}"
        )
    if is_made and current != schema:
        raise SchemaMismatch(
            f"there is no schema {schema} that {driver.info.user} may use: run `botservice migrate`, or as its owner "
            f"GRANT USAGE ON SCHEMA {schema} TO {driver.info.user}"
        )


def _names(path: str) -> list[str]:
    return [name.strip().strip('"') for name in path.split(",")]
