"""Chats on the terminal that another process answers: `botservice serve` on the same SQLite file.

They speak by a socket next to the file that only its owner may open, in lines of JSON. A chat says first which session
it is, then what was typed, or that the answer is to be stopped; the service says what is to be shown, and when it wants
a line.
"""

import asyncio
import contextlib
import json
import os
import socket
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partialmethod
from pathlib import Path
from typing import Any, Final

from cachetools import FIFOCache
from starlette.routing import BaseRoute

from botservice.storage.database import Storage
from botservice.storage.url import DatabaseUrl
from botservice.turns.inbox import Inbox
from botservice.turns.transport import Live, StreamRecord, Transport
from botservice.turns.turn import Delivery, StoredEvent
from transports.terminal.app import TerminalTransport
from transports.terminal.joining_client import LONGEST_LINE, socket_of

_LONGEST_SESSION: Final = 200
_MOST_MISSED: Final = 20  # of a session; the oldest make room
_MOST_SESSIONS: Final = 100
_TAKEN: Final = "this conversation is open in another terminal; --session NAME begins another one"


class JoinedTerminals(Transport):
    """Takes in chats of other processes, each with a conversation of its own."""

    name = TerminalTransport.name
    is_local = True
    routes: Sequence[BaseRoute] = ()
    read = staticmethod(TerminalTransport.read)
    plan = staticmethod(TerminalTransport.plan)

    def __init__(self, path: Path, bot_name: str | None = None) -> None:
        """Make one that is reached at a socket."""
        self._path = path
        self._bot_name = bot_name
        self._terminals: dict[str, TerminalTransport] = {}
        self._missed: FIFOCache[str, deque[Delivery]] = FIFOCache(_MOST_SESSIONS)
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._inbox: Inbox
        self._storage: Storage

    async def start(self, inbox: Inbox, storage: Storage) -> None:
        """Take chats in. This process holds the lock of the file: a socket that is there was left by one that died."""
        self._inbox, self._storage = inbox, storage
        listener = socket.socket(socket.AF_UNIX)
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        listener.bind(str(self._path))
        self._path.chmod(0o600)  # nothing can connect before it listens
        listener.settimeout(0)
        self._server = await asyncio.start_unix_server(self._take, sock=listener, limit=LONGEST_LINE)

    async def stop(self) -> None:
        """Take in no more, and let go of those that are there."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        with contextlib.suppress(FileNotFoundError):
            self._path.unlink()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def close(self) -> None:
        """Do nothing more."""

    def describe(self) -> str:
        """Return how it is reached."""
        return "botservice chat, in this folder, joins this process"

    async def send(self, context_keys: Mapping[str, str], delivery: Delivery) -> str | None:
        """Show an answer at its terminal; while none is connected, keep it until one is.

        It is in the history in any case: what is kept for that is gone when this process ends.
        """
        session = context_keys.get("session_id", "")
        terminal = self._terminals.get(session)
        if terminal is not None:
            return await terminal.send(context_keys, delivery)
        missed = self._missed.pop(session, ())
        self._missed[session] = deque([*missed, delivery], maxlen=_MOST_MISSED)
        return None

    def live(self, context_keys: Mapping[str, str], events: Sequence[StoredEvent], record: StreamRecord) -> Live | None:
        """Return what shows an answer while it grows, if its terminal is connected."""
        terminal = self._terminals.get(context_keys.get("session_id", ""))
        return None if terminal is None else terminal.live(context_keys, events, record)

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - asyncio calls this in a task
        self._tasks.add(task)
        try:
            await self._converse(reader, writer)
        except (OSError, ValueError, asyncio.CancelledError):  # it left, or is no chat of ours; or the service ends
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hello = _parse(await reader.readline())
        session = str(hello.get("session", ""))[:_LONGEST_SESSION]
        wire = _Wire(reader, writer)
        if session in self._terminals:
            wire.send("refuse", _TAKEN)
            await writer.drain()
            return
        is_interactive = hello.get("is_interactive") is True
        terminal = TerminalTransport(session, wire, wire, is_interactive=is_interactive, bot_name=self._bot_name)
        await terminal.start(self._inbox, self._storage)
        self._terminals[session] = terminal
        tasks = [asyncio.create_task(each) for each in (wire.receive(terminal), self._talk(session, terminal))]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            await writer.drain()
        finally:
            del self._terminals[session]  # it does not receive what is said from now on
            for each in tasks:
                each.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _talk(self, session: str, terminal: TerminalTransport) -> None:
        for delivery in self._missed.pop(session, ()):
            await terminal.send({"session_id": session}, delivery)
        await terminal.converse()


class _Wire:
    """The terminal of another process: what is typed there, and what is shown there, by methods of `Screen`."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.is_gone = False
        self._reader = reader
        self._writer = writer
        self._said: asyncio.Queue[str] = asyncio.Queue()

    async def next(self) -> str:
        """Ask for a line and return it."""
        self.send("ready")
        return await self._said.get()

    async def receive(self, terminal: TerminalTransport) -> None:
        """Take in what the other process says until it leaves."""
        try:
            while line := await self._reader.readline():
                told = _parse(line)
                if isinstance(told.get("say"), str):
                    self._said.put_nowait(told["say"])
                elif told.get("stop") is True and terminal.can_interrupt:
                    await terminal.interrupt()
        except (OSError, ValueError):
            pass
        finally:
            self.is_gone = True

    def send(self, what: str, *values: object) -> None:
        """Have the other process do something."""
        if self.is_gone or self._writer.is_closing():
            self.is_gone = True
            return
        self._writer.write(json.dumps([what, *values]).encode() + b"\n")

    introduce = partialmethod(send, "introduce")
    prompt = partialmethod(send, "prompt")
    begin = partialmethod(send, "begin")
    show = partialmethod(send, "show")
    activity = partialmethod(send, "activity")
    progress = partialmethod(send, "progress")
    restart = partialmethod(send, "restart")
    stopped = partialmethod(send, "stopped")
    end = partialmethod(send, "end")

    def answer(self, text: str, *, is_plain: bool = False) -> None:
        self.send("answer", text, is_plain)

    def earlier(self, text: str, *, is_plain: bool = False) -> None:
        self.send("earlier", text, is_plain)

    def note(self, text: str, *, is_waiting: bool, is_plain: bool = False) -> None:
        self.send("note", text, is_waiting, is_plain)


def joined_terminals(database_url: str, bot_name: str | None = None) -> list[JoinedTerminals]:
    """Return what takes in chats of other processes, where they would otherwise be refused: on an SQLite file."""
    url = DatabaseUrl.parse(database_url)
    path = None if url.path is None else socket_of(url.path)
    can_join = hasattr(socket, "AF_UNIX") and os.name == "posix"
    return [] if path is None or not can_join else [JoinedTerminals(path, bot_name)]


def _parse(line: bytes) -> Mapping[str, Any]:
    """Return what a line says."""
    try:
        told = json.loads(line)
    except RecursionError:
        raise ValueError("too deep") from None
    if not isinstance(told, dict):
        raise ValueError("no object")  # noqa: TRY004 - bad input, as any other
    return told
