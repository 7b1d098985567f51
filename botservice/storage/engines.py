"""Connections: one that writes, a few that read."""

import sqlite3
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.pool import NullPool

from botservice.storage.url import DatabaseUrl

READ_CONNECTIONS = 2  # with the writer and the listener: four per replica on Postgres
BUSY_TIMEOUT_SECONDS = 15


def create_writer_engine(where: DatabaseUrl) -> Engine:
    """Return an engine without a pool: its one connection is the writer's, and no other takes its place silently."""
    if not where.is_sqlite:
        return create_engine(where.url, poolclass=NullPool, connect_args={"connect_timeout": 5, **_KEEPALIVE})
    engine = create_engine(where.url, poolclass=NullPool, connect_args=_sqlite_arguments())
    _prepare_sqlite(engine, begin="BEGIN IMMEDIATE")
    return engine


def create_read_engine(where: DatabaseUrl) -> Engine:
    """Return an engine whose connections only read."""
    if not where.is_sqlite:
        engine = create_engine(
            where.url,
            pool_size=READ_CONNECTIONS,
            max_overflow=0,
            pool_pre_ping=False,
            pool_use_lifo=True,
            connect_args={"connect_timeout": 5, **_KEEPALIVE},
        )
        return engine.execution_options(postgresql_readonly=True, isolation_level="REPEATABLE READ")
    engine = create_engine(where.url, pool_size=READ_CONNECTIONS, max_overflow=0, connect_args=_sqlite_arguments())
    _prepare_sqlite(engine, begin="BEGIN")
    return engine


_KEEPALIVE = {"keepalives_idle": 5, "keepalives_interval": 2, "keepalives_count": 3, "tcp_user_timeout": 10_000}


def _sqlite_arguments() -> dict[str, Any]:
    # isolation_level None: SQLAlchemy's begin event opens transactions, not the driver's guess at what a statement is.
    return {"timeout": BUSY_TIMEOUT_SECONDS, "check_same_thread": False, "isolation_level": None}


def _prepare_sqlite(engine: Engine, *, begin: str) -> None:
    @event.listens_for(engine, "connect")
    def set_pragmas(connection: sqlite3.Connection, _: object) -> None:
        cursor = connection.cursor()
        cursor.execute("PRAGMA journal_mode=WAL")
        cursor.execute("PRAGMA synchronous=FULL")  # a commit that a platform was told of survives a power cut
        cursor.execute("PRAGMA foreign_keys=ON")
        cursor.execute("PRAGMA secure_delete=ON")  # what is forgotten leaves the file
        cursor.execute("PRAGMA cache_size=-16000")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin_transaction(connection: Connection) -> None:
        connection.exec_driver_sql(begin)
