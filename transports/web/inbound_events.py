"""Parsing what the page posts, a message, an edit or a stop, and reading it again from stored events."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from starlette.exceptions import HTTPException

from botservice.conversation.context_keys import ContextKeys
from botservice.conversation.queries import find_context
from botservice.core.messages import Attachment, Author, InboundMessage, is_blank
from botservice.core.states import EventKind
from botservice.storage.database import Connection
from botservice.turns.commands import parse_command
from botservice.turns.turn import InboundEvent, StoredEvent
from transports.common.requests import parse_fields, parse_text
from transports.web.files import BROWSER_FILES_BYTES, parse_files

NAME: Final = "web"
FIRST: Final = "first"
"""The conversation that every session has; those that are begun later have made-up names."""
MAX_TEXT: Final = 100_000  # characters
MAX_NAME: Final = 80  # characters of a display name
# Files travel as base64, and JSON may spell a character in twelve bytes.
MAX_BODY_BYTES: Final = BROWSER_FILES_BYTES * 4 // 3 + 12 * MAX_TEXT + 50_000

_CLIENT_ID: Final = re.compile(r"[A-Za-z0-9_-]{8,64}")
_CONVERSATION: Final = re.compile(r"[a-z0-9]{1,32}")


@dataclass(frozen=True, slots=True)
class Post:
    """A message as the page posts it.

    Attributes:
        client_id: The page's own name for it: a second post with the same one is the first one again.
        name: What the person wants to be called; it proves nothing.
        is_pressed: Whether it is what a button says, and not what the person wrote.
        edits: The page's id of the message that this text replaces, or None for a new message.
    """

    client_id: str
    text: str
    name: str | None = None
    files: tuple[Attachment, ...] = ()
    is_pressed: bool = False
    edits: str | None = None


class OrderKeys:
    """Microseconds of arrival, each larger than the one before."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._last = 0

    def next(self) -> int:
        """Return the next key."""
        self._last = max(self._last + 1, round(self._clock().timestamp() * 1_000_000))
        return self._last


def chat_of(session: str, conversation: str) -> str:
    """Return what a session's conversation is called in here: the session, and behind a slash which one it is."""
    if not _CONVERSATION.fullmatch(conversation):
        raise HTTPException(400, '"conversation" must be 1 to 32 small letters and digits.')
    return session if conversation == FIRST else f"{session}/{conversation}"


def context_keys(chat: str) -> dict[str, str]:
    """Return the keys of a chat's context. Those of another session are never among them, whatever is asked for."""
    session, _, conversation = chat.partition("/")
    keys = {"transport": NAME, "session_id": session}
    return keys | {"thread_id": conversation} if conversation else keys


def find_chat(connection: Connection, chat: str) -> int | None:
    """Return the id of a chat's context, or None before the first message."""
    return find_context(connection, ContextKeys.of(context_keys(chat)))


def chat_in(keys: Mapping[str, str]) -> str:
    """Return the chat that has these keys."""
    session, conversation = keys.get("session_id", ""), keys.get("thread_id")
    return session if conversation is None else f"{session}/{conversation}"


def session_in(chat: str) -> str:
    """Return whose chat it is."""
    return chat.partition("/")[0]


def parse_post(fields: Mapping[str, Any]) -> Post:
    """Return the message in a post."""
    text = parse_text(fields, "text") or ""
    if len(text) > MAX_TEXT:
        raise HTTPException(
            413, f"This message has {len(text):,} characters; at most {MAX_TEXT:,} can be sent at once."
        )
    files = parse_files(fields)
    if not files and is_blank(text):
        raise HTTPException(400, "There is nothing in this message.")
    name = " ".join((parse_text(fields, "name") or "").split())[:MAX_NAME]
    edits = parse_client_id(fields, "edits") if fields.get("edits") is not None else None
    return Post(parse_client_id(fields), text, name or None, files, fields.get("is_pressed") is True, edits)


def parse_client_id(fields: Mapping[str, Any], field: str = "id") -> str:
    """Return the id that the page gave to what it posts."""
    client_id = fields.get(field)
    if not isinstance(client_id, str) or not _CLIENT_ID.fullmatch(client_id):
        raise HTTPException(400, f'"{field}" must be 8 to 64 letters, digits, _ or -, made again for each message.')
    return client_id


def make_event(
    chat: str,
    client_id: str,
    order_key: int,
    body: bytes = b"{}",
    kind: EventKind = EventKind.MESSAGE,
    edits: str | None = None,
) -> InboundEvent:
    """Return the event that keeps what a page has posted: a message, what one says from now on, or a stop."""
    named = client_id if kind is EventKind.MESSAGE else f"{kind.value}:{client_id}"
    key = f"{NAME}:{session_in(chat)}:{named}"
    return InboundEvent(key, context_keys(chat), order_key, body, kind, external_id=edits)


def read_post(raw: bytes) -> Post | None:
    """Return the post in a stored event's bytes, or None if they can no longer be read."""
    try:
        return parse_post(parse_fields(raw))
    except HTTPException:
        return None


def read_event(event: StoredEvent) -> InboundMessage | None:
    """Return the message of a stored event, or None if it can no longer be read."""
    post = read_post(event.raw)
    if post is None:
        return None
    session = event.key.split(":")[1]
    return InboundMessage(
        post.text,
        Author(NAME, session, post.name),
        post.files,
        created_at=event.received_at,
        external_id=post.edits or post.client_id,
        command=parse_command(post.text),
        own_text="" if post.is_pressed else None,
    )


def is_mine(keys: Mapping[str, str], session: str) -> bool:
    """Return whether a context is a conversation of a session."""
    return keys.get("transport") == NAME and keys.get("session_id") == session
