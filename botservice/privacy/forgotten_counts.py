"""What was forgotten, in numbers; and where that was asked for."""

from dataclasses import astuple, dataclass
from typing import Final

from botservice.storage.claims import Claim


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was deleted.

    Attributes:
        contexts: Conversations that went whole, because no other person wrote in them.
        messages: What people wrote, in these and in others.
        answers: What the assistant wrote.
        files: What came with these messages.
    """

    contexts: int = 0
    messages: int = 0
    answers: int = 0
    files: int = 0
    facts: int = 0
    reminders: int = 0

    def __add__(self, other: "Forgotten") -> "Forgotten":
        """Return the sum of both."""
        return Forgotten(*map(sum, zip(astuple(self), astuple(other), strict=True)))


@dataclass(frozen=True, slots=True)
class Here:
    """The conversation in which a person asks to be forgotten, and the turn in which they do: these stay, empty.

    Attributes:
        claim: On the conversation.
    """

    context_id: int | None = None
    turn_id: int | None = None
    claim: Claim | None = None

    def turn_in(self, context_id: int) -> int | None:
        """Return the turn, if it is one of a conversation."""
        return self.turn_id if self.context_id == context_id else None


NOWHERE: Final = Here()
"""Where what is forgotten is asked for in no conversation, such as on the command line."""
