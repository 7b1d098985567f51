"""Which messages are parts of one question.

Telegram's clients cut a text at 4,096 characters and send the parts at once; they send a comment before the messages
that are forwarded with it; and they upload an album picture by picture. Nothing but an album has a name in common, so
the sender and the time of sending decide.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from botservice.turns.turn import StoredEvent
from transports.common.json_fields import field, integer, string
from transports.telegram.inbound_events import is_cut, stored_update

_TOGETHER_SECONDS: Final = 2


@dataclass(frozen=True, slots=True)
class QuestionPart:
    """What tells whether a message is a part of a question.

    Attributes:
        sent_at: In seconds, as Telegram says.
        album: What the pictures of one album share.
        is_cut: Whether the text is so long that it may go on in the next message.
    """

    sender_id: int
    sent_at: int
    album: str | None
    is_text: bool
    is_forwarded: bool
    is_command: bool
    is_cut: bool


def belong_together(known: Sequence[StoredEvent], event: StoredEvent) -> bool:
    """Return whether a message is a part of the question that others ask."""
    earlier, part = [_read(each) for each in known], _read(event)
    if part is None or None in earlier:
        return False
    others = [each for each in earlier if each is not None]
    if not others or any(each.sender_id != part.sender_id for each in others):
        return False
    if part.album is not None and any(each.album == part.album for each in others):
        return True
    every = [*others, part]
    if any(each.is_command for each in every) or not any(_are_near(each, part) for each in others):
        return False
    return any(each.is_forwarded for each in every) or (
        all(each.is_text for each in every) and any(each.is_cut for each in every)
    )


def _are_near(one: QuestionPart, other: QuestionPart) -> bool:
    return abs(one.sent_at - other.sent_at) <= _TOGETHER_SECONDS


def _read(event: StoredEvent) -> QuestionPart | None:
    """Return what a stored update says as a part of a question; None if it brings no message of a person."""
    message: Any = stored_update(event).get("message")
    sender = field(message, "sender_chat") or field(message, "from")
    sender_id, sent_at, text = integer(sender, "id"), integer(message, "date"), field(message, "text")
    if sender_id is None or sent_at is None:
        return None
    return QuestionPart(
        sender_id,
        sent_at,
        string(message, "media_group_id"),
        is_text=isinstance(text, str),
        is_forwarded=field(message, "forward_origin") is not None,
        is_command=isinstance(text, str) and text.startswith("/") and field(message, "forward_origin") is None,
        is_cut=is_cut(message),
    )
