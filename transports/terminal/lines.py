"""Reading typed lines as they come."""

import asyncio
import contextlib
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TextIO

if TYPE_CHECKING:
    from prompt_toolkit.history import History

_PROMPT = "you> "


class LineSource(Protocol):
    """Where lines come from."""

    async def next(self) -> str | None:
        """Return the next line, or None at the end and if nothing can be read."""


class PlainLines:
    """The lines of a file, read in a thread of their own that dies with the process."""

    def __init__(self, source: TextIO) -> None:
        self._source = source
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._wanted = threading.Semaphore(0)
        self._loop: asyncio.AbstractEventLoop | None = None

    async def next(self) -> str | None:
        """Return the next line."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            threading.Thread(target=self._read, args=(self._loop,), daemon=True).start()
        self._wanted.release()
        return await self._queue.get()

    def _read(self, loop: asyncio.AbstractEventLoop) -> None:
        line: str | None = ""
        while line is not None:
            self._wanted.acquire()
            try:
                line = self._source.readline() or None
            except (OSError, ValueError):
                line = None
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._queue.put_nowait, line)


class EditedLines:
    """Lines that are edited as they are typed, with those of before to be found again."""

    def __init__(self, history: Path | None) -> None:
        from prompt_toolkit import PromptSession

        self._session: PromptSession[str] = PromptSession(_PROMPT, history=_open(history))
        self._begun: asyncio.Task[str | None] | None = None

    def begin(self) -> None:
        """Ask for the first line already, while everything else is still being loaded."""
        self._begun = asyncio.create_task(self._ask())

    async def cancel(self) -> None:
        """Ask no more for a line that was begun."""
        begun, self._begun = self._begun, None
        if begun is not None:
            begun.cancel()
            await asyncio.gather(begun, return_exceptions=True)

    async def next(self) -> str | None:
        """Return the next line. Ctrl+C empties one that has something in it, and otherwise ends them."""
        begun, self._begun = self._begun, None
        return await (self._ask() if begun is None else begun)

    async def _ask(self) -> str | None:
        from prompt_toolkit.patch_stdout import patch_stdout

        while True:
            try:
                with patch_stdout(raw=True):
                    return await self._session.prompt_async(handle_sigint=False)
            except EOFError:
                return None
            except KeyboardInterrupt:
                if not self._session.default_buffer.text:
                    return None


def _open(path: Path | None) -> "History":
    """Return the history in a file that only its owner reads; one in memory where there can be none."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600))
        path.chmod(0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def history_file() -> Path:
    """Return where what was typed is kept (XDG Base Directory Specification: state)."""
    state = os.environ.get("XDG_STATE_HOME") or ""
    folder = Path(state) if Path(state).is_absolute() else Path.home() / ".local" / "state"
    return folder / "botservice" / "chat_history"
