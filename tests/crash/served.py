"""A real `botservice serve` in a process of its own, to be started, talked to and killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Self

from crash.warm import WarmProcess

ROOT = Path(__file__).parents[2]


class ServedBot:
    """Starts the same service again and again, with the same settings.

    Attributes:
        source: The folder of the program, which may be an earlier release's.
        program: What Python is given to run it.
        command: What is run.
        ready_line: The word that begins the line by which it says that it is ready.
    """

    source = ROOT
    program: Sequence[str] = ("-m", "botservice")
    command: Sequence[str] = ("serve",)
    ready_line = "listening"

    def __init__(self, folder: Path, *arguments: str, **settings: str) -> None:
        self._folder = folder
        self._arguments = arguments
        self._log: IO[bytes] = (folder / "serve.log").open("ab")
        self._process: subprocess.Popen[str] | WarmProcess | None = None
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "TMPDIR", "LANG")}
        self._environment = {
            **kept,
            "PYTHONPATH": f"{self.source}{os.pathsep}{ROOT / 'tests' / 'crash'}",
            "PORT": "0",
            "TIKTOKEN_CACHE_DIR": str(folder / "no-encodings"),
            "LOG_LEVEL": "INFO",
            **settings,
        }
        self.port = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        self._log.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "it runs"
        return self._process.pid

    @property
    def log(self) -> str:
        self._log.flush()
        return (self._folder / "serve.log").read_text(errors="replace")

    def start(self) -> list[str]:
        """Start it and return what it says, when it listens."""
        self._process = self._begin()
        assert self._process.stdout is not None
        said = []
        for line in self._process.stdout:
            said.append(line)
            if line.split()[0] == self.ready_line:
                self.port = int(line.rsplit(":", 1)[1]) if self.ready_line == "listening" else 0
                return said
        raise AssertionError(f"it ended with {self._process.wait()}: {''.join(said)}\n{self.log[-3000:]}")

    def _begin(self) -> subprocess.Popen[str] | WarmProcess:
        return subprocess.Popen(
            [sys.executable, *self.program, *self.command, *self._arguments],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )

    def wait(self) -> int:
        """Return its exit code once it has ended by itself."""
        assert self._process is not None, "it runs"
        return self._process.wait(timeout=60)

    def kill(self, number: signal.Signals = signal.SIGKILL) -> int:
        """Kill it, if it runs, and return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(number)
        code = process.wait(timeout=60)
        assert process.stdout is not None
        process.stdout.close()
        return code


class WarmBot(ServedBot):
    """A service that begins at once, for those who kill it many times."""

    def _begin(self) -> WarmProcess:
        log = self._folder / "serve.log"
        return WarmProcess([*self.command, *self._arguments], self._folder, self._environment, log)
