"""Asking the model for a step: again where that may help, cut off where somebody stops it, each attempt noted."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

from botservice.agents import Prompt
from botservice.contexts.prompt_log import PromptLog
from botservice.errors import LLMError
from botservice.llm.chat import ChatMessage, ToolSchema
from botservice.memory import MemoryStep
from botservice.telemetry import redact
from botservice.turns.figures import Figures
from botservice.turns.retry import RetryPolicy, model_delay
from botservice.turns.run.prompts import record_prompt

logger = logging.getLogger(__name__)

_LONGEST_ERROR: Final = 500  # characters
_MOST_ATTEMPTS: Final = 50  # of one step, as they are kept

T = TypeVar("T")


class WorkCut(Exception):
    """Work was cut off, or not begun, because somebody interrupted it."""


class Interruption:
    """Whether somebody wants a run to stop; cancels what it waits for at that moment.

    Attributes:
        is_asked: Whether somebody does.
    """

    def __init__(self) -> None:
        self.is_asked = False
        self._busy: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_cut = False

    def ask(self) -> None:
        """Cut off what is under way, and let nothing more begin. May be called from any thread."""
        self.is_asked = True
        if self._loop is None or self._loop.is_closed():
            return
        if _running_loop() is self._loop:
            self._cancel()
        else:
            self._loop.call_soon_threadsafe(self._cancel)

    async def guard(self, work: Coroutine[Any, Any, T]) -> T:
        """Return what work returns. Everything outside of this, storing above all, is never cut off.

        Raises:
            WorkCut: somebody interrupted it.
        """
        task = asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"  # noqa: S101 - an invariant
        self._loop = task.get_loop()
        if self.is_asked:
            work.close()
            raise WorkCut
        self._busy = task  # that of whoever waits, as `asyncio.timeout` does it: nothing is made for each call
        try:
            return await work
        except asyncio.CancelledError:
            if self._is_cut and task.cancelling() == 1:  # nobody else cancels it
                raise WorkCut from None
            raise
        finally:
            self._busy = None
            if self._is_cut:
                self._is_cut = False
                task.uncancel()

    def _cancel(self) -> None:
        # A tool that interrupts its own run is let through to its end.
        if self._busy is not None and not self._is_cut and self._busy is not asyncio.current_task():
            self._is_cut = True
            self._busy.cancel()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:  # a thread without a loop
        return None


async def ask_model(call: Callable[[], Coroutine[Any, Any, T]], policy: RetryPolicy, interruption: Interruption) -> T:
    """Return what call returns, with the retries that the model's failures deserve.

    Raises:
        LLMError: it failed for good, or for too long.
        WorkCut: somebody interrupted it.
    """
    failed = 0
    first_failure = 0.0
    while True:
        try:
            if not failed:
                return await interruption.guard(call())
            async with asyncio.timeout(max(0.0, first_failure + policy.total_seconds - time.monotonic())):
                return await interruption.guard(call())
        except TimeoutError:
            raise LLMError("the model sent nothing in time") from None
        except LLMError as error:
            failed += 1
            first_failure = first_failure or time.monotonic() - error.failed_for_seconds
            delay = model_delay(policy, error, failed, time.monotonic() - first_failure)
            logger.warning("model.failed", extra={"reason": str(error), "wait_seconds": delay})
            if delay is None:
                raise
            await interruption.guard(asyncio.sleep(delay))


@dataclass(slots=True)
class Attempt:
    """One call of a model.

    Attributes:
        asked_at: When its prompt was ready; None where the agent does not say.
    """

    began_at: datetime
    asked_at: datetime | None = None
    first_text_at: datetime | None = None
    ended_at: datetime | None = None
    error: str | None = None

    def as_record(self, since: datetime) -> dict[str, Any]:
        """Return it as a field keeps it: seconds since a step began; what happened at once is not in it."""
        moments = {
            "began": self.began_at,
            "asked": self.asked_at,
            "first_text": self.first_text_at,
            "ended": self.ended_at,
        }
        record: dict[str, Any] = {
            name: round((at - since).total_seconds(), 3) for name, at in moments.items() if at not in (None, since)
        }
        return record if self.error is None else {**record, "error": self.error}


class Attempts:
    """The attempts for the step that is on its way."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._attempts: list[Attempt] = []
        self._prompt: Sequence[ChatMessage] = ()
        self._offered: list[str] = []
        self._called: tuple[str, ...] = ()
        self._written: dict[str, Any] = {}

    async def make(self, call: Awaitable[T]) -> T:
        """Return what a call of a model gives, and take note of when, or of what went wrong."""
        attempt = Attempt(self._clock())
        self._attempts.append(attempt)
        try:
            return await call
        except LLMError as error:
            attempt.error = redact(f"{type(error).__name__}: {error}")[:_LONGEST_ERROR]
            raise
        finally:
            attempt.ended_at = self._clock()

    def note_prompt(self, prompt: Sequence[ChatMessage], tools: Sequence[ToolSchema]) -> None:
        """Take note of what is sent. A prompt that is shortened takes the place of the one before."""
        self._prompt, self._offered = prompt, [_name(each) for each in tools]
        if self._attempts:
            self._attempts[-1].asked_at = self._clock()

    def note_text(self) -> None:
        """Take note that something was said."""
        if self._attempts and self._attempts[-1].first_text_at is None:
            self._attempts[-1].first_text_at = self._clock()

    def note_calls(self, names: Sequence[str]) -> None:
        """Take note of the tools that the model calls."""
        self._called = tuple(names)

    def write(self, step: MemoryStep, since: datetime) -> None:
        """Write them into the step that came of them."""
        if not self._attempts:
            return
        newest = self._attempts[-_MOST_ATTEMPTS:]
        step.set_value("model_attempts", [each.as_record(since) for each in newest])
        facts = dict(self._prompt.facts) if isinstance(self._prompt, Prompt) else {}
        if self._offered:
            facts["tools"] = self._offered
        if facts and facts != self._written:  # most of the time they are those of the step before
            step.set_value("prompt_facts", facts)
            self._written = facts

    def write_failed(self, step: MemoryStep, since: datetime, log: PromptLog) -> None:
        """Write them into a step that came to nothing, with the prompt that no answer came to."""
        if self._attempts and self._prompt:
            record_prompt(step, self._prompt, log)
        self.write(step, since)

    def figures(self) -> Figures:
        """Return what they add to the figures of their turn, without tokens."""
        ended = [each for each in self._attempts if each.ended_at is not None]
        answered = ended[-1] if ended and ended[-1].error is None else None
        first = None
        if answered is not None and answered.first_text_at is not None:
            first = _milliseconds(answered.asked_at or answered.began_at, answered.first_text_at)
        return Figures(
            failed_calls=sum(each.error is not None for each in ended),
            model_ms=sum(_milliseconds(each.asked_at or each.began_at, each.ended_at) for each in ended),
            first_token_ms=first,
            tools=self._called,
        )

    def clear(self) -> None:
        """Begin anew with the next step."""
        self._attempts, self._prompt, self._offered, self._called = [], (), [], ()


def _name(tool: ToolSchema) -> str:
    """Return what an offered tool is called; what a server runs itself has a type alone."""
    function = tool.get("function")
    return str(function["name"] if function else tool.get("type"))


def _milliseconds(since: datetime, until: datetime | None) -> int:
    return 0 if until is None else max(0, round((until - since).total_seconds() * 1_000))
