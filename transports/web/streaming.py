"""The answer while it is written, which is not stored: one hub per process, one channel per session."""

import asyncio
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

from botservice.core.messages import ToolCall
from botservice.turns.transport import Live
from transports.web.draft import WebDraft
from transports.web.inbound_events import session_in
from transports.web.tool_cards import RunningCalls


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

    def begin_draft(self) -> WebDraft:
        """Return a new draft in the place of the last one."""
        self.draft = WebDraft()
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


class LiveAnswer(Live):
    """Shows the open pages of a session an answer as it is written, without waiting for them."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._calls = RunningCalls()
        self._is_begun = False
        self._begin_again()
        channel.note_stored()

    def on_text(self, piece: str) -> None:
        """Take the next piece of the answer."""
        self._note_begun()
        draft = self._draft
        if draft.activity is not None:
            self._begin_again()
            draft = self._draft
        if draft.add(piece):
            self._channel.wake()

    def on_activity(self, activity: str) -> None:
        """Take the name of the tool that runs now. What was said beside the call is no part of the answer."""
        self._note_begun()
        self._begin_again()
        self._draft.activity = activity
        self._channel.wake()

    def on_progress(self, call: ToolCall, text: str) -> None:
        """Take what a tool says of its work."""
        self._draft.progress = call.name, text
        self._calls.note_progress(call, text)
        self._channel.wake()

    def on_call(self, call: ToolCall) -> None:
        """Take a call that begins."""
        self.on_activity(call.name)
        self._calls.begin(call)
        self._channel.wake()

    def on_call_end(self, call: ToolCall, *, is_error: bool) -> None:
        """Take what became of a call."""
        self._calls.end(call, is_error=is_error)
        self._channel.wake()

    def on_restart(self) -> None:
        """Show an empty draft: the answer begins anew."""
        self._begin_again()
        self._channel.wake()

    async def close(self) -> None:
        """End it; the answer's delivery follows."""
        self._draft.close()
        self._channel.note_stored()

    def _note_begun(self) -> None:
        """Have the person's message shown in its place: the turn has stored it by now."""
        if not self._is_begun:
            self._is_begun = True
            self._channel.changes += 1

    def _begin_again(self) -> None:
        self._draft = self._channel.begin_draft()
        self._draft.calls = self._calls
