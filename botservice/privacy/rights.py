"""The rights of every person, even if blocked or never admitted: to an export, and to be forgotten.

Each of these is answered once a day, in private, and nothing besides.
"""

from dataclasses import dataclass
from typing import Final

from botservice.core.messages import InboundMessage
from botservice.people.names import person_name

# What is asked, as it is kept; /forget me asks whether that is meant, and counts for itself.
RIGHTS: Final = {("export", ""): "export", ("forget", "me"): "forget", ("forget", "me yes"): "forget yes"}
FORGOTTEN: Final = "forgotten"
"""The kind of the row of a forgotten person of whom something is still to be read: see `late_messages`."""
KEPT: Final = (*sorted(RIGHTS.values()), FORGOTTEN)
"""The kinds of rows that are kept of a forgotten person for a while, or they could ask without end, or come back."""


@dataclass(frozen=True, slots=True)
class Right:
    """A right that is refused to nobody."""

    kind: str
    person: str


def right_of(message: InboundMessage) -> Right | None:
    """Return the right that a message makes use of; None for any other."""
    person, call = person_name(message.author), message.command
    if call is None or not person or not message.is_private or not message.is_addressed:
        return None
    kind = RIGHTS.get((call.name, " ".join(call.arguments.lower().split())))
    return None if kind is None else Right(kind, person)
