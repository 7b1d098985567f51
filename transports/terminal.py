"""The service on the terminal: a transport like any other, with one person in front of it."""

import asyncio
import sys
import threading
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import TextIO

from starlette.routing import BaseRoute

from botservice.messages import Author, InboundMessage, Message
from botservice.storage import Storage
from botservice.turns.inbox import Inbox
from botservice.turns.transport import Live, Payload, StreamRecord
from botservice.turns.turn import Delivery, EventKind, InboundEvent, StoredEvent

_HELP = "Type a message and press Enter. Ctrl+C stops an answer, Ctrl+D ends the chat."


class TerminalTransport:
    """Reads lines and prints answers; what it says is in the history like everything else."""

    name = "terminal"
    routes: Sequence[BaseRoute] = ()

    def __init__(self, *, session_id: str, source: TextIO | None = None, target: TextIO | None = None) -> None:
        self._keys = {"transport": self.name, "session_id": session_id}
        self._session_id = session_id
        self._source = source or sys.stdin
        self._target = target or sys.stdout
        self._is_interactive = self._source.isatty()
        self._inbox: Inbox | None = None
        self._answered = asyncio.Event()
        self._shown = ""
        self._is_waiting = False

    async def start(self, inbox: Inbox, storage: Storage) -> None:  # noqa: ARG002 - it reads nothing back
        """Take note of where events go."""
        self._inbox = inbox

    async def stop(self) -> None:
        """Do nothing: the end of the input ends it."""

    async def close(self) -> None:
        """Do nothing: the terminal is not ours."""

    def describe(self) -> str:
        """Return what `chat` says at its start."""
        return f"session {self._session_id}"

    async def converse(self) -> None:
        """Take line after line until the input ends; each is answered before the next is read."""
        if self._is_interactive:
            self._write(f"{_HELP}\n")
        lines = _Lines(self._source)
        while True:
            if self._is_interactive:
                self._write("\nyou> ")
            line = await lines.next()
            if line is None:
                break
            if line.strip():
                await self._ask(line.strip())

    async def interrupt(self) -> None:
        """Stop the answer that is being made."""
        await self._accept("/stop", EventKind.STOP)
        self._write("\n(stopped)\n")
        self._answered.set()

    async def read(self, event: StoredEvent) -> InboundMessage:
        """Return the line as it was typed."""
        return InboundMessage(event.raw.decode(), Author(self.name, self._session_id, "you"))

    def plan(self, answer: Message, events: Sequence[StoredEvent]) -> Sequence[Payload]:  # noqa: ARG002 - one place
        """Return one message, also for an empty answer: somebody waits for it."""
        files = [f"[file: {each.name or 'unnamed'}, {each.mime_type}]" for each in answer.attachments]
        return [{"text": "\n".join([part for part in [answer.text, *files] if part])}]

    async def send(self, context_keys: Mapping[str, str], delivery: Delivery) -> str | None:
        """Print an answer, or the rest of one that was printed while it grew."""
        if context_keys.get("session_id") != self._session_id:
            return None  # of an earlier chat that was killed: it is in the history
        text = visible(str(delivery.payload["text"]))
        rest = text.removeprefix(self._shown) if self._shown and text.startswith(self._shown) else f"{self._break()}{text}"
        self._write(f"{rest}\n")
        self._shown = ""
        self._answered.set()
        return None

    def live(
        self, context_keys: Mapping[str, str], events: Sequence[StoredEvent], record: StreamRecord  # noqa: ARG002
    ) -> Live | None:
        """Return what prints the answer while it grows, where somebody watches."""
        return _Typing(self) if self._is_interactive else None

    @property
    def is_waiting(self) -> bool:
        """Whether somebody waits for an answer."""
        return self._is_waiting

    def show(self, piece: str) -> None:
        """Print the next piece of an answer."""
        text = visible(piece)
        self._shown += text
        self._write(text)

    def show_activity(self, activity: str) -> None:
        """Print what is being done."""
        self._write(f"{self._break()}({visible(activity)}…)\n")
        self._shown = ""

    def _break(self) -> str:
        return "\n" if self._shown else ""

    async def _ask(self, line: str) -> None:
        self._answered.clear()
        self._shown = ""
        self._is_waiting = True
        await self._accept(line, EventKind.MESSAGE)
        await self._answered.wait()
        self._is_waiting = False

    async def _accept(self, text: str, kind: EventKind) -> None:
        if self._inbox is None:
            raise RuntimeError("the terminal has not been started")
        key = f"{self.name}:{self._session_id}:{uuid.uuid4().hex}"
        await self._inbox.accept(
            self.name, [InboundEvent(key, self._keys, time.time_ns() // 1000, text.encode("utf-8", "replace"), kind)]
        )

    def _write(self, text: str) -> None:
        self._target.write(text)
        self._target.flush()


class _Typing:
    """Prints pieces as they come."""

    def __init__(self, transport: TerminalTransport) -> None:
        self._transport = transport

    def on_text(self, piece: str) -> None:
        self._transport.show(piece)

    def on_activity(self, activity: str) -> None:
        self._transport.show_activity(activity)

    async def close(self) -> None:
        """Do nothing: what was printed stays."""


class _Lines:
    """The lines of a file, read in a thread of their own that dies with the process."""

    def __init__(self, source: TextIO) -> None:
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._wanted = threading.Semaphore(0)
        threading.Thread(target=self._read, args=(source,), daemon=True).start()

    async def next(self) -> str | None:
        """Return the next line; None at the end."""
        self._wanted.release()
        return await self._queue.get()

    def _read(self, source: Iterable[str]) -> None:
        lines = iter(source)
        while True:
            self._wanted.acquire()
            line = next(lines, None)
            self._loop.call_soon_threadsafe(self._queue.put_nowait, line)
            if line is None:
                return


def visible(text: str) -> str:
    """Return text in which control characters, which could move the cursor or worse, are shown as they are called."""
    return "".join(
        char if char in "\n\t" or char.isprintable() or ord(char) > 0x9F else f"\\x{ord(char):02x}" for char in text
    )
