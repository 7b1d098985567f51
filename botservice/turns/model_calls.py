"""Asking the model for a step, with retries and interruption, and recording its attempts, prompt and figures."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

from botservice.agent.agent import ModelReply
from botservice.agent.prompt import Prompt
from botservice.conversation.prompt_log import PromptLog
from botservice.core.errors import LLMError
from botservice.llm.chat import ChatMessage, ToolSchema
from botservice.telemetry.logs import redact
from botservice.turns.retry_policies import RetryPolicy, model_delay
from botservice.turns.turn import Figures

logger = logging.getLogger(__name__)

_LONGEST_ERROR: Final = 500  # characters
_MOST_ATTEMPTS: Final = 50  # of one step, as they are kept

T = TypeVar("T")


class WorkCut(Exception):
    """Work was cut off, or not begun, because the run was interrupted."""


class Interruption:
    """Interrupts a run: cancels what it waits for at that moment.

    Attributes:
        is_asked: Whether the run was interrupted.
        is_beginning_again: Whether the call of the model that is under way is cut off because its question has grown.
    """

    def __init__(self) -> None:
        self.is_asked = False
        self.is_beginning_again = False
        self._busy: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._is_cut = False

    def ask(self) -> None:
        """Cancel the work under way, and let no more begin. May be called from any thread."""
        self.is_asked = True
        self._cut()

    def begin_again(self) -> None:
        """Cancel the call of the model that is under way, or the next. Called in the run's own loop."""
        self.is_beginning_again = True
        self._cut()

    def _cut(self) -> None:
        if self._loop is None or self._loop.is_closed():
            return
        if _running_loop() is self._loop:
            self._cancel()
        else:
            self._loop.call_soon_threadsafe(self._cancel)

    async def guard(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of work, which an interruption cancels; outside of this nothing is cancelled.

        Raises:
            WorkCut: it was interrupted.
        """
        task = asyncio.current_task()
        assert task is not None, "a coroutine runs in a task"  # noqa: S101 - an invariant
        self._loop = task.get_loop()
        if self.is_asked or self.is_beginning_again:
            work.close()
            raise WorkCut
        self._busy = task  # that of the caller that waits, as `asyncio.timeout` does it: nothing is made for each call
        try:
            return await work
        except asyncio.CancelledError:
            if self._is_cut and task.cancelling() == 1:  # nothing else cancels it
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
    """Return the result of a model call, tried again as the policy says.

    Raises:
        LLMError: it failed for good, or for too long.
        WorkCut: it was interrupted.
    """
    failed = 0
    first_failure = 0.0
    while True:
        try:
            left = max(0.0, first_failure + policy.total_seconds - time.monotonic()) if failed else None
            async with asyncio.timeout(left):
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
class ModelAttempt:
    """One call of a model.

    Attributes:
        asked_at: When its prompt was ready; None if the agent does not say.
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


class ModelAttempts:
    """The attempts for the step that is on its way."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._attempts: list[ModelAttempt] = []
        self._prompt: Sequence[ChatMessage] = ()
        self._offered: list[str] = []
        self._withheld: Mapping[str, Sequence[str]] = {}
        self._called: tuple[str, ...] = ()
        self._written: dict[str, Any] = {}

    async def make(self, call: Awaitable[T]) -> T:
        """Return the result of a model call, and record its times, or its error."""
        attempt = ModelAttempt(self._clock())
        self._attempts.append(attempt)
        try:
            return await call
        except LLMError as error:
            attempt.error = redact(f"{type(error).__name__}: {error}")[:_LONGEST_ERROR]
            raise
        finally:
            attempt.ended_at = self._clock()

    def note_prompt(
        self, prompt: Sequence[ChatMessage], tools: Sequence[ToolSchema], withheld: Mapping[str, Sequence[str]]
    ) -> None:
        """Record the prompt that is sent; a shortened one replaces the one before.

        Args:
            withheld: The tools that are not offered because of a role, with the roles that they want.
        """
        self._prompt, self._offered = prompt, [_name(each) for each in tools]
        self._withheld = withheld
        if self._attempts:
            self._attempts[-1].asked_at = self._clock()

    def note_text(self) -> None:
        """Record when the first text came."""
        if self._attempts and self._attempts[-1].first_text_at is None:
            self._attempts[-1].first_text_at = self._clock()

    def note_calls(self, names: Sequence[str]) -> None:
        """Record the tools that the model calls."""
        self._called = tuple(names)

    def describe(self, since: datetime) -> dict[str, Any]:
        """Return the attempts as fields of the step that they led to, which began then."""
        if not self._attempts:
            return {}
        newest = self._attempts[-_MOST_ATTEMPTS:]
        values: dict[str, Any] = {"model_attempts": [each.as_record(since) for each in newest]}
        facts = dict(self._prompt.facts) if isinstance(self._prompt, Prompt) else {}
        of_search: dict[str, Any] = {name: facts.pop(name) for name in ("coverage", "by_meaning") if name in facts}
        if self._offered or of_search:
            facts["tools"] = self._offered
        facts |= of_search  # the order is stored: what is newer comes last
        if self._withheld:
            facts["withheld"] = {name: list(roles) for name, roles in self._withheld.items()}
        if facts and facts != self._written:  # most of the time they are those of the step before
            values["prompt_facts"] = self._written = facts
        return values

    def describe_failed(self, since: datetime, log: PromptLog) -> dict[str, Any]:
        """Return the attempts as fields of a failed step, with the prompt that got no answer."""
        prompt = describe_prompt(self._prompt, log) if self._attempts and self._prompt else {}
        return {**prompt, **self.describe(since)}

    def figures(self) -> Figures:
        """Return what the attempts add to the figures of their turn, without tokens."""
        attempts, first = self._attempts, None
        if attempts and attempts[-1].error is None and attempts[-1].first_text_at is not None:
            first = _milliseconds(attempts[-1].asked_at or attempts[-1].began_at, attempts[-1].first_text_at)
        return Figures(
            failed_calls=sum(each.error is not None for each in attempts),
            model_ms=sum(_milliseconds(each.asked_at or each.began_at, each.ended_at) for each in attempts),
            first_token_ms=first,
            tools=self._called,
        )

    def clear(self) -> None:
        """Begin again with the next step."""
        self._attempts, self._prompt, self._offered, self._called = [], (), [], ()


def describe_prompt(prompt: Sequence[ChatMessage], log: PromptLog) -> dict[str, Any]:
    """Return the prompt that the model was sent as fields of its step, and where its parts come from."""
    if not isinstance(prompt, Prompt):
        return {"model_input_messages": log.record(prompt)}
    values: dict[str, Any] = {
        "model_input_messages": log.record(prompt.kept(), prompt.sources()),
        "prompt_sections": prompt.sections(),
    }
    return values if prompt.model is None else {**values, "model": prompt.model}


def describe_answer(said: ModelReply) -> dict[str, Any]:
    """Return what is known of the model's answer as fields of its step."""
    facts: dict[str, object] = {"token_usage": said.token_usage, "finish_reason": said.finish_reason}
    if said.model is not None:
        facts["model"] = said.model
    return {**facts, "model_items": said.model_items or None}


def _name(tool: ToolSchema) -> str:
    """Return the name of an offered tool; a tool that the server runs has only a type."""
    function = tool.get("function")
    return str(function["name"] if function else tool.get("type"))


def _milliseconds(since: datetime, until: datetime | None) -> int:
    return 0 if until is None else max(0, round((until - since).total_seconds() * 1_000))
