"""The small values that steps carry, besides those of `botservice.messages`."""

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from botservice.errors import InvalidField


@dataclass(frozen=True, slots=True)
class Timing:
    """When something began and ended.

    Attributes:
        end_time: None while it lasts, and for ever where the process died meanwhile.
    """

    start_time: datetime
    end_time: datetime | None = None

    def __post_init__(self) -> None:
        times = [self.start_time] if self.end_time is None else [self.start_time, self.end_time]
        if not all(isinstance(time, datetime) for time in times) or len({time.tzinfo is None for time in times}) > 1:
            raise InvalidField("a Timing takes datetimes, both with a time zone or both without")

    @property
    def duration_seconds(self) -> float | None:
        """How long it took; None while it lasts."""
        return None if self.end_time is None else (self.end_time - self.start_time).total_seconds()


@dataclass(frozen=True, slots=True)
class StepError:
    """An error as data.

    Attributes:
        type: The name of the exception's class.
    """

    type: str
    message: str

    def __str__(self) -> str:
        return f"{self.type}: {self.message}" if self.message else self.type

    @classmethod
    def of(cls, error: BaseException) -> Self:
        """Return what can be kept of an exception, also of one whose own `__str__` fails."""
        return cls(type=type(error).__name__, message=_message(error))


@dataclass(frozen=True, slots=True)
class ToolResult:
    """What one tool call gave.

    Attributes:
        call_id: The `id` of its `ToolCall`.
        text: What the model reads.
    """

    call_id: str
    text: str
    is_error: bool = False
    duration_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class CallbackFailure:
    """A step callback that raised.

    Attributes:
        callback: The callback's name.
        type: The name of the exception's class.
    """

    callback: str
    type: str
    message: str

    @classmethod
    def of(cls, callback: str, error: BaseException) -> Self:
        """Return the record of a callback's exception."""
        return cls(callback=callback, type=type(error).__name__, message=_message(error))


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - foreign code; an error that cannot speak is still an error
        return "(the error has no readable message)"
