"""A place where a process of the service runs; whenever it ends, another one is started there."""

import asyncio
import contextlib
import itertools
import os
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import uvicorn
from starlette.types import ASGIApp

from botservice.core.errors import BotServiceError, SettingsError
from botservice.proving.checker import Killed, SimulationRecord

_KEPT: Final = ("PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT", "LD_LIBRARY_PATH")
_MIGRATE: Final = ("migrate",)
_SERVE: Final = ("serve", "--app", "botservice.proving.bot:service", "--port", "0")
_MOST_FAILED_STARTS: Final = 3
_LAST_CHARACTERS: Final = 2000


def check_writable(path: Path) -> None:
    """Return if the record can be written there, which is written last.

    Raises:
        SettingsError: it cannot.
    """
    try:
        path.touch()
    except OSError as error:
        raise SettingsError(f"--record {path} cannot be written: {error.strerror}") from None


def environment_of(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process, without the caller's own settings."""
    kept = {each: os.environ[each] for each in _KEPT if each in os.environ}
    source = str(Path(__file__).parents[2])
    return {**kept, "PYTHONPATH": source, "LOG_LEVEL": "WARNING", **settings}


@contextlib.asynccontextmanager
async def _running(
    command: Sequence[str], folder: Path, settings: Mapping[str, str], errors: Any
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run a command of the service, and kill its process at the end of the block."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "botservice", *command),
        cwd=folder,
        env=environment_of(settings),
        stdin=asyncio.subprocess.PIPE,  # its end tells the process that the parent is gone
        stdout=asyncio.subprocess.PIPE,
        stderr=errors,
        start_new_session=True,  # Ctrl+C is for us
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def migrate(folder: Path, settings: Mapping[str, str]) -> None:
    """Make the tables, as a deployment does."""
    async with _running(_MIGRATE, folder, settings, asyncio.subprocess.STDOUT) as process:
        said, _ = await process.communicate()
    if process.returncode:
        raise BotServiceError(f"the tables cannot be made:\n{said.decode(errors='replace')[-_LAST_CHARACTERS:]}")


@dataclass(slots=True)
class ServerProcess:
    """Runs `botservice serve`, one process after the other."""

    name: str
    folder: Path
    settings: Callable[[str], Mapping[str, str]]
    record: SimulationRecord
    ports: set[int]
    clock: Callable[[], float]
    is_up: asyncio.Event = field(default_factory=asyncio.Event)
    _process: asyncio.subprocess.Process | None = None
    _process_name: str = ""

    @property
    def _log(self) -> Path:
        return self.folder / f"{self.name}.log"

    async def run(self) -> None:
        """Keep a process running until cancelled; then kill it."""
        failed, numbers = 0, itertools.count(1)
        while failed < _MOST_FAILED_STARTS:
            was_up = await self._live(f"{self.name}{next(numbers)}")
            was_killed = any(each.process == self._process_name for each in self.record.killed)
            if not was_killed:
                self.record.ended_alone.append(self._process_name)
            failed = 0 if was_up or was_killed else failed + 1
        said = self._log.read_text(errors="replace")
        raise BotServiceError(f"the service does not start:\n{said[-_LAST_CHARACTERS:]}")

    def kill(self) -> None:
        """Kill the process with SIGKILL, wherever it stands."""
        if self._process is None or self._process.returncode is not None:
            return
        self.record.killed.append(Killed(self._process_name, self.clock()))
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def _live(self, name: str) -> bool:
        """Run one process to its end, and return whether it has ever listened."""
        port = 0
        try:
            with self._log.open("ab") as log:
                async with _running(_SERVE, self.folder, self.settings(name), log) as process:
                    self._process_name, self._process = name, process
                    port = await self._port_of(process)
                    if port:
                        self.ports.add(port)
                        self.is_up.set()
                    await process.wait()
        finally:
            self.is_up.clear()
            self.ports.discard(port)
        return port != 0

    async def _port_of(self, process: asyncio.subprocess.Process) -> int:
        """Return where a process listens; 0 where it ends before."""
        async for line in cast("asyncio.StreamReader", process.stdout):
            if line.split()[:1] == [b"listening"]:
                return int(line.rsplit(b":", 1)[1])
        return 0


class _PlainServer(uvicorn.Server):
    """A server that leaves signals to the process."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


@contextlib.asynccontextmanager
async def listening(app: ASGIApp) -> AsyncIterator[int]:
    """Serve an application until the block is left; give the port."""
    config = uvicorn.Config(app, log_config=None, log_level="critical", access_log=False, lifespan="off", ws="none")
    server = _PlainServer(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        task = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield int(listener.getsockname()[1])
        finally:
            server.should_exit = server.force_exit = True
            await asyncio.wait([task])
