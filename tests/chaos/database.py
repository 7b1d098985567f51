"""The databases of the chaos suite, with what may happen to them."""

import asyncio
import contextlib
import os
import resource
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
from chaos.relay import Relay
from sqlalchemy import create_engine, make_url, text
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import NullPool
from standins.postgres_server import postgres_server

from botservice import Storage

_RECOVERY_SECONDS = 30

# Its schema comes before the server's own, and so does its clock.
_ODD_CLOCK = """
CREATE SCHEMA odd;
CREATE TABLE odd.clock AS SELECT 0.0::float8 AS wrong_seconds;
CREATE FUNCTION odd.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE
    AS 'SELECT pg_catalog.clock_timestamp() + wrong_seconds * interval ''1 second'' FROM odd.clock';
"""


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
        options = "-csearch_path%3Dpublic,odd,pg_catalog"
        self.url = f"postgresql://postgres@127.0.0.1:{relay.port}/postgres?options={options}"
        self._execute(_ODD_CLOCK)

    @classmethod
    @contextlib.contextmanager
    def running(cls) -> Iterator["PostgresDatabase"]:
        with postgres_server("botservice-chaos-") as server:
            host = make_url(server.get_uri()).query["host"]
            socket = next(each for each in Path(str(host)).glob(".s.PGSQL.*") if each.suffix != ".lock")
            asyncio.run(_migrate(server.get_uri()))
            with Relay.running(lambda: [str(socket)]) as relay:
                yield cls(server, relay)

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

    def set_clock(self, wrong_seconds: float) -> None:
        """Set the server's clock wrong, as those see it who ask it."""
        self._execute(f"UPDATE odd.clock SET wrong_seconds = {wrong_seconds}")

    def fill_disk(self, seconds: float) -> None:
        """Let no file of the server grow for a while; where that is its log, it ends all its work and recovers."""
        full = self._server.get_postmaster_info().process.children()
        for process in full:
            _limit_files(process, 0)
        time.sleep(seconds)
        for process in full:
            _limit_files(process, resource.RLIM_INFINITY)
        self._wait_until_it_answers()

    def refuse_writes(self, seconds: float) -> None:
        """Let the server take no writes for a while, as one whose place another has taken."""
        read_only = "default_transaction_read_only"
        self._execute(f"ALTER SYSTEM SET {read_only} = on", "SELECT pg_reload_conf()")
        time.sleep(seconds)
        self._execute(f"SET {read_only} = off", f"ALTER SYSTEM RESET {read_only}", "SELECT pg_reload_conf()")

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + _RECOVERY_SECONDS
        while True:
            try:
                self._execute("SELECT 1")
            except OperationalError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
            else:
                return

    def rows(self, query: str) -> list[Any]:
        """Return what a query finds."""
        return self._execute(query)

    def _execute(self, *queries: str) -> list[Any]:
        engine = create_engine(self._direct, poolclass=NullPool, isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            for query in queries:
                result = connection.execute(text(query))
            return [tuple(row) for row in result.all()] if result.returns_rows else []


def _limit_files(process: psutil.Process, limit: int) -> None:
    """Let no file of a process grow beyond a size: asked for as its own user, which even root may need to be."""
    with contextlib.suppress(psutil.NoSuchProcess):  # it has ended
        user, group = process.uids().real, process.gids().real
        run_as = {"user": user, "group": group, "extra_groups": []} if os.geteuid() != user else {}

        def set_limit() -> None:
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))

        subprocess.run(["true"], check=True, preexec_fn=set_limit, **run_as)  # in a child, which is that user by then


async def _migrate(url: str) -> None:
    async with Storage.open(url, migrate=True):
        pass


Database = SqliteDatabase | PostgresDatabase
