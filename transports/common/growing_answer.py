"""An answer while it is written: one state of it for every platform, shown on a surface of three calls."""

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from botservice.core.errors import BotServiceError
from botservice.core.messages import ToolCall
from botservice.turns.transport import Live

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Step:
    """Something that is done for an answer, such as a call of a tool.

    Attributes:
        call: None for what is no call.
        arguments: What it is called with, as the platform shows it.
        said: What it last said of its work.
    """

    name: str
    call: ToolCall | None = None
    arguments: str = ""
    said: str = ""
    is_done: bool = False
    has_failed: bool = False

    def ended(self) -> "Step":
        """Return it as it is once it has done its work."""
        return self if self.is_done else replace(self, is_done=True, said="")


class AnswerState(Live):
    """What there is of an answer that is written.

    What was said before a tool ran, or before the model failed, is no part of the answer: the text begins again.

    Attributes:
        earlier: That text, for a platform that cannot take back what it has shown.
        steps: All that was done, in the order in which it began.
        at_work: The step that last began or said something; None while the model writes.
        text_since: When the text began, by `time.monotonic`; None before it does.
    """

    def __init__(self) -> None:
        self.earlier = ""
        self.steps: tuple[Step, ...] = ()
        self.at_work: Step | None = None
        self.text_since: float | None = None
        self._pieces: list[str] = []

    @property
    def text(self) -> str:
        """The answer so far; its pieces are put together once."""
        self._pieces[:] = ["".join(self._pieces)]
        return self._pieces[0]

    def on_text(self, piece: str) -> None:
        """Take the next piece of the answer."""
        if self.at_work is not None:
            self._end_work()
            self.begin_text()
        if self.text_since is None:
            self.text_since = time.monotonic()
        self.add_text(piece)

    def on_activity(self, activity: str) -> None:
        """Take what the bot does now."""
        self._begin(Step(activity))

    def on_call(self, call: ToolCall) -> None:
        """Take a call that begins."""
        self._begin(Step(call.name, call, self.show_arguments(call)))

    def on_progress(self, call: ToolCall, text: str) -> None:
        """Take what a call says of its work."""
        self._change(call, said=text)

    def on_call_end(self, call: ToolCall, *, is_error: bool) -> None:
        """Take what became of a call."""
        self._change(call, said="", is_done=True, has_failed=is_error)

    def on_restart(self) -> None:
        """Take note that the answer begins again."""
        self._end_work()
        self.begin_text()
        self.note_change()

    def show_arguments(self, call: ToolCall) -> str:  # noqa: ARG002 - by default they are not shown
        """Return what a call is called with, as the platform shows it."""
        return ""

    def add_text(self, piece: str) -> None:
        """Keep the next piece of the text."""
        self._pieces.append(piece)
        self.note_change()

    def begin_text(self) -> None:
        """Begin the text again; a surface that only ever adds to it goes on below what it has shown."""
        said, self._pieces, self.text_since = "".join(self._pieces), [], None
        self.earlier += f"{said}\n\n" if said.strip() else ""

    def note_change(self) -> None:
        """Take note that there is something new."""

    def _begin(self, step: Step) -> None:
        self.begin_text()
        self.steps, self.at_work = (*self.steps, step), step
        self.note_change()

    def _change(self, call: ToolCall, **changes: Any) -> None:
        for at, step in enumerate(self.steps):
            if step.call is call and not step.is_done:
                changed = replace(step, **changes)
                self.steps = (*self.steps[:at], changed, *self.steps[at + 1 :])
                self.at_work = changed if changed.said else self.at_work
                self.note_change()

    def _end_work(self) -> None:
        self.steps = tuple(step.ended() for step in self.steps)
        self.at_work = None


class Surface(ABC):
    """Where a platform shows an answer while it grows.

    Attributes:
        name: Stands in the log.
        errors: What calls may fail with; anything else is a defect, and logged as one.
        patience_seconds: How long the end waits for a call that is on its way; None for as long as the call takes.
        refresh_seconds: When what is shown has to be shown again, though nothing is new; None for never.
        pause_seconds: For so long after an update nothing is shown, whatever comes.
    """

    name: ClassVar[str]
    errors: ClassVar[tuple[type[Exception], ...]] = (BotServiceError,)
    patience_seconds: float | None = 5.0
    refresh_seconds: float | None = None
    pause_seconds: float = 0.0

    async def open(self) -> None:
        """Show that the bot is at work, next to the updates; the end of the answer cancels it."""

    @abstractmethod
    def pause(self, answer: "GrowingAnswer") -> float | None:
        """Return how long to wait before an update, counted from the last one; None if nothing need be shown.

        Before the first update, it is counted from the beginning of the text.
        """

    @abstractmethod
    async def update(self, answer: "GrowingAnswer") -> None:
        """Show what there is."""

    async def finish(self, *, was_opened: bool) -> None:
        """Take note that the answer is there; its deliveries follow."""

    def after_failure(self, error: Exception) -> float | None:  # noqa: ARG002 - by default nothing helps
        """Return after how many seconds the updates go on; None if there are no more."""
        return None


class GrowingAnswer(AnswerState):
    """Shows an answer on a surface, at its pace. Whatever goes wrong with it, the answer comes all the same.

    Attributes:
        shown_at: When something was last shown, by `time.monotonic`; None before.
        shown_length: How much of the text was there then; 0 where the text has begun again.
    """

    def __init__(self, surface: Surface, *, first_sign_seconds: float) -> None:
        """Begin; an answer that is there before the first sign of life is due is shown on nothing."""
        super().__init__()
        self.shown_at: float | None = None
        self.shown_length = 0
        self._surface = surface
        self._changed = asyncio.Event()
        self._running: list[asyncio.Task[None]] = []
        self._in_flight: asyncio.Task[None] | None = None
        self._is_finished = False
        self._first_sign = asyncio.get_running_loop().call_later(first_sign_seconds, self._open)

    def begin_text(self) -> None:
        """Begin the text again."""
        super().begin_text()
        self.shown_length = 0

    def note_change(self) -> None:
        """Wake what shows it."""
        self._changed.set()

    async def close(self) -> None:
        """End it. An update that is on its way is waited for, briefly: it must not come after the answer."""
        self._first_sign.cancel()
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(self._running)
        if self._in_flight is not None and not self._in_flight.done():
            await asyncio.wait([self._in_flight], timeout=self._surface.patience_seconds)
            self._in_flight.cancel()
            await asyncio.wait([self._in_flight])
        if not self._is_finished:
            self._is_finished = True
            await self._surface.finish(was_opened=bool(self._running))

    def _open(self) -> None:
        works = {"sign of life": self._surface.open, "growing answer": self._grow}
        self._running = [asyncio.create_task(self._guard(what, work), name=what) for what, work in works.items()]

    async def _guard(self, what: str, work: Callable[[], Awaitable[None]]) -> None:
        """Do the work until it fails. It is begun in here: a task that is cancelled before it runs begins nothing."""
        details = {"what": what, "surface": self._surface.name}
        try:
            await work()
        except self._surface.errors as error:
            logger.info("transport.live_ended", extra={**details, "reason": type(error).__name__})
        except Exception:  # a border: showing what is half written must not cost the answer
            logger.exception("transport.live_failed", extra=details)

    async def _grow(self) -> None:
        while True:
            try:
                await self._follow()
            except self._surface.errors as error:
                seconds = self._surface.after_failure(error)
                if seconds is None:
                    raise
                await asyncio.sleep(seconds)

    async def _follow(self) -> None:
        """Bring the surface up to date whenever there is something new; not every piece is looked at."""
        while True:
            pause = self._surface.pause(self)
            if pause is not None:
                if (left := self._left(pause)) > 0:
                    await asyncio.sleep(left)
                else:
                    await self._update()
                continue
            self._changed.clear()
            await asyncio.sleep(0.0 if self.shown_at is None else self._left(self._surface.pause_seconds))
            try:
                async with asyncio.timeout(self._surface.refresh_seconds):
                    await self._changed.wait()
            except TimeoutError:
                await self._update()

    def _left(self, pause: float) -> float:
        since = self.shown_at if self.shown_at is not None else self.text_since
        return 0.0 if since is None else max(0.0, since + pause - time.monotonic())

    async def _update(self) -> None:
        """Show what there is; the call comes to its end also where the answer cuts short what waits for it."""
        self.shown_at, self.shown_length = time.monotonic(), len(self.text)
        self._in_flight = asyncio.create_task(self._surface.update(self))
        self._in_flight.add_done_callback(lambda task: task.cancelled() or task.exception())  # also where nobody waits
        await asyncio.shield(self._in_flight)
