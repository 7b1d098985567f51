"""Measuring turns, calls of models, runs of tools and deliveries, for every sink that is on.

Where no sink is on, measuring something is one look at an empty tuple.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, TypeAlias, TypeVar

from botservice.core.messages import TokenUsage, ToolCall


@dataclass(frozen=True, slots=True)
class TurnIdentity:
    """The identity of a turn, the same in every process that works on it.

    Attributes:
        accepted_at: When it was accepted; with the ids, it names the turn among those of all databases.
    """

    turn_id: int
    context_id: int
    transport: str
    accepted_at: datetime


@dataclass(slots=True)
class MeasuredModelCall:
    """A call of a model.

    Attributes:
        purpose: What it is made for: answer, observe or gate.
        prompt: What is sent, as chat-completions messages.
        first_text_at: When the first piece of its text came, on the clock of `time.monotonic`.
    """

    asked_model: str
    server: str | None
    purpose: str
    prompt: Sequence[Mapping[str, Any]]
    tools: Sequence[Mapping[str, Any]] = ()
    is_streamed: bool = False
    began_at: float = field(default_factory=time.monotonic)
    first_text_at: float | None = None
    model: str | None = None
    finish_reason: str | None = None
    usage: TokenUsage | None = None
    text: str = ""
    tool_calls: Sequence[ToolCall] = ()

    def note_text(self) -> None:
        """Note that a piece of the text has come."""
        if self.first_text_at is None:
            self.first_text_at = time.monotonic()


@dataclass(slots=True)
class ToolRun:
    """A run of a tool."""

    call: ToolCall
    is_known: bool = True
    began_at: float = field(default_factory=time.monotonic)
    error_type: str | None = None
    result: str = ""


@dataclass(slots=True)
class Sending:
    """An attempt to make a message visible on a platform."""

    transport: str
    attempt: int
    began_at: float = field(default_factory=time.monotonic)


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """The end of a turn, once it is stored."""

    turn: TurnIdentity
    outcome: str
    ended_at: datetime


Work: TypeAlias = MeasuredModelCall | ToolRun | Sending
W = TypeVar("W", MeasuredModelCall, ToolRun, Sending)


class Sink:
    """A receiver of measurements; each kind that it does not take is passed over."""

    def during(self, work: Work) -> AbstractContextManager[None]:  # noqa: ARG002 - others need it
        """Measure a piece of work; its errors pass through."""
        return nullcontext()

    def take_end(self, end: TurnEnd) -> None:
        """Note that a turn has ended."""

    def take_paid(self, model: str, cost: int) -> None:
        """Note what a call of a model cost, in billionths of the currency."""


_sinks: tuple[Sink, ...] = ()
_turn: Final[ContextVar[TurnIdentity | None]] = ContextVar("measured_turn", default=None)


@contextmanager
def sending_to(*sinks: Sink) -> Iterator[None]:
    """Send the measurements of this process to sinks, inside the block."""
    global _sinks  # noqa: PLW0603 - one tuple, replaced whole
    _sinks = (*_sinks, *sinks)
    try:
        yield
    finally:
        _sinks = tuple(each for each in _sinks if each not in sinks)


@contextmanager
def in_turn(turn: TurnIdentity) -> Iterator[None]:
    """Attribute the work inside the block to a turn; every log line there carries its id."""
    token = _turn.set(turn)
    try:
        yield
    finally:
        _turn.reset(token)


def turn_now() -> TurnIdentity | None:
    """Return the turn that is worked on here."""
    return _turn.get()


def is_measuring() -> bool:
    """Return whether there is a sink to measure for."""
    return bool(_sinks)


@contextmanager
def measured(work: W) -> Iterator[W]:
    """Measure a piece of work, which the caller fills in."""
    if not _sinks:
        yield work
        return
    with ExitStack() as stack:
        for sink in _sinks:
            stack.enter_context(sink.during(work))
        yield work


def take_end(end: TurnEnd) -> None:
    """Tell the sinks that a turn has ended."""
    for sink in _sinks:
        sink.take_end(end)


def take_paid(model: str, cost: int) -> None:
    """Tell the sinks what a call of a model cost."""
    for sink in _sinks:
        sink.take_paid(model, cost)
