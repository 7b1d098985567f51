"""Reading typed lines with a line editor and a history. A service that others join does without."""

import asyncio
import os
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.patch_stdout import patch_stdout

_PROMPT = "you> "


class EditedLines:
    """Lines that are edited as they are typed, with those of before to be found again."""

    def __init__(self, history: Path | None) -> None:
        """Make one.

        Args:
            history: The file that keeps what was typed; None for none.
        """
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
        while True:
            try:
                with patch_stdout(raw=True):
                    return await self._session.prompt_async(handle_sigint=False)
            except EOFError:
                return None
            except KeyboardInterrupt:
                if not self._session.default_buffer.text:
                    return None


def _open(path: Path | None) -> History:
    """Return the history in a file that only its owner reads; one in memory where there can be none."""
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
