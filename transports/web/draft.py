"""An answer while it is written, as blocks of HTML: a block that is complete is made once, the open one again."""

import asyncio
from typing import TYPE_CHECKING, Final

from botservice.core.threads import run_in_thread
from transports.common.growing_answer import AnswerState
from transports.markdown.sections import Sections
from transports.markdown.unfinished import close_section

if TYPE_CHECKING:
    from transports.markdown.reading import References

LONGEST_DRAFT: Final = 500_000  # characters; the stored answer has the rest

# For each character that comes, so many of the open block may be formatted again: it is, as soon as enough has come for
# the whole block. So a short block grows with every word, a long one in steps, and all of it costs in proportion.
_WORTH: Final = 24
_MOST_SAVED: Final = 20_000
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
        self._saved = 0
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
        self._saved = min(_MOST_SAVED + self._sections.length, self._saved + _WORTH * len(piece))
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
            is_due = (self._length > self._shown_length or self.is_closed) and (
                is_all or self._saved >= self._sections.length
            )
            open_section = self._sections.open if is_due or closed else None
            if open_section is None:
                return
            size = sum(map(len, closed)) + len(open_section)
            self.formatted += size
            self._saved = max(0, self._saved - len(open_section))
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
