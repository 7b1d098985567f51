"""Progress of a running tool: shown to the person who waits, and stored nowhere."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Final

from botservice.core.messages import storable
from botservice.core.quoting import in_one_line, shortened
from botservice.telemetry.logs import redact

LONGEST: Final = 200  # characters of it that are shown
_PAUSE_SECONDS: Final = 1.0  # nobody reads faster

Show = Callable[[str], None]


def progress(text: str) -> None:
    """Show the progress of the calling tool, such as "page 3 of 10".

    Call it as often as you like, from async tools and from tools in threads. People see the newest text about once a
    second: its first 200 characters, in one line. Without a viewer, nothing happens.
    """
    call = _call.get()
    if call is not None:
        call.say(str(text))


@contextlib.contextmanager
def showing_progress(show: Show | None) -> Iterator[None]:
    """Show the progress of tools inside the block.

    Args:
        show: Called on the event loop with texts that are fit to be shown, or None if nobody watches.
    """
    call = None if show is None else _Call(show)
    token = _call.set(call)
    try:
        yield
    finally:
        _call.reset(token)
        if call is not None:
            call.end()


class _Call:
    """The progress of one call, from any thread: the newest text."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._newest: str | None = None
        self._is_due = False  # the newest text is about to be read
        self._has_ended = False
        self._pause: asyncio.TimerHandle | None = None

    def say(self, text: str) -> None:
        with self._lock:
            self._newest = text
            if self._is_due or self._has_ended:
                return
            self._is_due = True
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._tell)

    def end(self) -> None:
        """Show nothing more, even if an abandoned thread reports progress."""
        with self._lock:
            self._has_ended, self._newest = True, None
        if self._pause is not None:
            self._pause.cancel()

    def _tell(self) -> None:
        with self._lock:
            text, self._newest = self._newest, None
            self._is_due = text is not None
        if text is None:
            return
        if shown := shortened(in_one_line(redact(storable(text))), LONGEST):
            self._show(shown)
        self._pause = self._loop.call_later(_PAUSE_SECONDS, self._tell)


_call: ContextVar[_Call | None] = ContextVar("call", default=None)
