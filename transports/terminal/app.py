"""The service on the terminal: a transport like any other, with one person in front of it."""

import asyncio
import contextlib
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Final

from starlette.routing import BaseRoute

from botservice.conversation.context_keys import ContextKeys
from botservice.core.messages import Author, Button, InboundMessage, Message, ToolCall, is_blank
from botservice.core.platform_capabilities import Capabilities
from botservice.core.quoting import quote_in_markdown
from botservice.core.states import EventKind, PendingKind
from botservice.storage.database import Storage
from botservice.turns.buttons import read_buttons, write_buttons
from botservice.turns.call_decisions import order_of
from botservice.turns.call_queries import find_kinds_awaited
from botservice.turns.commands import parse_command
from botservice.turns.event_queries import goes_on, is_over
from botservice.turns.inbox import Inbox
from botservice.turns.transport import Live, Payload, StreamRecord, Transport
from botservice.turns.turn import Delivery, InboundEvent, StoredEvent
from transports.terminal.lines import LineSource
from transports.terminal.screens import Screen

CAPABILITIES: Final = Capabilities(
    label="Terminal",
    streaming="a growing answer",
    thinking="printed, if you set it",
    tools="a line with name and progress",
    approval="numbers, or commands",
    buttons="numbers to type",
    tables="a table",
    stops="Ctrl+C, or /stop",
    errors="a message",
    conversations="each session",
)

_LOOK_SECONDS = 0.2


class TerminalTransport(Transport):
    """Reads lines and prints answers; what it says is in the history like everything else."""

    name = "terminal"
    capabilities = CAPABILITIES
    is_local = True
    routes: Sequence[BaseRoute] = ()

    def __init__(
        self, session_id: str, lines: LineSource, screen: Screen, *, is_interactive: bool, bot_name: str | None = None
    ) -> None:
        """Make one.

        Args:
            is_interactive: Whether a person watches.
            bot_name: What stands before answers; nothing where it has no name of its own.
        """
        self._keys = {"transport": self.name, "session_id": session_id}
        self._session_id = session_id
        self._is_interactive = is_interactive
        self._lines = lines
        self._screen = screen
        self._bot_name = bot_name
        self._inbox: Inbox
        self._storage: Storage
        self._asked: str | None = None  # the key of the question that is being answered
        self._answered_key: str | None = None  # of the question that was answered last
        self._answered = asyncio.Event()
        self._is_stopped = False
        self._choices: tuple[Button, ...] = ()
        self._has_decided = False
        self._is_going_on = False  # with what was decided

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
        """Answer line after line until the input ends or the output is closed."""
        if self._bot_name is not None:
            self._screen.introduce(self._bot_name)
        while not self._screen.is_gone:
            self._screen.prompt()
            line = await self._lines.next()
            if line is None:
                return
            if not is_blank(line):
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
        self._screen.stopped()

    @staticmethod
    async def read(event: StoredEvent) -> InboundMessage:
        """Return the line as it was typed."""
        line, session = event.raw.decode(), event.key.partition(":")[2].rpartition(":")[0]
        return InboundMessage(line, Author(TerminalTransport.name, session, "you"), command=parse_command(line))

    @staticmethod
    def plan(answer: Message, events: Sequence[StoredEvent]) -> Sequence[Payload]:
        """Return one message, also for an empty answer, which is awaited."""
        files = [
            f"[file: {quote_in_markdown(each.name, 'unnamed')}, {quote_in_markdown(each.mime_type, '?')}]"
            for each in answer.attachments
        ]
        choices = " ".join(f"[{number}] {_label(each)}" for number, each in enumerate(answer.buttons, 1))
        text = "\n".join([part for part in [answer.text, *files, choices] if part])
        payload: dict[str, object] = {"text": text, "answers": " ".join(event.key for event in events)}
        payload |= {"is_plain": True} if answer.formatted is not None else {}
        return [payload | ({"choices": write_buttons(answer.buttons)} if answer.buttons else {})]

    async def send(self, context_keys: Mapping[str, str], delivery: Delivery) -> str | None:
        """Print an answer, or the rest of one that was printed while it grew."""
        if context_keys.get("session_id") != self._session_id:
            return None  # of an earlier chat that was killed: it is in the history
        if delivery.is_replacing and self._has_decided:
            return None  # the person who decided was told
        text, is_plain = str(delivery.payload["text"]), bool(delivery.payload.get("is_plain"))
        answers = f" {delivery.payload.get('answers', '')} "
        is_more = f" {self._answered_key} " in answers  # than the answer that is there
        choices = read_buttons(delivery.payload.get("choices"))
        if choices or not is_more:
            self._choices = choices
        if not answers.strip() or is_more or self._is_going_on:
            self._screen.note(text, is_waiting=self._asked is None and not self._is_going_on, is_plain=is_plain)
            return None
        if self._asked is None or f" {self._asked} " not in answers:
            self._screen.earlier(text, is_plain=is_plain)
            return None
        if not self._is_stopped:
            self._screen.answer(text, is_plain=is_plain)
        self._answered_key = self._asked
        self._answered.set()
        return None

    def live(
        self,
        context_keys: Mapping[str, str],  # noqa: ARG002 - there is one chat here
        events: Sequence[StoredEvent],
        record: StreamRecord,  # noqa: ARG002 - what is printed stays
    ) -> Live | None:
        """Return what prints the answer while it grows, if a person watches."""
        is_watched = self._is_interactive and any(event.key == self._asked for event in events)
        return _Typing(self) if is_watched else None

    @property
    def can_interrupt(self) -> bool:
        """Whether a person watches an answer being made, and has not stopped it yet."""
        return self._is_interactive and self._asked is not None and not self._is_stopped

    @property
    def shown(self) -> Screen | None:
        """The screen that shows an answer while it grows, or None once it was stopped."""
        return None if self._is_stopped else self._screen

    async def _ask(self, line: str) -> None:
        self._answered.clear()
        self._screen.begin()
        self._is_stopped = False
        keys = ContextKeys.of(self._keys)
        was_asked = await self._storage.read(
            lambda connection: PendingKind.QUESTION in find_kinds_awaited(connection, keys)
        )
        self._has_decided = was_asked or order_of(line) is not None
        self._asked = await self._accept(line, EventKind.MESSAGE)
        said = ""
        while not self._answered.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._answered.wait(), _LOOK_SECONDS)
                break
            # What was sent is noted as such afterwards: an answer that ended it is known here by now.
            if await self._is_over(self._asked) and not self._answered.is_set():
                said = "" if self._is_stopped or was_asked else "(no answer)"
                break
        self._screen.end(said)
        self._asked = None
        if self._has_decided:
            await self._see_it_through()

    async def _see_it_through(self) -> None:
        """Wait for what goes on after a decision: the input may end, and with it the process."""
        keys = ContextKeys.of(self._keys)
        self._is_going_on = True
        while await self._storage.read(  # noqa: ASYNC110 - no event tells this process of it
            lambda connection: goes_on(connection, keys)
        ):
            await asyncio.sleep(_LOOK_SECONDS)
        self._is_going_on = False

    async def _is_over(self, key: str) -> bool:
        return await self._storage.read(lambda connection: is_over(connection, key))

    async def _accept(self, text: str, kind: EventKind) -> str:
        key = f"{self.name}:{self._session_id}:{uuid.uuid4().hex}"
        event = InboundEvent(key, self._keys, time.time_ns() // 1000, text.encode("utf-8", "replace"), kind)
        if kind is EventKind.MESSAGE:
            self._asked = key  # its answer may be there before accept returns
        await self._inbox.accept(self.name, [event])
        return key


def _label(button: Button) -> str:
    return button.text if button.url is None else f"{button.text}: {button.url}"


class _Typing(Live):
    """Shows pieces as they come, until the answer is stopped."""

    def __init__(self, transport: TerminalTransport) -> None:
        self._transport = transport

    def on_text(self, piece: str) -> None:
        if screen := self._transport.shown:
            screen.show(piece)

    def on_activity(self, activity: str) -> None:
        if screen := self._transport.shown:
            screen.activity(activity)

    def on_progress(self, call: ToolCall, text: str) -> None:
        if screen := self._transport.shown:
            screen.progress(f"{call.name}: {text}")

    def on_restart(self) -> None:
        if screen := self._transport.shown:
            screen.restart()

    async def close(self) -> None:
        """Do nothing: what was shown stays."""
