"""Which version of the tables a database has, and how it gets the right one."""

import re
import secrets
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

from sqlalchemy import Connection, Engine, delete, insert, inspect, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.schema import CreateSchema

from botservice.core.errors import DatabaseInUse, SchemaMismatch, StorageUnavailable
from botservice.core.progress import Progress, unwatched
from botservice.storage.claims import SharedFile
from botservice.storage.conversion import CONVERSION_TABLE, OLD_VERSION, OLD_VERSION_TABLE, convert
from botservice.storage.engines import create_writer_engine
from botservice.storage.failures import is_blocked, is_conflict, is_name_taken
from botservice.storage.limits import StorageLimits
from botservice.storage.postgres_building import finish_building
from botservice.storage.postgres_replicas import lock_space
from botservice.storage.postgres_sessions import wait_until_alone
from botservice.storage.sqlite_files import STEPS_AT_ONCE, check_interrupted
from botservice.storage.tables.columns import metadata
from botservice.storage.tables.conversations import schema_compatibility
from botservice.storage.url import DatabaseUrl

if TYPE_CHECKING:
    from alembic.config import Config

# The newest file of migrations/versions. Kept here so that opening a database does not load alembic.
SCHEMA_VERSION = "0106"
_BASELINE = "0100"  # what 0.17.0 is converted to, and migrated from like any other
VERSION_TABLE = "botservice_version"
"""Our own: another program may have an `alembic_version` in the same schema."""

COPY_MARK = "botservice_copy"
"""The table that a database has while it is copied to: until the copy is whole, its triggers do nothing."""
_MIGRATIONS = Path(__file__).parent / "migrations"
_OWN_FILE = "name another file in DATABASE_URL"
_OWN_SCHEMA = (
    "give the bot a schema of its own, with ?options=-csearch_path%3Dbot at the end of DATABASE_URL, and run "
    "`botservice migrate`"
)
_OUR_VERSION = re.compile(r"[0-9]{4}")
_TABLES = text("SELECT tablename FROM pg_tables WHERE schemaname = current_schema() AND tablename = ANY(:names)")
_IS_SCHEMA = text("SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = :name)")
_MIGRATION_LOCK = 1
_POLL_SECONDS = 0.05
_DENIED = text(
    "SELECT relname FROM pg_class WHERE relnamespace = quote_ident(current_schema())::regnamespace "
    "AND relname = ANY(:names) AND NOT (has_table_privilege(oid, 'INSERT') AND has_table_privilege(oid, 'UPDATE') "
    "AND has_table_privilege(oid, 'DELETE')) ORDER BY relname LIMIT 1"
)
_HOLDERS = text(
    "SELECT a.pid, coalesce(a.usename, '?') || CASE a.application_name WHEN '' THEN '' "
    "ELSE ' (' || a.application_name || ')' END AS name, "
    "coalesce(a.state, '?') AS state, coalesce(extract(epoch FROM now() - a.xact_start), 0)::int AS seconds "
    "FROM pg_stat_activity a WHERE a.pid <> pg_backend_pid() AND EXISTS (SELECT FROM pg_locks l "
    "LEFT JOIN pg_class c ON c.oid = l.relation WHERE l.pid = a.pid AND l.granted "
    "AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND ("
    "(c.relnamespace = quote_ident(current_schema())::regnamespace AND c.relname = ANY(:names)) OR "
    "(l.locktype = 'advisory' AND l.objsubid = 2 AND l.objid = :id "
    "AND l.classid::bigint = (the_space)::bigint & 4294967295))) "
    "ORDER BY a.xact_start NULLS LAST LIMIT 3".replace("the_space", lock_space())
)
_PROBE_BYTES = 32 * 1024  # as hexadecimal digits twice as many: more than what a file may have left in itself
_TABLE_SECONDS = 2.0  # below the time that the writers of running processes wait for a lock
_BLOCKED_SECONDS = 1.0
_upgrading = threading.Lock()  # alembic knows one migration of a process at a time


def read_version(connection: Connection) -> str | None:
    """Return the version of a database's tables, or None if there are none.

    Raises:
        SchemaMismatch: tables of another program have the names of ours.
    """
    found = _find_tables(connection, VERSION_TABLE, OLD_VERSION_TABLE, CONVERSION_TABLE, *metadata.tables)
    table = next((each for each in (VERSION_TABLE, OLD_VERSION_TABLE) if each in found), None)
    versions = [] if table is None else _read_versions(connection, table)
    found.discard(OLD_VERSION_TABLE)  # of 0.17.0, or of another program that is not in the way
    if not versions and found <= {VERSION_TABLE}:
        return None
    if len(versions) == 1 and _OUR_VERSION.fullmatch(versions[0]) and "contexts" in found:
        if table == VERSION_TABLE or versions[0] <= OLD_VERSION:
            return versions[0]
        if CONVERSION_TABLE in found:
            return OLD_VERSION
    if found:
        own = _OWN_FILE if connection.dialect.name == "sqlite" else _OWN_SCHEMA
        raise SchemaMismatch(
            f"the database has tables of another program ({', '.join(sorted(found))}) where the bot's would be: {own}"
        )
    return None


def _read_versions(connection: Connection, table: str) -> list[str]:
    return list(connection.execute(text(f"SELECT version_num FROM {table}")).scalars())  # noqa: S608 - one of ours


def _find_tables(connection: Connection, *names: str) -> set[str]:
    """Return which of the tables there are; on Postgres, in the schema in which tables are made."""
    if connection.dialect.name == "sqlite":
        return set(names) & set(inspect(connection).get_table_names())
    return set(connection.execute(_TABLES, {"names": list(names)}).scalars())


def read_oldest_compatible(connection: Connection) -> str | None:
    """Return the oldest version whose program works on these tables, where they say so.

    Releases before this was recorded ask for exactly their own version when they start.
    """
    if not _find_tables(connection, "schema_compatibility"):
        return None
    return connection.execute(text("SELECT min(oldest_version) FROM schema_compatibility")).scalar_one_or_none()


def check_whole(connection: Connection) -> None:
    """Check that a database is not the target of a copy that was cut off.

    Raises:
        SchemaMismatch: it is.
    """
    if _find_tables(connection, COPY_MARK):
        raise SchemaMismatch(
            "the database holds a part of a copy: run the same `botservice copy` again, which goes on where it was, "
            "or empty the database"
        )


def try_writing(connection: Connection) -> None:
    """Write as much as a long message and take it away again, and check the rights to write to every table.

    Raises:
        StorageUnavailable: the right to write to one of them is missing.
    """
    probe = secrets.token_hex(_PROBE_BYTES)
    if connection.dialect.name == "sqlite":  # which writes nothing before a commit
        connection.execute(insert(schema_compatibility), {"oldest_version": probe})
        connection.execute(delete(schema_compatibility).where(schema_compatibility.c.oldest_version == probe))
        return
    undone = connection.begin_nested()  # no DELETE: the table has no key, and may be replicated
    connection.execute(insert(schema_compatibility), {"oldest_version": probe})
    undone.rollback()
    denied = connection.execute(_DENIED, {"names": list(metadata.tables)}).scalar()
    if denied is not None:
        raise StorageUnavailable(f"the database refuses writes: permission denied for table {denied}")


def check_version(version: str | None, *, remedy: str, oldest_compatible: str | None = None) -> None:
    """Return if this program works with tables of a version: its own, or a newer one that was only added to.

    Raises:
        SchemaMismatch: it is older, or too new; remedy says what to do about an older one.
    """
    if version == SCHEMA_VERSION:
        return
    if version is None:
        raise SchemaMismatch(f"the database has no tables yet: {remedy}")
    if version > SCHEMA_VERSION:
        if oldest_compatible is not None and oldest_compatible <= SCHEMA_VERSION:
            return
        raise SchemaMismatch(
            f"the database has version {version}, newer than {SCHEMA_VERSION}, which this botservice knows: "
            "install the newer botservice, or restore the backup that was made before it"
        )
    if version < OLD_VERSION:
        raise SchemaMismatch(
            f"the database has version {version}, of a release before 0.17.0: install botservice 0.17.0, run "
            "`botservice migrate` with it, then install this botservice and run `botservice migrate` again"
        )
    raise SchemaMismatch(f"the database has version {version}, older than {SCHEMA_VERSION}: {remedy}")


def migrate(
    where: DatabaseUrl,
    limits: StorageLimits = StorageLimits(),  # noqa: B008 - frozen
    progress: Progress = unwatched,
) -> str:
    """Bring the tables to this program's version and return theirs. Blocks; waits for other processes that migrate.

    A newer version that this program works with stays as it is.

    Raises:
        DatabaseInUse: an SQLite file is worked on by another process, and is not up to date.
        SchemaMismatch: the database is too new for this program.
    """
    engine = create_writer_engine(where, limits, is_migrating=True)
    try:
        if where.path is not None:
            _migrate_file(engine, SharedFile.at(where.path), progress, give_up_at=time.monotonic() + limits.migration)
        else:
            make_schema(where, limits)
            with engine.connect() as connection:
                give_up_at = time.monotonic() + limits.blocked_migration
                _migrate_patiently(connection, where, progress, give_up_at=give_up_at)
            finish_building(where, limits, progress)
        with engine.connect() as connection, connection.begin():
            return read_version(connection) or SCHEMA_VERSION
    finally:
        engine.dispose()


def make_schema(where: DatabaseUrl, limits: StorageLimits) -> None:
    """Make the schema of Postgres that the address asks for, or the first of the role's, where it is missing."""
    engine = create_writer_engine(where, limits, is_migrating=True)  # disposed of by itself: it has no pool
    with engine.connect() as connection, connection.begin():
        name = where.schema
        if name is None:
            if connection.scalar(text("SELECT current_schema()")) is not None:
                return
            name = str(connection.scalar(text("SHOW search_path"))).split(",")[0].strip().strip('"')
        if name and not connection.scalar(_IS_SCHEMA, {"name": name}):
            connection.execute(CreateSchema(name, if_not_exists=True))


@cache
def blank_file() -> bytes:
    """Return an SQLite file with this program's tables and nothing in them."""
    with tempfile.TemporaryDirectory(prefix="botservice-") as folder:
        path = Path(folder) / "blank.db"
        migrate(DatabaseUrl.parse(f"sqlite:///{path}"))
        return path.read_bytes()


def _migrate_file(engine: Engine, shared: SharedFile, progress: Progress, *, give_up_at: float) -> None:
    while not _is_current(engine):
        try:
            shared.lock.acquire()
        except DatabaseInUse:
            if time.monotonic() > give_up_at:
                raise
            time.sleep(_POLL_SECONDS)
            continue
        try:
            with engine.connect() as connection:
                with connection.begin():
                    is_old = read_version(connection) == OLD_VERSION
                    if not is_old:
                        _upgrade(connection, progress)
                if is_old:
                    _convert(connection, progress, lambda: None)
        except DBAPIError as error:
            check_interrupted(error.orig)
            raise
        finally:
            shared.lock.release()


def _is_current(engine: Engine) -> bool:
    with engine.connect() as connection, connection.begin():
        return not _is_due(connection)


def _is_due(connection: Connection) -> bool:
    """Return whether the tables are older than this program's.

    Raises:
        SchemaMismatch: they are too new for it.
    """
    version = read_version(connection)
    if version is None or OLD_VERSION <= version < SCHEMA_VERSION:
        return True
    check_version(version, remedy="", oldest_compatible=read_oldest_compatible(connection))
    return False


def _migrate_patiently(connection: Connection, where: DatabaseUrl, progress: Progress, *, give_up_at: float) -> None:
    """Migrate when the tables are free: waiting long for the lock of a table would hold up all others behind it.

    Raises:
        StorageUnavailable: they are not for too long; the message names the sessions that hold locks.
    """
    while True:
        try:
            if _migrate_under_advisory_lock(connection, where, progress):
                return
            error: DBAPIError | None = None
        except DBAPIError as raised:
            if not (is_blocked(raised) or is_conflict(raised)):
                raise
            error = raised
        holders = _describe_holders(connection)
        if error is not None and time.monotonic() > give_up_at:  # another migration is waited for until it is done
            raise StorageUnavailable(
                f"the tables cannot be changed while other sessions hold locks: {holders}. Nothing has changed; end "
                "them, or wait for them, and run `botservice migrate` again"
            ) from error
        progress(0, 0, f"waits for {holders}")
        time.sleep(_BLOCKED_SECONDS)


def _migrate_under_advisory_lock(connection: Connection, where: DatabaseUrl, progress: Progress) -> bool:
    """Migrate; return False if another process is doing so."""
    lock = {"id": _MIGRATION_LOCK}
    with connection.begin():
        if not connection.scalar(text(f"SELECT pg_try_advisory_xact_lock({lock_space()}, :id)"), lock):
            return False
        connection.execute(text(f"SET lock_timeout = {int(_TABLE_SECONDS * 1000)}"))
        is_old = read_version(connection) == OLD_VERSION
        if is_old:
            connection.execute(text(f"SELECT pg_advisory_lock({lock_space()}, :id)"), lock)
        elif _is_due(connection):
            _upgrade(connection, progress)
    if is_old:
        try:
            _convert(
                connection, progress, lambda: wait_until_alone(connection, where.name, "run `botservice migrate` again")
            )
        finally:
            if not connection.invalidated:
                connection.rollback()
                with connection.begin():
                    connection.execute(text(f"SELECT pg_advisory_unlock({lock_space()}, :id)"), lock)
        return _migrate_under_advisory_lock(connection, where, progress)
    return True


def _describe_holders(connection: Connection) -> str:
    """Return which other sessions hold what a migration waits for, those with the oldest transactions first."""
    with connection.begin():
        names = [*metadata.tables, VERSION_TABLE, OLD_VERSION_TABLE]
        rows = connection.execute(_HOLDERS, {"id": _MIGRATION_LOCK, "names": names}).all()
    return "; ".join(f"session {each.pid} of {each.name}, {each.state} for {each.seconds} s" for each in rows) or "none"


def _convert(connection: Connection, progress: Progress, check_alone: Callable[[], None]) -> None:
    """Convert the tables of 0.17.0 to the baseline."""

    def stamp() -> None:
        from alembic import command

        with _upgrading:
            command.stamp(_alembic_config(connection), _BASELINE)

    convert(connection, _BASELINE, progress, check_alone=check_alone, stamp=stamp)


def _alembic_config(connection: Connection, reach: Callable[[str], None] = lambda _: None) -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    config.attributes["version_table"] = VERSION_TABLE
    config.attributes["progress"] = reach
    return config


def _upgrade(connection: Connection, progress: Progress) -> None:
    from alembic import command

    config = _alembic_config(connection, _as_steps(connection, progress))
    with _upgrading:
        try:
            command.upgrade(config, "head")
        except DBAPIError as error:
            if not is_name_taken(error):
                raise
            raise SchemaMismatch(
                f"another program uses a name that this version needs: {str(error.orig).splitlines()[0]}. Nothing has "
                "changed; rename it, or move the bot with `botservice copy` to "
                f"{'another file' if connection.dialect.name == 'sqlite' else 'a schema of its own'}"
            ) from error


def _as_steps(connection: Connection, progress: Progress) -> Callable[[str], None]:
    """Return a callback for each version that is reached. On SQLite, Ctrl+C is noticed also within a statement."""
    if connection.dialect.name == "sqlite":
        driver = cast("sqlite3.Connection", connection.connection.driver_connection)
        driver.set_progress_handler(lambda: progress(0, 0), STEPS_AT_ONCE)
    return lambda version: progress(0, 0, f"version {version}")
