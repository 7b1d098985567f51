"""The answer while it is written, which is not stored: one hub per process, one channel per session."""

import asyncio
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from botservice.core.messages import ToolCall
from transports.common.growing_answer import AnswerState
from transports.web.draft import WebDraft
from transports.web.inbound_events import session_in
from transports.web.tool_cards import show_arguments


class Channel:
    """What the open pages of one session watch."""

    def __init__(self) -> None:
        self.draft: WebDraft | None = None
        self.changes = 0
        self._watchers: set[asyncio.Event] = set()

    @property
    def watchers(self) -> int:
        """How many pages watch."""
        return len(self._watchers)

    @contextmanager
    def watching(self) -> Iterator[asyncio.Event]:
        """Give an event that is set with every change."""
        event = asyncio.Event()
        self._watchers.add(event)
        try:
            yield event
        finally:
            self._watchers.discard(event)

    def begin_draft(self, answer: AnswerState) -> WebDraft:
        """Return a new draft in the place of the last one."""
        self.draft = WebDraft(answer)
        return self.draft

    def note_stored(self) -> None:
        """Have everyone look at what is stored."""
        self.changes += 1
        self.wake()

    def wake(self) -> None:
        """Have everyone look at what is new."""
        for event in self._watchers:
            event.set()


class Hub:
    """The channels of the sessions that are watched or written to; the others are not kept."""

    def __init__(self) -> None:
        self._channels: weakref.WeakValueDictionary[str, Channel] = weakref.WeakValueDictionary()
        self.is_closed = False

    def channel(self, session: str) -> Channel:
        """Return the channel of a session."""
        channel = self._channels.get(session)
        if channel is None:
            channel = self._channels[session] = Channel()
        return channel

    def note_stored(self, session: str) -> None:
        """Have the open pages of a session look at what is stored."""
        channel = self._channels.get(session)
        if channel is not None:
            channel.note_stored()

    def count_watchers(self, session: str | None = None) -> int:
        """Return how many pages watch, of everybody or of one session."""
        channels = list(self._channels.items())
        return sum(each.watchers for chat, each in channels if session in (None, session_in(chat)))

    def open(self) -> None:
        """Let pages watch."""
        self.is_closed = False

    def close(self) -> None:
        """Send everyone away."""
        self.is_closed = True
        for channel in list(self._channels.values()):
            channel.wake()


class LiveAnswer(AnswerState):
    """Shows the open pages of a session an answer as it is written, without waiting for them."""

    def __init__(self, channel: Channel) -> None:
        super().__init__()
        self._channel = channel
        self._is_begun = False
        self._draft = channel.begin_draft(self)
        channel.note_stored()

    def show_arguments(self, call: ToolCall) -> str:
        """Return what a call is called with, without secrets."""
        return show_arguments(call)

    def add_text(self, piece: str) -> None:
        """Have the draft take the next piece of the text."""
        if self._draft.add(piece):
            self.note_change()

    def begin_text(self) -> None:
        """Begin a draft in the place of the one before."""
        self._draft = self._channel.begin_draft(self)

    def note_change(self) -> None:
        """Have the pages look, at first also for the person's message: the turn has stored it by now."""
        self._channel.changes += not self._is_begun
        self._is_begun = True
        self._channel.wake()

    async def close(self) -> None:
        """End it; the answer's delivery follows."""
        self._draft.close()
        self._channel.note_stored()
