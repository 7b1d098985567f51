"""Every error that botservice raises on purpose.

BotServiceError
├── SettingsError              a setting is wrong; names it and what it must be
├── InvalidArgument            an object was made, or asked, with something that it cannot work with
├── InvalidContextKeys         context keys are not a JSON object of at most 4 kB
├── InvalidField               a memory item was given a field or a value that it cannot keep
├── InvalidTool                a tool's signature or name cannot be offered to a model
├── InvalidSkill               a folder of skills, or one of them, cannot be read as such
├── StorageError
│   ├── DatabaseInUse          another process works on this SQLite file
│   ├── SchemaMismatch         the database is older or newer than this version
│   └── StorageUnavailable     the database does not answer or cannot be written
│       └── UnsuitableDatabase the database, or what stands before it, is not fit to keep anything in
│           └── UnsuitablePooler a pooler stands before the database that does not keep sessions
├── InboxFull                  too much is waiting; the platform delivers again
├── LLMError                   the model did not answer
│   └── ContextOverflow        the prompt is longer than the model's context window
├── BudgetExceeded             a call would cost more than the owner allows at this moment
├── PageRefused                a page of the web is not to be asked for, or cannot be had or read
├── TurnInProgress             the context has an open turn that another caller is running
├── TurnGrew                   a turn that was about to begin is not what was read of it
├── ClaimLost                  the right to write to this context has passed to another worker
├── CommandFailed              a command of the chat failed by itself
├── RunInterrupted             the run was stopped
├── RunFinished                the run has its answer already
├── TurnWaiting                a turn waits
│   ├── ApprovalPending        for a person's word about calls of tools
│   └── ResultPending          for results that come later
└── DeliveryError              a platform did not take a message
    ├── DeliveryRefused        it never will (blocked, deleted, forbidden)
    └── DeliveryUnknown        it may have taken it: the answer was lost
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

_LONGEST_WAIT_SECONDS: Final = 86_400.0


class BotServiceError(Exception):
    """The parent of every deliberate error."""


class SettingsError(BotServiceError):
    """A setting is missing or invalid; the message names it and the allowed values.

    Attributes:
        names: The invalid settings, in lower case; empty if something else is wrong.
    """

    def __init__(self, message: str, *, names: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.names = tuple(names)


class SetBySettings(BotServiceError):
    """A setting says otherwise than what is wanted of a person.

    Attributes:
        setting: Its name, such as OWNERS.
    """

    def __init__(self, message: str, setting: str) -> None:
        super().__init__(message)
        self.setting = setting


class InvalidArgument(BotServiceError, ValueError):
    """An argument is invalid; the message names it, the given value and the allowed ones."""


class InvalidContextKeys(BotServiceError, ValueError):
    """Context keys must be a JSON object of at most 4 kB and 8 levels."""


class InvalidField(BotServiceError, ValueError):
    """A memory item cannot store this field name or value."""


class InvalidTool(BotServiceError, ValueError):
    """A tool definition is invalid."""


class InvalidSkill(BotServiceError, ValueError):
    """A folder of skills, or one skill in it, is invalid."""


class StorageError(BotServiceError):
    """Storage failed."""


class DatabaseInUse(StorageError):
    """Another process works on this SQLite file."""


class SchemaMismatch(StorageError):
    """The database is older or newer than this version of botservice."""


class StorageUnavailable(StorageError):
    """The database does not answer, or does not accept writes."""


class UnsuitableDatabase(StorageUnavailable):
    """Nothing can be kept in this database as it is, or as it is reached."""


class UnsuitablePooler(UnsuitableDatabase):
    """Between this process and the database stands a pooler in transaction mode."""


class InboxFull(BotServiceError):
    """Too many messages are waiting; the platform is asked to deliver again later.

    Attributes:
        retry_after_seconds: When to deliver again.
    """

    def __init__(self, message: str, *, retry_after_seconds: float = 5.0) -> None:
        super().__init__(message)
        self.retry_after_seconds = retry_after_seconds


class ChatRefused(BotServiceError):
    """Nothing may be said in a chat: it has no access, or it never wrote where the platform wants that first."""


def _bounded(seconds: float | None) -> float | None:
    """Return how long to wait for a server that asks for so much: not for ever, nor for what no date can hold."""
    return None if seconds is None else max(0.0, min(seconds, _LONGEST_WAIT_SECONDS))


class LLMFailure(StrEnum):
    """Why a model did not answer."""

    UNAVAILABLE = "unavailable"  # its server is down, overloaded, out of reach, or broke off
    RATE_LIMITED = "rate_limited"  # too much at once; a while later it answers
    OUT_OF_QUOTA = "out_of_quota"  # the account has no credit left
    UNKNOWN_MODEL = "unknown_model"  # there is none of that name, or no longer
    UNAUTHORIZED = "unauthorized"  # the key is missing or wrong, or may not do this
    BAD_REQUEST = "bad_request"  # the request is wrong by itself, for any model
    UNSUPPORTED_INPUT = "unsupported_input"  # the model takes no such picture or file, or no tools
    UNSUPPORTED_FIELD = "unsupported_field"  # the server does not know a part of the request, or wants another form
    CONTENT_FILTER = "content_filter"  # a filter refuses what was said
    OVERFLOW = "overflow"  # the prompt is longer than the model's context window

    @property
    def is_of_request(self) -> bool:
        """Whether the request itself was refused: repeating it does not help, another request may succeed."""
        return self in _OF_REQUEST


_OF_REQUEST: Final = frozenset(
    {LLMFailure.BAD_REQUEST, LLMFailure.OVERFLOW, LLMFailure.CONTENT_FILTER}
    | {LLMFailure.UNSUPPORTED_INPUT, LLMFailure.UNSUPPORTED_FIELD}
)


class LLMError(BotServiceError):
    """The model did not answer.

    Attributes:
        is_transient: Whether a later retry may succeed.
        retry_after_seconds: How long the server asked to wait, if it did; a day at most.
        kind: The reason, if known.
        status_code: The HTTP status, if the server answered.
        code: The server's own error code, such as "insufficient_quota", if it has one.
        refused: What the server does not support, if its error says so: "image", "image/heic", "tools", a field.
        wording: The server's own words, without any words of people.
        failed_for_seconds: The time since the first failure, if several models were asked.
    """

    def __init__(  # noqa: PLR0913 - each is told apart by callers
        self,
        message: str,
        *,
        is_transient: bool = True,
        retry_after_seconds: float | None = None,
        kind: LLMFailure = LLMFailure.UNAVAILABLE,
        status_code: int | None = None,
        code: str | None = None,
        refused: str | None = None,
        wording: str | None = None,
        failed_for_seconds: float = 0.0,
    ) -> None:
        super().__init__(message)
        self.is_transient = is_transient
        self.retry_after_seconds = _bounded(retry_after_seconds)
        self.kind = kind
        self.status_code = status_code
        self.code = code
        self.refused = refused
        self.wording = wording
        self.failed_for_seconds = failed_for_seconds


class ContextOverflow(LLMError):
    """The prompt is longer than the model's context window."""

    def __init__(self, message: str) -> None:
        super().__init__(message, is_transient=False, kind=LLMFailure.OVERFLOW)


class BudgetExceeded(BotServiceError):
    """A call would take more than a person, a chat or the service may use at this moment.

    Attributes:
        scope: Whose budget it is: person, chat or service.
        unit: What is used up: messages, tokens or money.
        ends_at: When the next period begins (aware, UTC).
    """

    def __init__(self, message: str, *, scope: str, unit: str, ends_at: datetime) -> None:
        super().__init__(message)
        self.scope = scope
        self.unit = unit
        self.ends_at = ends_at


class KnowledgeError(BotServiceError):
    """A document, or a folder of them, cannot be added or read; the message names it and what to do."""


class PageRefused(BotServiceError):
    """A page of the web is not to be asked for, or cannot be had or read; the message repeats no address."""


class InvalidOutput(BotServiceError):
    """The model gave no answer in the form that was asked for, as often as it was told so."""


class TurnInProgress(BotServiceError):
    """Another caller is running a turn of this context."""


class TurnGrew(BotServiceError):
    """More was said to a turn that was about to begin, or it was dropped: it has to be read again."""


class ClaimLost(BotServiceError):
    """The right to write to this context has passed to another worker."""


class CommandFailed(BotServiceError):
    """A command of the chat failed by itself: trying it again would repeat what it did."""


class RunInterrupted(BotServiceError):
    """The run was stopped before it had an answer."""


class RunFinished(BotServiceError):
    """The run already has its answer."""


class TurnWaiting(BotServiceError):
    """A turn is suspended; it continues when approval or a result arrives.

    Attributes:
        turn_id: The id of the turn.
        calls: Its pending calls, as `PendingCall`.
    """

    def __init__(self, message: str, *, turn_id: int, calls: Sequence[Any] = ()) -> None:
        super().__init__(message)
        self.turn_id = turn_id
        self.calls = tuple(calls)


class ApprovalPending(TurnWaiting):
    """Tool calls await approval: `service.decide` decides by their numbers, `service.resume` continues."""


class ResultPending(TurnWaiting):
    """Tool results come later: `service.hand_in` delivers one, `service.resume` continues."""


class DeliveryError(BotServiceError):
    """A platform did not accept a message; a later retry may succeed.

    Attributes:
        retry_after_seconds: How long the platform asked to wait, if it did; a day at most.
    """

    def __init__(self, message: str, *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_seconds = _bounded(retry_after_seconds)


class DeliveryRefused(DeliveryError):
    """The platform will never accept this message: the bot was blocked, or the chat is gone."""


class DeliveryInstead(DeliveryError):
    """The platform does not take a message in this form; others are to be sent in its place, in order.

    Attributes:
        payloads: What is sent now: JSON that its transport wrote and understands.
    """

    def __init__(self, message: str, payloads: Sequence[Mapping[str, object]]) -> None:
        super().__init__(message)
        self.payloads = tuple(payloads)


class DeliveryUnknown(DeliveryError):
    """The platform's answer was lost: the message may have arrived."""
