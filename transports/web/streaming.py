"""The answer while it is written, which is not stored: its blocks of HTML, a hub per process, a channel per session."""

import asyncio
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from botservice.core.messages import ToolCall
from botservice.core.threads import run_in_thread
from transports.common.growing_answer import AnswerState
from transports.markdown.sections import Sections, close_section
from transports.web.inbound_events import session_in
from transports.web.outbound import show_arguments

if TYPE_CHECKING:
    from transports.markdown.reading import References

LONGEST_DRAFT: Final = 500_000  # characters; the stored answer has the rest

# For each character that comes, so many of the open block may be formatted again. So a short block grows with every
# word, a long one in steps, and all of it costs in proportion.
_WORTH: Final = 24
_INLINE: Final = 4_000  # characters that are formatted in a few milliseconds, whatever they are


class WebDraft:
    """An answer as far as it is written.

    Attributes:
        blocks: What is complete, as HTML.
        open_block: What still grows, as HTML.
        answer: What is done for it.
        is_closed: Whether nothing more comes; the stored answer is next.
        formatted: How many characters were formatted until now.
    """

    def __init__(self, answer: AnswerState) -> None:
        self.answer = answer
        self.blocks: list[str] = []
        self.open_block = ""
        self.is_closed = False
        self.formatted = 0
        self._sections = Sections()
        self._references: References = {}
        self._length = 0
        self._shown_length = 0
        self._lock = asyncio.Lock()

    @property
    def all_blocks(self) -> list[str]:
        """What is complete, and what still grows."""
        return [*self.blocks, *([self.open_block] if self.open_block else [])]

    def add(self, piece: str) -> bool:
        """Take what is written next; return whether it will be shown."""
        if self._length >= LONGEST_DRAFT:
            return False
        self._length += len(piece)
        self._sections.add(piece)
        return True

    def close(self) -> None:
        """Take note that nothing more comes."""
        self.is_closed = True
        self._sections.end()

    async def format(self, *, is_all: bool) -> None:
        """Bring the blocks up to what is written."""
        async with self._lock:
            closed = self._sections.take_closed()
            new = self._length - self._shown_length
            is_due = (new > 0 or self.is_closed) and (is_all or _WORTH * new >= self._sections.length)
            open_section = self._sections.open if is_due or closed else None
            if open_section is None:
                return
            size = sum(map(len, closed)) + len(open_section)
            self.formatted += size
            self._shown_length = self._length
            if size <= _INLINE:
                made = self._format(closed, open_section)
            else:
                made = await run_in_thread(lambda: self._format(closed, open_section), name="formatting")
            self.blocks += made[:-1]
            self.open_block = made[-1]

    def _format(self, closed: list[str], open_section: str) -> list[str]:
        """Return the blocks of closed sections, and at last that of the open one, which may be empty."""
        from transports.web.markdown import render_section

        blocks = [shown for each in closed if (shown := render_section(each, self._references))]
        shown = open_section if self.is_closed else close_section(open_section)
        return [*blocks, render_section(shown.strip("\n"), dict(self._references))]


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
