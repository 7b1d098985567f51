"""What replicas tell each other: that a context has something new."""

from collections.abc import Iterable
from dataclasses import dataclass

from botservice.core.states import EventKind
from botservice.storage.database import Connection
from botservice.storage.postgres_replicas import notify

_NOBODY = "open"


@dataclass(frozen=True, slots=True)
class Wakeup:
    """Something new in a context.

    Attributes:
        is_open: Whether the process that accepted it does not work on it: another one has to.
    """

    context_id: int
    kind: EventKind = EventKind.MESSAGE
    is_open: bool = False

    def encode(self) -> str:
        """Return it as it is sent: the number alone where there is nothing else to say."""
        words = [str(self.context_id)]
        if self.kind is not EventKind.MESSAGE:
            words.append(self.kind.value)
        if self.is_open:
            words.append(_NOBODY)
        return " ".join(words)

    @classmethod
    def decode(cls, payload: str) -> "Wakeup | None":
        """Return what was sent; None if it is not understood, as from a newer release."""
        number, *words = payload.split()[:8] or [""]
        if not (number.isascii() and number.isdecimal()):
            return None
        is_open = _NOBODY in words
        kinds = [word for word in words if word != _NOBODY]
        try:
            kind = EventKind(kinds[0]) if kinds else EventKind.MESSAGE
        except ValueError:
            return None
        return cls(int(number), kind, is_open)


def notify_replicas(connection: Connection, wakeups: Iterable[Wakeup]) -> None:
    """Notify every replica on the same Postgres of new work, when this transaction commits."""
    if connection.dialect.name == "postgresql":
        notify(connection, list(dict.fromkeys(wakeup.encode() for wakeup in wakeups)))
