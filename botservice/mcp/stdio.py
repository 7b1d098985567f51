"""A server that runs on this machine: spoken to by its standard input and output, line by line, within bounds.

The package has this as well, and reads a line to its end however long it is. Source: MCP, "Transports", stdio.
Server processes end with this one, even if it is killed.

Each server runs in a session of its own, so that a signal to this process and its group does not reach it. A shell
alongside the service waits on a pipe: where the service ends, however it ends, the pipe closes, and the shell ends
every group of processes that is left. On Windows the client's job objects do that.
"""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, Final, Self

_SHELL: Final = "/bin/sh"
_END_OF_GROUP_SECONDS: Final = 5.0


class Children:
    """The processes that servers run in, which a shell ends where this process cannot do so any more."""

    def __init__(self) -> None:
        self._watch: subprocess.Popen[bytes] | None = None

    def open(self) -> subprocess.Popen[bytes]:
        """Return the shell that watches; it is started when it is first needed."""
        if self._watch is None:
            self._watch = subprocess.Popen(  # noqa: S603 - a script of ours
                [_SHELL, "-c", files(__package__).joinpath("end_left_servers.sh").read_text()],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        return self._watch

    @contextlib.contextmanager
    def watching(self, group: int) -> Iterator[None]:
        """Have a group of processes ended with the block, or with this process."""
        watch = self.open()
        _tell(watch, f"+ {group}")
        try:
            yield
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):  # nothing is left of it
                os.killpg(group, signal.SIGKILL)
            _tell(watch, f"- {group}")

    async def close(self) -> None:
        """End the shell that watches."""
        watch, self._watch = self._watch, None
        if watch is None:
            return
        assert watch.stdin is not None  # noqa: S101 - it is a pipe
        watch.stdin.close()
        try:
            await asyncio.to_thread(watch.wait, _END_OF_GROUP_SECONDS)
        except subprocess.TimeoutExpired:
            watch.kill()


def _tell(watch: subprocess.Popen[bytes], change: str) -> None:
    assert watch.stdin is not None  # noqa: S101 - it is a pipe
    with contextlib.suppress(OSError, ValueError):  # it has ended, or was closed
        watch.stdin.write(f"{change}\n".encode())
        watch.stdin.flush()


LARGEST_MESSAGE: Final = 16 * 1024 * 1024
_END_SECONDS: Final = 2.0
_PIECE: Final = 65_536


class Program:
    """A program that runs, as the client's transport.

    Attributes:
        problem: What it did for which it is not listened to any more, or None.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdin is not None, "it is piped"  # noqa: S101 - an invariant
        assert process.stdout is not None, "it is piped"  # noqa: S101 - an invariant
        self.problem: str | None = None
        self._process = process
        self._stdin, self._stdout = process.stdin, process.stdout

    async def __aenter__(self) -> tuple[Any, "_Telling"]:
        return self._messages(), _Telling(self._stdin)

    async def __aexit__(self, *_: object) -> None:
        self._stdin.close()

    async def _messages(self) -> AsyncGenerator[Any]:
        """Yield its messages.

        Lines that are no messages are left out; too many of them in a row, or one that does not end, are an end.
        """
        from mcp.shared.message import SessionMessage
        from mcp.types import jsonrpc_message_adapter

        garbage = 0
        while garbage <= LARGEST_MESSAGE:
            try:
                line = await self._stdout.readline()
            except ValueError:  # the bound of the reader
                self.problem = f"it sent a line of more than {LARGEST_MESSAGE // 1024 // 1024} MB"
                return
            except ConnectionError:
                return
            if not line:
                return
            try:
                message = jsonrpc_message_adapter.validate_json(line.decode("utf-8", "replace"), by_name=False)
            except ValueError:
                garbage += len(line)
                continue
            garbage = 0
            yield SessionMessage(message)
        self.problem = f"it sent more than {LARGEST_MESSAGE // 1024 // 1024} MB that are no messages"

    async def end(self) -> None:
        """End it: by closing its input, then by asking, then at once. What it still says is not kept."""
        self._stdin.close()
        draining = asyncio.create_task(self._drain())
        try:
            for ending in (None, signal.SIGTERM, signal.SIGKILL):
                if ending is not None:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.killpg(self._process.pid, ending)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_END_SECONDS):
                        await self._process.wait()
                        return
        finally:
            draining.cancel()
            await asyncio.wait([draining])

    async def _drain(self) -> None:
        with contextlib.suppress(ConnectionError):
            while await self._stdout.read(_PIECE):
                pass


class _Telling:
    """What a program is told, as the client's stream of messages."""

    def __init__(self, stdin: asyncio.StreamWriter) -> None:
        self._stdin = stdin

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def send(self, item: Any) -> None:
        """Write a message; a program that does not read has its input closed, and ends."""
        said = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        if self._stdin.transport.get_write_buffer_size() > LARGEST_MESSAGE:
            self._stdin.transport.abort()
        with contextlib.suppress(ConnectionError):  # it has ended, which its reader notices
            self._stdin.write(f"{said}\n".encode("utf-8", "replace"))
            await self._stdin.drain()

    async def aclose(self) -> None:
        self._stdin.close()


@contextlib.asynccontextmanager
async def running(
    children: Children, command: str, args: Sequence[str], *, env: Mapping[str, str], cwd: str | None, errors: Any
) -> AsyncIterator[Program]:
    """Run a program until the block is left."""
    from mcp.client.stdio import get_default_environment

    children.open()
    process = await asyncio.create_subprocess_exec(
        command,
        *args,
        env={**get_default_environment(), **env},
        cwd=cwd,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=errors,
        limit=LARGEST_MESSAGE,
        start_new_session=True,
    )
    program = Program(process)
    with children.watching(process.pid):
        try:
            yield program
        finally:
            await program.end()
