"""A place where a process of the service runs; whenever it ends, another one is started there."""

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, cast

import uvicorn
from sqlalchemy import Connection, Engine, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool
from starlette.types import ASGIApp

from botservice.errors import BotServiceError, SettingsError
from botservice.proving.records import Killed, Record

# The tables of an extension do not count.
_NO_EXTENSION: Final = "NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = found.oid AND d.deptype = 'e')"
_RELATIONS: Final = (
    "SELECT oid::regclass::text FROM pg_class found WHERE relkind IN ('r', 'p', 'v', 'm', 'S', 'f') "  # noqa: S608 - nobody else's text
    f"AND relnamespace = current_schema()::regnamespace AND {_NO_EXTENSION}"
)
_TABLES: Final = f"{_RELATIONS} AND relkind IN ('r', 'p')"
_FUNCTIONS: Final = (
    "SELECT oid::regprocedure::text FROM pg_proc found "  # noqa: S608 - nobody else's text
    f"WHERE pronamespace = current_schema()::regnamespace AND {_NO_EXTENSION}"
)
_TABLE_SECONDS: Final = 20

_KEPT: Final = ("PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT", "LD_LIBRARY_PATH")
_PROGRAM: Final = ("-m", "botservice")
_SERVE: Final = (*_PROGRAM, "serve", "--app", "botservice.proving.bot:service", "--port", "0")
_MOST_FAILED_STARTS: Final = 3
_LAST_CHARACTERS: Final = 2000


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


def environment_of(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process, without the caller's own settings."""
    kept = {each: os.environ[each] for each in _KEPT if each in os.environ}
    source = str(Path(__file__).parents[2])
    return {**kept, "PYTHONPATH": source, "LOG_LEVEL": "WARNING", **settings}


async def migrate(folder: Path, settings: Mapping[str, str]) -> None:
    """Make the tables, as a deployment does."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *_PROGRAM,
        "migrate",
        cwd=folder,
        env=environment_of(settings),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        said, _ = await process.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    if process.returncode:
        raise BotServiceError(f"the tables cannot be made:\n{said.decode(errors='replace')[-_LAST_CHARACTERS:]}")


class Place:
    """Runs `botservice serve`, one process after the other."""

    def __init__(
        self,
        name: str,
        folder: Path,
        settings: Callable[[str], Mapping[str, str]],
        record: Record,
        ports: set[int],
        clock: Callable[[], float],
    ) -> None:
        self.is_up = asyncio.Event()
        self._name = name
        self._folder = folder
        self._settings = settings
        self._record = record
        self._ports = ports
        self._clock = clock
        self._process: asyncio.subprocess.Process | None = None
        self._process_name = ""
        self._log = folder / f"{name}.log"

    async def run(self) -> None:
        """Keep a process running until cancelled; then kill it."""
        failed = 0
        number = 0
        while failed < _MOST_FAILED_STARTS:
            number += 1
            was_up = await self._live(f"{self._name}{number}")
            was_killed = any(each.process == self._process_name for each in self._record.killed)
            if not was_killed:
                self._record.ended_alone.append(self._process_name)
            failed = 0 if was_up or was_killed else failed + 1
        said = self._log.read_text(errors="replace")
        raise BotServiceError(f"the service does not start:\n{said[-_LAST_CHARACTERS:]}")

    def kill(self) -> None:
        """Kill the process with SIGKILL, wherever it stands."""
        if self._process is None or self._process.returncode is not None:
            return
        self._record.killed.append(Killed(self._process_name, self._clock()))
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def _live(self, name: str) -> bool:
        """Run one process to its end, and return whether it has ever listened."""
        with self._log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *_SERVE,
                cwd=self._folder,
                env=environment_of(self._settings(name)),
                stdin=asyncio.subprocess.PIPE,  # its end tells the process that the parent is gone
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                start_new_session=True,  # Ctrl+C is for us
            )
        self._process_name, self._process = name, process
        port = 0
        try:
            port = await self._port_of(process)
            if port:
                self._ports.add(port)
                self.is_up.set()
            await process.wait()
        finally:
            self.is_up.clear()
            self._ports.discard(port)
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        return port != 0

    async def _port_of(self, process: asyncio.subprocess.Process) -> int:
        """Return where a process listens; 0 where it ends before."""
        async for line in cast("asyncio.StreamReader", process.stdout):
            if line.split()[:1] == [b"listening"]:
                return int(line.rsplit(b":", 1)[1])
        return 0


class _Server(uvicorn.Server):
    """A server that leaves signals to the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


@contextlib.asynccontextmanager
async def listening(app: ASGIApp) -> AsyncIterator[int]:
    """Serve an application until the block is left; give the port."""
    config = uvicorn.Config(app, log_config=None, log_level="critical", access_log=False, lifespan="off", ws="none")
    server = _Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield int(listener.getsockname()[1])
        finally:
            server.should_exit = server.force_exit = True
            await asyncio.wait([task])
