"""Server processes that end with this one, even if it is killed.

Each server runs in a session of its own, so that a signal to this process and its group does not reach it. A shell
beside the service waits on a pipe: where the service ends, however it ends, the pipe closes, and the shell ends
every group of processes that is left. On Windows the client's job objects do that.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Final

_IS_POSIX: Final = os.name == "posix"
_SHELL: Final = "/bin/sh"
_END_SECONDS: Final = 5.0
# $0 is the file for the number of the process, which stays the same when the server takes the shell's place.
_START: Final = 'echo $$ >"$0" && exec "$@"'


class Children:
    """The processes that servers run in."""

    def __init__(self) -> None:
        self._folder: Path | None = None
        self._watch: subprocess.Popen[bytes] | None = None

    @contextlib.contextmanager
    def starting(self, name: str, command: str, args: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
        """Yield the command that starts a server; at the end of the block, kill what it left running."""
        if not _IS_POSIX:
            yield command, list(args)
            return
        file = self._open() / name
        try:
            yield _SHELL, ["-c", _START, str(file), command, *args]
        finally:
            _end_group(file)

    async def close(self) -> None:
        """End the shell that watches."""
        watch, self._watch, self._folder = self._watch, None, None
        if watch is None:
            return
        assert watch.stdin is not None  # noqa: S101 - it is a pipe
        watch.stdin.close()
        try:
            await asyncio.to_thread(watch.wait, _END_SECONDS)
        except subprocess.TimeoutExpired:
            watch.kill()

    def _open(self) -> Path:
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="botservice-mcp-"))
            self._watch = subprocess.Popen(  # noqa: S603 - a script of ours
                [_SHELL, "-c", files(__package__).joinpath("end_left_servers.sh").read_text(), str(self._folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        return self._folder


def _end_group(file: Path) -> None:
    """Kill the processes that a server left behind: the client has already ended the server gently."""
    try:
        number = int(file.read_text())
    except (OSError, ValueError):
        return  # it was never started
    finally:
        file.unlink(missing_ok=True)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(number, signal.SIGKILL)
