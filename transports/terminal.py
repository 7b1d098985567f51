"""The service on the terminal: a transport like any other, with one person in front of it."""

import asyncio
import contextlib
import shutil
import sys
import threading
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import TextIO

from rich.cells import set_cell_size
from sqlalchemy import Connection, select
from starlette.routing import BaseRoute

from botservice.contexts.context import ContextKeys, find_context
from botservice.messages import Author, Button, InboundMessage, Message, ToolCall
from botservice.storage import Storage
from botservice.storage.tables.conversations import deliveries, events, turns
from botservice.turns.buttons import read_buttons, write_buttons
from botservice.turns.inbox import Inbox
from botservice.turns.start.commands import parse_command
from botservice.turns.transport import Live, Payload, StreamRecord
from botservice.turns.turn import Delivery, EventKind, InboundEvent, StoredEvent
from botservice.turns.waiting.orders import order_of
from botservice.turns.waiting.records import find_open

_LOOK_SECONDS = 0.2
_PROMPT = "\nyou> "
_REWRITE = "\r\x1b[2K"  # to the beginning of the line, which is emptied
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
        self._inbox: Inbox
        self._storage: Storage
        self._asked: str | None = None  # the key of the question that is being answered
        self._answered = asyncio.Event()
        self._shown = ""
        self._is_stopped = False
        self._is_gone = False
        self._choices: tuple[Button, ...] = ()
        self._has_decided = False
        self._is_in_line = False  # in one that the next thing to be printed does not go on with

    async def start(self, inbox: Inbox, storage: Storage) -> None:
        """Take note of where events go."""
        self._inbox, self._storage = inbox, storage

    async def stop(self) -> None:
        """Do nothing: the end of the input ends it."""

    async def close(self) -> None:
        """Do nothing: the terminal is not ours."""

    def describe(self) -> str:
        """Return which conversation it is."""
        return f"session {self._session_id}"

    async def converse(self) -> None:
        """Take line after line until the input ends, or nobody reads; each is answered before the next is read."""
        self._prompt(f"{_HELP}\n")
        lines = _Lines(self._source)
        while not self._is_gone:
            self._prompt(_PROMPT)
            line = await lines.next()
            if line is None:
                return
            if line.strip():
                await self._ask(self._chosen(line.strip()))

    def _chosen(self, line: str) -> str:
        """Return what a line says: where it is the number of a button, what that says."""
        choices, self._choices = self._choices, ()
        is_choice = line.isascii() and line.isdecimal() and 1 <= int(line[:9]) <= len(choices)
        return choices[int(line) - 1].says if is_choice else line

    async def interrupt(self) -> None:
        """Stop the answer that is being made; what was said of it stays."""
        self._is_stopped = True
        await self._accept("/stop", EventKind.STOP)
        self._write(f"{self._break()}(stopped)\n")

    async def read(self, event: StoredEvent) -> InboundMessage:
        """Return the line as it was typed."""
        line = event.raw.decode()
        return InboundMessage(line, Author(self.name, self._session_id, "you"), command=parse_command(line))

    def plan(self, answer: Message, events: Sequence[StoredEvent]) -> Sequence[Payload]:
        """Return one message, also for an empty answer: somebody waits for it."""
        files = [f"[file: {each.name or 'unnamed'}, {each.mime_type}]" for each in answer.attachments]
        choices = " ".join(f"[{number}] {_label(each)}" for number, each in enumerate(answer.buttons, 1))
        text = "\n".join([part for part in [answer.text, *files, choices] if part])
        payload = {"text": text, "answers": " ".join(event.key for event in events)}
        return [payload | ({"choices": write_buttons(answer.buttons)} if answer.buttons else {})]

    async def send(self, context_keys: Mapping[str, str], delivery: Delivery) -> str | None:
        """Print an answer, or the rest of one that was printed while it grew."""
        if context_keys.get("session_id") != self._session_id:
            return None  # of an earlier chat that was killed: it is in the history
        if delivery.is_replacing and self._has_decided:
            return None  # whoever said so was told
        text = visible(str(delivery.payload["text"]))
        self._choices = read_buttons(delivery.payload.get("choices"))
        if not delivery.payload.get("answers"):
            self._interject(text)
            return None
        if self._asked is None or f" {self._asked} " not in f" {delivery.payload.get('answers')} ":
            self._write(f"(to what you asked before)\n{text}\n")
            return None
        if not self._is_stopped:
            is_rest = bool(self._shown) and text.startswith(self._shown)
            self._write(f"{text.removeprefix(self._shown) if is_rest else self._break() + text}\n")
        self._shown = ""
        self._answered.set()
        return None

    def live(
        self,
        context_keys: Mapping[str, str],  # noqa: ARG002 - there is one chat here
        events: Sequence[StoredEvent],
        record: StreamRecord,  # noqa: ARG002 - what is printed stays
    ) -> Live | None:
        """Return what prints the answer while it grows, where somebody watches."""
        is_watched = self._is_interactive and any(event.key == self._asked for event in events)
        return _Typing(self) if is_watched else None

    @property
    def can_interrupt(self) -> bool:
        """Whether somebody watches an answer being made, and has not stopped it yet."""
        return self._is_interactive and self._asked is not None and not self._is_stopped

    def show(self, piece: str) -> None:
        """Print the next piece of an answer."""
        if not self._is_stopped:
            text = visible(piece)
            self._shown += text
            self._write(text)

    def show_activity(self, activity: str) -> None:
        """Print what is being done."""
        self._write(f"{self._break()}({visible(activity)}…)\n")
        self._shown = ""

    def show_progress(self, text: str) -> None:
        """Print what a tool says of its work, in the place of what it said before."""
        if self._is_stopped:
            return
        columns = shutil.get_terminal_size().columns
        line = set_cell_size(f"({visible(text)})", columns - 1).rstrip()
        self._write(f"{self._break()}{_REWRITE if self._is_in_line else ''}{line}", ends_line=False)
        self._shown, self._is_in_line = "", True

    def _interject(self, text: str) -> None:
        """Print what nobody asked for now, such as a reminder, on lines of its own."""
        is_waiting = self._is_interactive and self._asked is None
        self._write("\n" if is_waiting else self._break())
        self._write(f"{text}\n")
        self._shown = ""
        if is_waiting:
            self._prompt(_PROMPT)

    def show_restart(self) -> None:
        """Print that the answer begins anew."""
        if not self._is_stopped:
            self._write(f"{self._break()}(the model failed: once more)\n")
            self._shown = ""

    def _break(self) -> str:
        return "\n" if self._shown else ""

    async def _ask(self, line: str) -> None:
        self._answered.clear()
        self._shown = ""
        self._is_stopped = False
        self._has_decided = order_of(line) is not None
        self._asked = await self._accept(line, EventKind.MESSAGE)
        while not self._answered.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._answered.wait(), _LOOK_SECONDS)
            if not self._answered.is_set() and await self._is_over(self._asked):
                self._write("" if self._is_stopped else "(no answer)\n")
                break
        self._asked = None
        if self._has_decided:
            await self._see_it_through()

    async def _see_it_through(self) -> None:
        """Wait for what goes on after somebody's word: the input may end, and with it the process."""
        while await self._storage.read(self._goes_on):  # noqa: ASYNC110 - nobody tells this process of it
            await asyncio.sleep(_LOOK_SECONDS)

    def _goes_on(self, connection: Connection) -> bool:
        """Return whether a turn of this session runs, or waits for nothing any more, or something is to be printed."""
        context_id = find_context(connection, ContextKeys.of(self._keys))
        if context_id is None:
            return False
        runs = select(turns.c.id).where(turns.c.context_id == context_id, turns.c.status.in_(["queued", "running"]))
        owes = select(deliveries.c.id).where(
            deliveries.c.context_id == context_id, deliveries.c.status.in_(["pending", "attempting"])
        )
        if any(connection.execute(query.limit(1)).first() is not None for query in (runs, owes)):
            return True
        pending = find_open(connection, context_id)
        undecided = {each.turn_id for each in pending if each.is_waiting}
        return any(each.turn_id not in undecided for each in pending)

    async def _is_over(self, key: str) -> bool:
        """Return whether a turn has ended and nothing of it is left to be printed."""
        open_deliveries = select(deliveries.c.id).where(
            deliveries.c.turn_id == turns.c.id, deliveries.c.status.in_(["pending", "attempting"])
        )
        query = (
            select(turns.c.id)
            .join(events, events.c.turn_id == turns.c.id)
            .where(events.c.key == key, turns.c.finished_at.is_not(None), ~open_deliveries.exists())
        )
        return await self._storage.read(lambda connection: connection.execute(query).first()) is not None

    async def _accept(self, text: str, kind: EventKind) -> str:
        key = f"{self.name}:{self._session_id}:{uuid.uuid4().hex}"
        event = InboundEvent(key, self._keys, time.time_ns() // 1000, text.encode("utf-8", "replace"), kind)
        if kind is EventKind.MESSAGE:
            self._asked = key  # its answer may be there before accept returns
        await self._inbox.accept(self.name, [event])
        return key

    def _prompt(self, text: str) -> None:
        if self._is_interactive:
            self._write(text)

    def _write(self, text: str, *, ends_line: bool = True) -> None:
        if self._is_in_line and ends_line and text:
            self._is_in_line, text = False, f"\n{text}"
        try:
            self._target.write(text)
            self._target.flush()
        except (OSError, ValueError):  # nobody reads any more, as in `botservice chat | head -1`
            self._is_gone = True


def _label(button: Button) -> str:
    return button.text if button.url is None else f"{button.text}: {button.url}"


class _Typing:
    """Prints pieces as they come."""

    def __init__(self, transport: TerminalTransport) -> None:
        self._transport = transport

    def on_text(self, piece: str) -> None:
        self._transport.show(piece)

    def on_activity(self, activity: str) -> None:
        self._transport.show_activity(activity)

    def on_progress(self, call: ToolCall, text: str) -> None:
        self._transport.show_progress(f"{call.name}: {text}")

    def on_restart(self) -> None:
        self._transport.show_restart()

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
        """Return the next line; None at the end, and where nothing can be read."""
        self._wanted.release()
        return await self._queue.get()

    def _read(self, source: TextIO) -> None:
        line: str | None = ""
        while line is not None:
            self._wanted.acquire()
            try:
                line = source.readline() or None
            except (OSError, ValueError):
                line = None
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._queue.put_nowait, line)


def visible(text: str) -> str:
    """Return text in which control characters, which could move the cursor or worse, are shown as they are called."""
    return "".join(
        char if char in "\n\t" or char.isprintable() or ord(char) > 0x9F else f"\\x{ord(char):02x}" for char in text
    )
