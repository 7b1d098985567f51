"""A place where a process of the service runs; whenever it ends, another one is started there."""

import asyncio
import contextlib
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, cast

from botservice.errors import BotServiceError
from botservice.proving.records import Killed, Record

_KEPT: Final = ("PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT", "LD_LIBRARY_PATH")
_PROGRAM: Final = ("-m", "botservice")
_SERVE: Final = (*_PROGRAM, "serve", "--app", "botservice.proving.bot:service", "--port", "0")
_MOST_FAILED_STARTS: Final = 3
_LAST_CHARACTERS: Final = 2000


def environment_of(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of a process, without the caller's own settings."""
    kept = {each: os.environ[each] for each in _KEPT if each in os.environ}
    source = str(Path(__file__).parents[2])
    return {**kept, "PYTHONPATH": source, "LOG_LEVEL": "WARNING", **settings}


async def migrate(folder: Path, settings: Mapping[str, str]) -> None:
    """Make the tables, as a deployment does.

    Raises:
        BotServiceError: that does not work; with what it said.
    """
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
        """Keep a process running until cancelled; then kill it.

        Raises:
            BotServiceError: it does not start; with the last lines that it wrote.
        """
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
