"""The values that fields of steps hold besides JSON: times, errors, results of tools and failures of callbacks."""

from dataclasses import dataclass
from datetime import datetime
from typing import Self

from botservice.core.errors import InvalidField


@dataclass(frozen=True, slots=True)
class Timing:
    """Start and end of something.

    Attributes:
        end_time: None while it lasts, and if the process died meanwhile.
    """

    start_time: datetime
    end_time: datetime | None = None

    def __post_init__(self) -> None:
        start, end = self.start_time, self.start_time if self.end_time is None else self.end_time
        are_moments = isinstance(start, datetime) and isinstance(end, datetime)
        if not are_moments or (start.tzinfo is None) is not (end.tzinfo is None):
            raise InvalidField("a Timing takes datetimes, both with a time zone or both without")

    @property
    def duration_seconds(self) -> float | None:
        """The duration in seconds; None while it lasts."""
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
        """Describe an exception, even if its own `__str__` fails."""
        return cls(type=type(error).__name__, message=_message(error))


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of one tool call.

    Attributes:
        call_id: The `id` of its `ToolCall`.
        text: The text for the model.
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
