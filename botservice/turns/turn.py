"""Events, turns and deliveries."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, Protocol, TypeVar

from botservice.core.states import DeliveryKind, EventKind, Outcome, TurnStatus
from botservice.people.names import HOOKS
from botservice.telemetry.instrumentation import TurnEnd, TurnIdentity, take_end

T = TypeVar("T")


AT_ONCE: Final = timedelta(seconds=2)
"""Within this, two moments are the same: replicas read the clock of their database not quite alike."""


@dataclass(frozen=True, slots=True)
class InboundEvent:
    """What a transport hands in.

    Attributes:
        key: Names the event for ever: a second one with the same key is the first one again.
        order_key: Grows in the platform's own order within a context.
        group_key: Events that share it are one message, such as an album.
        raw: What the platform sent, as it came.
        external_id: The platform's id of the message that an edit or a deletion is about.
        is_incomplete: Whether more of the same message seems to follow, so that its turn waits for a moment.
    """

    key: str
    context_keys: Mapping[str, str]
    order_key: int
    raw: bytes
    kind: EventKind = EventKind.MESSAGE
    group_key: str | None = None
    external_id: str | None = None
    is_incomplete: bool = False


@dataclass(frozen=True, slots=True)
class StoredEvent:
    """An event as it is kept.

    Attributes:
        group_key: As an InboundEvent has it.
        is_meant: Whether another part of the same message says that the bot is meant.
    """

    id: int
    key: str
    raw: bytes
    received_at: datetime
    group_key: str | None = None
    is_meant: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """What answers one or more events of one context.

    Attributes:
        attempts: How often it was begun without getting further.
        failures: How often that ended in an error.
        keeps_steps: Whether the steps of the prompts before it stay in view.
        has_begun: Whether what the person said is in the history already.
        joined_events: How many events came to it after the first.
        created_at: When it was accepted.
        last_step_number: The number of its newest step, also of one that failed; None before the first.
        is_alone: Whether no other turn of its context is open, where that was looked at.
    """

    id: int
    context_id: int
    status: TurnStatus
    transport: str
    attempts: int
    due_at: datetime
    keeps_steps: bool = False
    order_key: int = 0
    has_begun: bool = True
    events: tuple[StoredEvent, ...] = ()
    joined_events: int = 0
    due_set_at: datetime | None = None
    failures: int = 0
    created_at: datetime | None = None
    is_alone: bool = True
    last_step_number: int | None = None

    @property
    def is_deferred(self) -> bool:
        """Whether it has not begun, and waits for a moment for what else is said; nothing waits behind it."""
        return self.status is TurnStatus.QUEUED and self.attempts > 0

    @property
    def is_of_hook(self) -> bool:
        """Whether a hook asked it, and no person."""
        return self.transport.startswith(HOOKS)

    @property
    def platform(self) -> str:
        """The transport that makes its answer visible."""
        return self.transport.removeprefix(HOOKS)

    @property
    def identity(self) -> TurnIdentity:
        """Its identity in traces and measurements."""
        return TurnIdentity(self.id, self.context_id, self.transport, self.created_at or self.due_at)

    @property
    def error_id(self) -> str:
        """The id by which a person can ask about it if it fails."""
        return error_id(self.id)


def tell_end(turn: Turn, outcome: Outcome, now: datetime) -> None:
    """Report the end of a turn to the measurements, once it is stored."""
    take_end(TurnEnd(turn.identity, outcome.value, now))


def error_id(turn_id: int) -> str:
    """Return the id by which a person can ask about a failed turn."""
    return f"T{turn_id}"


async def _is_sure() -> None:
    """Return at once: no other process could have it."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A message to be made visible.

    Attributes:
        confirm: Returns if this process still has the conversation, and raises where another one may have it. A
            transport that waits before it sends asks it after that.
        payload: JSON that its transport wrote and understands.
        external_id: The platform's id of the message, where it is known already.
        is_replacing: Whether it says something else in the place of a message that was sent; that one's buttons go.
        attempts: How often it was tried before; above 0, an earlier try may have arrived.
        created_at: Since when it is pending; None if it is shown with another one.
        turn_created_at: When its turn was accepted, where that is known.
        is_all: Whether it is all of an answer that was just stored.
    """

    id: int
    turn_id: int
    transport: str
    kind: DeliveryKind
    payload: Mapping[str, object]
    attempts: int
    due_at: datetime
    external_id: str | None = None
    due_set_at: datetime | None = None
    is_replacing: bool = False
    created_at: datetime | None = None
    turn_created_at: datetime | None = None
    is_all: bool = False
    confirm: Callable[[], Awaitable[None]] = field(default=_is_sure, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Figures:
    """What calls of a model add to the figures of their turn.

    Attributes:
        cost: In billionths of the currency.
        model_ms: How long the model took, in milliseconds.
        first_token_ms: How long it was before its first words; None if it said none.
        tools: The names of the tools that it called.
    """

    calls: int = 0
    failed_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    cost: int = 0
    model_ms: int = 0
    first_token_ms: int | None = None
    model: str | None = None
    tools: Sequence[str] = ()


class DueRow(Protocol):
    """A row that is due at some time."""

    @property
    def due_at(self) -> datetime:
        """Not before then."""

    @property
    def due_set_at(self) -> datetime | None:
        """When that time was set, by the same clock; None if it is sure to be right."""


def is_due(waiting: DueRow, now: datetime) -> bool:
    """Return whether something may be done now: at its time, or at once where the clock was ahead when that was set.

    A clock that is put right would otherwise hold up a chat for as long as it was wrong.
    """
    is_wrong = waiting.due_set_at is not None and waiting.due_set_at > now + AT_ONCE
    return is_wrong or waiting.due_at <= now


def set_due(moment: T, now: T) -> dict[str, T]:
    """Return the columns that make a row due at a moment."""
    return {"due_at": moment, "due_set_at": now}


@dataclass(frozen=True, slots=True)
class Share:
    """What of all conversations one of several processes on a machine works on first.

    The others take up what it leaves lying: a share says who is woken, and not who may.

    Attributes:
        index: Which of them, from 0.
        count: How many there are.
    """

    index: int = 0
    count: int = 1

    def has(self, context_id: int) -> bool:
        """Return whether a conversation is this process's."""
        return context_id % self.count == self.index
