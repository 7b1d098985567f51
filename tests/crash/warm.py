"""A `botservice` in a process of its own that has been imported before: imports take most of what a start costs.

It is forked from a server that has imported the package, has read the authorities that it trusts, and has run nothing
else of it. What is killed is a process like any other; how one comes up from nothing is tested elsewhere.
"""

import asyncio
import multiprocessing
import os
import signal
import sys
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import IO

_PRELOADED = "tests.crash.preloaded"

processes = multiprocessing.get_context("forkserver")
processes.set_forkserver_preload([_PRELOADED])


def run_here(*arguments: str, **settings: str) -> "WarmProcess":
    """Begin a command with the settings of this process and further ones; what it says is thrown away."""
    environment = {"PYTHONPATH": "", **os.environ, **settings}
    return WarmProcess(arguments, Path.cwd(), environment, Path(os.devnull))


class WarmProcess:
    """What `subprocess.Popen(["botservice", …])` would be."""

    def __init__(self, arguments: Sequence[str], folder: Path, environment: dict[str, str], log: Path) -> None:
        read, write = processes.Pipe(duplex=False)
        self._process = processes.Process(target=_run, args=(arguments, folder, environment, log, write))
        self._process.start()
        write.close()
        self.stdout: IO[str] = os.fdopen(os.dup(read.fileno()))
        read.close()

    async def ended(self) -> int:
        """Return its exit code once it has ended; what it said is thrown away."""
        self.stdout.close()
        return await asyncio.to_thread(self.wait)

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def poll(self) -> int | None:
        """Return its exit code where it has ended."""
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def wait(self, timeout: float | None = None) -> int:
        """Return its exit code once it has ended."""
        self._process.join(timeout)
        code = self.poll()
        assert code is not None, f"process {self.pid} has not ended within {timeout} seconds"
        return code


def _run(arguments: Sequence[str], folder: Path, environment: dict[str, str], log: Path, said: Connection) -> None:
    """Be the command from here on."""
    assert _PRELOADED in sys.modules, "a server that cannot import it says nothing"
    os.dup2(said.fileno(), 1)
    said.close()
    with log.open("ab") as written:
        os.dup2(written.fileno(), 2)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.path[:0] = [str(folder), *environment["PYTHONPATH"].split(os.pathsep)]
    sys.argv = ["botservice", *arguments]
    from botservice.cli.main import main

    main()
