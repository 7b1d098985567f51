"""Connections: one that writes, a few that read."""

import contextlib
import sqlite3
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from weakref import WeakSet

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.exc import DisconnectionError
from sqlalchemy.pool import ConnectionPoolEntry, NullPool

from botservice.storage.failures import as_sqlalchemy_error
from botservice.storage.limits import StorageLimits
from botservice.storage.postgres_sessions import CHECK, check_database, mark_sessions
from botservice.storage.statements import BEGIN_WRITING, run_text
from botservice.storage.url import DatabaseUrl

READ_CONNECTIONS = 2  # with the writer, the listener and those of long reads: up to six per replica on Postgres
_LONG_READS = {"sqlite": 1, "postgresql": 2}  # where long reads overlap all the time, SQLite's log only grows
_LONGEST_LOG_BYTES = 16 * 1024 * 1024
_LOG_PATIENCE_SECONDS = 0.2
_CONNECT_SECONDS = 5
_NEXT_LOOK_SECONDS = 0.01

_POSTGRES: dict[str, Any] = {
    "hide_parameters": True,
    "use_native_hstore": False,  # each start would ask twice for a type that no table has
    "connect_args": {  # libpq: a host that is gone is noticed within ten seconds
        "autocommit": True,  # transactions begin where SQLAlchemy says
        "fallback_application_name": "botservice",
        "connect_timeout": _CONNECT_SECONDS,
        "keepalives_idle": 5,
        "keepalives_interval": 2,
        "keepalives_count": 3,
        "tcp_user_timeout": 10_000,
        "target_session_attrs": "read-write",  # of several hosts, the one that is not a copy; a copy alone is refused
    },
}


def create_writer_engine(
    where: DatabaseUrl, limits: StorageLimits, *, is_migrating: bool = False, holds_locks: bool = False
) -> Engine:
    """Return an engine without a pool: its one connection is the writer's, and no other takes its place silently.

    Args:
        is_migrating: Whether tables are rebuilt. SQLite then does not follow foreign keys, or dropping the old table
            would take everything that refers to it along (SQLite, "Making Other Kinds Of Table Schema Changes").
        holds_locks: Whether its session will hold the claims of this process.
    """
    if not where.is_sqlite:
        engine = create_engine(where.url, poolclass=NullPool, **_POSTGRES)
        check = partial(check_database, schema=where.schema, is_made=not is_migrating)
        mark_sessions(engine, is_writer=holds_locks, check=check)
        _check_transactions(engine, begin="BEGIN")
        return engine
    engine = create_engine(where.url, poolclass=NullPool, hide_parameters=True, connect_args=_sqlite_arguments(limits))
    foreign_keys = "OFF" if is_migrating else "ON"
    log_bytes = str(_LONGEST_LOG_BYTES)
    _prepare_sqlite(engine, limits, begin=BEGIN_WRITING, foreign_keys=foreign_keys, journal_size_limit=log_bytes)
    return engine


def create_building_engine(where: DatabaseUrl) -> Engine:
    """Return an engine for Postgres whose statements are transactions of their own, as building indexes aside needs."""
    engine = create_engine(where.url, poolclass=NullPool, isolation_level="AUTOCOMMIT", **_POSTGRES)
    mark_sessions(engine, check=partial(check_database, schema=where.schema))
    return engine


def create_read_engine(where: DatabaseUrl, limits: StorageLimits) -> Engine:
    """Return an engine whose connections only read."""
    size = READ_CONNECTIONS + count_long_reads(where)
    pool: dict[str, Any] = {"pool_size": size, "max_overflow": 0}
    if not where.is_sqlite:
        engine = create_engine(where.url, pool_use_lifo=True, **_POSTGRES, **pool)
        mark_sessions(engine, check=partial(check_database, schema=where.schema))
        _check_transactions(engine, begin="BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")

        @event.listens_for(engine, "connect")
        def limit_questions(driver: Any, _: object) -> None:
            driver.execute(f"SET statement_timeout = {int(limits.read * 1000)}")

        return engine
    engine = create_engine(where.url, hide_parameters=True, connect_args=_sqlite_arguments(limits), **pool)
    _prepare_sqlite(engine, limits, begin="BEGIN", query_only="ON")
    return engine


def count_long_reads(where: DatabaseUrl) -> int:
    """Return how many long reads run side by side; more of them wait for one another, and short ones never for them."""
    return _LONG_READS["sqlite" if where.is_sqlite else "postgresql"]


def make_renewable(engine: Engine) -> Callable[[], None]:
    """Return a function that has each connection of an engine replaced by a new one before it is used again."""
    renewals = 0

    @event.listens_for(engine, "connect")
    def note(_: object, record: ConnectionPoolEntry) -> None:
        record.info["renewals"] = renewals

    @event.listens_for(engine, "checkout")
    def check(_: object, record: ConnectionPoolEntry, __: object) -> None:
        if record.info.get("renewals", 0) != renewals:
            raise DisconnectionError

    def renew() -> None:
        nonlocal renewals
        renewals += 1

    return renew


def prepare_postgres(connection: Connection, limits: StorageLimits) -> int:
    """Let Postgres end the session, and with it the claims, of a process that hangs (Postgres manual, 20.11).

    Return the id of the session, by which others know what it says.
    """
    with connection.begin():
        for name, seconds in (
            ("idle_session_timeout", limits.silence),
            ("idle_in_transaction_session_timeout", limits.silence),
            ("lock_timeout", limits.lock),
        ):
            connection.exec_driver_sql(f"SET {name} = {int(seconds * 1000)}")
        return int(connection.exec_driver_sql("SELECT pg_backend_pid()").scalar_one())


def shorten_log(path: Path, *, longest_bytes: int = _LONGEST_LOG_BYTES) -> None:
    """Empty the write-ahead log of SQLite if it has become long and no reader needs it."""
    log = path.with_name(f"{path.name}-wal")
    try:
        if log.stat().st_size <= longest_bytes:
            return
        with contextlib.closing(sqlite3.connect(path, timeout=_LOG_PATIENCE_SECONDS)) as connection:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()  # most of it, while others write
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except (OSError, sqlite3.Error):
        return  # there is none, or it is in use: the next one tries again


def _check_transactions(engine: Engine, *, begin: str) -> None:
    """Have every transaction of an engine begin in its own session, and be committed or fail."""

    @event.listens_for(engine, "begin")
    def begin_transaction(connection: Connection) -> None:
        # As text: in another session, the name of a prepared statement stands for any statement.
        run_text(connection, f"{begin}; {connection.connection.info[CHECK]}", prepare=False)

    @event.listens_for(engine, "commit")
    def check_committable(connection: Connection) -> None:
        driver: Any = connection.connection.dbapi_connection
        if driver.info.transaction_status.name == "INERROR":  # Postgres would roll it back, and say nothing
            error = connection.dialect.loaded_dbapi.InternalError("a statement of the transaction had failed")
            raise as_sqlalchemy_error(connection, "COMMIT", error) from error


class _SqliteConnection(sqlite3.Connection):
    """Closes the cursors of a transaction with it.

    A statement whose rows are not read to the end outlives its transaction: SQLite would keep its view of the database
    for every later one of this connection, and refuse to write by it. Frames of an error hold such cursors.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._cursors: WeakSet[sqlite3.Cursor] = WeakSet()

    def cursor(self, *args: Any) -> Any:
        cursor = super().cursor(*args)
        self._cursors.add(cursor)
        return cursor

    def commit(self) -> None:
        self._close_cursors()
        super().commit()

    def rollback(self) -> None:
        self._close_cursors()
        super().rollback()

    def _close_cursors(self) -> None:
        for cursor in list(self._cursors):
            cursor.close()
        self._cursors.clear()


def _sqlite_arguments(limits: StorageLimits) -> dict[str, Any]:
    # isolation_level None: SQLAlchemy's begin event opens transactions, not the driver's guess at what a statement is.
    return {"timeout": limits.lock, "check_same_thread": False, "isolation_level": None, "factory": _SqliteConnection}


def _prepare_sqlite(engine: Engine, limits: StorageLimits, *, begin: str, **pragmas: str) -> None:
    @event.listens_for(engine, "connect")
    def set_pragmas(connection: sqlite3.Connection, _: object) -> None:
        cursor = connection.cursor()
        _set_wal(cursor, limits.lock)
        cursor.execute("PRAGMA synchronous=FULL")  # a commit that a platform was told of survives a power cut
        cursor.execute("PRAGMA secure_delete=ON")  # what is forgotten leaves the file
        cursor.execute("PRAGMA cache_size=-16000")
        for name, value in pragmas.items():
            cursor.execute(f"PRAGMA {name}={value}")
        cursor.close()

    event.listen(engine, "begin", partial(run_text, text=begin))


def _set_wal(cursor: sqlite3.Cursor, patience_seconds: float) -> None:
    """Have a file keep a write-ahead log; SQLite itself waits for no other that is about to write to a new file."""
    give_up_at = time.monotonic() + patience_seconds
    while True:
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > give_up_at:
                raise
            time.sleep(_NEXT_LOOK_SECONDS)
        else:
            return
