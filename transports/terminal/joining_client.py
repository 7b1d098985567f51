"""A chat on the terminal that a running service answers: what is typed goes there, and what comes is shown here."""

import asyncio
import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from botservice.core.errors import BotServiceError
from transports.terminal.lines import LineSource
from transports.terminal.screens import Screen

LONGEST_LINE: Final = 16 * 1024 * 1024
_LONGEST_PATH: Final = 100  # bytes; sun_path has 104 on some systems (unix(7), unix(4))
_SHOWS: Final = (
    *("introduce", "prompt", "begin", "show", "activity", "progress", "restart", "stopped", "answer", "end", "earlier"),
)
_ENDED: Final = "the service has ended; what was said is kept: run `botservice chat` again"


class JoinedChat:
    """The connection of a chat to the service that answers it."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._is_answering = False
        self._has_stopped = False

    @property
    def can_interrupt(self) -> bool:
        """Whether an answer is being made and was not stopped yet."""
        return self._is_answering and not self._has_stopped

    def interrupt(self) -> None:
        """Have the answer be stopped."""
        self._has_stopped = True
        self._send({"stop": True})

    async def converse(self, session: str, lines: LineSource, screen: Screen, *, is_interactive: bool) -> None:
        """Send line after line, and show what comes, until the input ends.

        Raises:
            BotServiceError: the service has ended, or does not want this chat.
        """
        self._send({"session": session, "is_interactive": is_interactive})
        ready: asyncio.Queue[None] = asyncio.Queue()
        showing = asyncio.create_task(self._show(screen, ready.put_nowait))
        typing = asyncio.create_task(self._type(lines, ready))
        try:
            await asyncio.wait({showing, typing}, return_when=asyncio.FIRST_COMPLETED)
            for done in (typing, showing):
                if done.done():
                    await done
                    break
        finally:
            for task in (showing, typing):
                task.cancel()
            await asyncio.gather(showing, typing, return_exceptions=True)
            self._writer.close()

    async def _type(self, lines: LineSource, ready: "asyncio.Queue[None]") -> None:
        while True:
            await ready.get()
            self._is_answering = False
            line = await lines.next()
            if line is None:
                return
            self._is_answering, self._has_stopped = True, False
            self._send({"say": line})

    async def _show(self, screen: Screen, on_ready: Callable[[None], None]) -> None:
        shows: dict[str, Callable[..., None]] = {name: getattr(screen, name) for name in _SHOWS}
        with contextlib.suppress(OSError):
            while line := await self._reader.readline():
                what, *values = json.loads(line)
                if what == "ready":
                    on_ready(None)
                elif what == "refuse":
                    raise BotServiceError(*values)
                elif what == "note":
                    screen.note(values[0], is_waiting=values[1], is_plain=any(values[2:]))
                elif what in ("answer", "earlier"):
                    shows[what](values[0], is_plain=any(values[1:]))
                elif what in shows:
                    shows[what](*values)
                if screen.is_gone:
                    return
        raise BotServiceError(_ENDED)

    def _send(self, what: Any) -> None:
        self._writer.write(json.dumps(what).encode() + b"\n")


async def join(database: Path) -> JoinedChat | None:
    """Return a connection to the service that runs on an SQLite file, or None if none does."""
    path = socket_of(database)
    try:
        if path is None or not _is_ours(path, database):
            return None
        return JoinedChat(*await asyncio.open_unix_connection(str(path), limit=LONGEST_LINE))
    except OSError:  # left by one that was killed, or another user's
        return None


def _is_ours(path: Path, database: Path) -> bool:
    """Return whether a socket belongs to this user or to the database's owner: others would read what is typed."""
    owners = [os.geteuid(), *([database.stat().st_uid] if database.exists() else [])]
    return path.stat().st_uid in owners


def socket_of(database: Path) -> Path | None:
    """Return the path of the socket next to an SQLite file, or None if it would be too long."""
    default = f"{database.resolve()}.chat"
    shortest = min(default, os.path.relpath(default), key=len)
    return Path(shortest) if len(os.fsencode(shortest)) <= _LONGEST_PATH else None
