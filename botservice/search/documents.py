"""What a ranking index knows of a message."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from botservice.core.messages import Role

_QUESTION_MARKS: Final = ("?", "\uff1f", "\u061f")


@dataclass(frozen=True, slots=True)
class Document:
    """One message, as search sees it.

    Attributes:
        id: The message's id in storage.
        text: What was said, with captions, transcripts and file names in it.
        author_name: The display name, where one is known.
        author_key: What tells two people of one name apart; None if nothing does.
        created_at: When it was said (aware).
        position: Its number in its context; needed for very long ones only.
        has_files: Whether files came with it.
    """

    id: int
    role: Role
    text: str
    author_name: str | None
    author_key: str | None
    created_at: datetime
    position: int = 0
    has_files: bool = False


def is_question(text: str) -> bool:
    """Return whether a text ends as a question does."""
    return text.rstrip().endswith(_QUESTION_MARKS)
