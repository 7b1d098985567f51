"""What comes in: a message or a stop that the page posts, and what a stored one says."""

import base64
import binascii
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from botservice.messages import Attachment, Author, InboundMessage
from botservice.turns.start.commands import parse_command
from botservice.turns.turn import EventKind, InboundEvent, StoredEvent
from transports.web.entering.sessions import author_of

NAME: Final = "web"
MAX_TEXT: Final = 100_000  # characters
MAX_IMAGES: Final = 8
MAX_IMAGES_BYTES: Final = 5_000_000  # of all images of a message together
MAX_NAME: Final = 80  # characters of a display name
MAX_FILE_NAME: Final = 200
# Images travel as base64, and JSON may spell a character in twelve bytes.
MAX_BODY_BYTES: Final = MAX_IMAGES_BYTES * 4 // 3 + 12 * MAX_TEXT + 50_000

_CLIENT_ID: Final = re.compile(r"[A-Za-z0-9_-]{8,64}")
_IMAGE_STARTS: Final = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}


class Refusal(Exception):
    """A request that is not taken; its text is for the person.

    Attributes:
        status: The HTTP status that says so.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class Post:
    """A message as the page posts it.

    Attributes:
        client_id: The page's own name for it: a second post with the same one is the first one again.
        name: What the person wants to be called; it proves nothing.
        is_pressed: Whether it is what a button says, and not what the person wrote.
    """

    client_id: str
    text: str
    name: str | None = None
    images: tuple[Attachment, ...] = ()
    is_pressed: bool = False


class OrderKeys:
    """Microseconds of arrival, each larger than the one before."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self._clock = clock
        self._last = 0

    def next(self) -> int:
        """Return the next key."""
        self._last = max(self._last + 1, round(self._clock().timestamp() * 1_000_000))
        return self._last


def context_keys(session: str) -> dict[str, str]:
    """Return the keys of a session's context."""
    return {"transport": NAME, "session_id": session}


def parse_fields(body: bytes) -> Mapping[str, Any]:
    """Return what the body of a post holds.

    Raises:
        Refusal: it is no JSON object.
    """
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError):
        raise Refusal(400, "This is not JSON.") from None
    if not isinstance(fields, dict):
        raise Refusal(400, "A message is a JSON object.")
    return fields


def parse_post(fields: Mapping[str, Any]) -> Post:
    """Return the message in a post.

    Raises:
        Refusal: there is none, or it is too large.
    """
    text = _text(fields, "text") or ""
    if len(text) > MAX_TEXT:
        raise Refusal(413, f"This message has {len(text):,} characters; at most {MAX_TEXT:,} can be sent at once.")
    images = _images(fields.get("images"))
    if not text.strip() and not images:
        raise Refusal(400, "There is nothing in this message.")
    name = " ".join((_text(fields, "name") or "").split())[:MAX_NAME]
    return Post(parse_client_id(fields), text, name or None, images, fields.get("is_pressed") is True)


def parse_client_id(fields: Mapping[str, Any]) -> str:
    """Return the id that the page gave to what it posts.

    Raises:
        Refusal: it gave none.
    """
    client_id = fields.get("id")
    if not isinstance(client_id, str) or not _CLIENT_ID.fullmatch(client_id):
        raise Refusal(400, '"id" must be 8 to 64 letters, digits, _ or -, made anew for each message.')
    return client_id


def message_event(session: str, post: Post, body: bytes, order_key: int) -> InboundEvent:
    """Return the event that keeps a message."""
    return InboundEvent(f"{NAME}:{session}:{post.client_id}", context_keys(session), order_key, body)


def stop_event(session: str, client_id: str, order_key: int) -> InboundEvent:
    """Return the event that stops what runs."""
    key = f"{NAME}:{session}:stop:{client_id}"
    return InboundEvent(key, context_keys(session), order_key, b"{}", EventKind.STOP)


def read_post(raw: bytes) -> Post | None:
    """Return what a stored event's bytes hold; None where they can no longer be read."""
    try:
        return parse_post(parse_fields(raw))
    except Refusal:
        return None


def read_event(event: StoredEvent) -> InboundMessage | None:
    """Return what a stored message says; None where it can no longer be read."""
    post = read_post(event.raw)
    if post is None:
        return None
    session = event.key.split(":")[1]
    return InboundMessage(
        post.text,
        Author(NAME, author_of(session), post.name),
        post.images,
        created_at=event.received_at,
        external_id=post.client_id,
        command=parse_command(post.text),
        own_text="" if post.is_pressed else None,
    )


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    if value is not None and not isinstance(value, str):
        raise Refusal(400, f'"{name}" must be a text.')
    return value


def _images(value: Any) -> tuple[Attachment, ...]:
    if value is None:
        return ()
    if not isinstance(value, list):
        raise Refusal(400, '"images" must be a list.')
    if len(value) > MAX_IMAGES:
        raise Refusal(413, f"At most {MAX_IMAGES} images can be sent at once.")
    images = [_image(each) for each in value]
    if sum(len(image.data or b"") for image in images) > MAX_IMAGES_BYTES:
        raise Refusal(413, f"Images may have {MAX_IMAGES_BYTES // 1_000_000} MB together.")
    return tuple(images)


def _image(value: Any) -> Attachment:
    fields = value if isinstance(value, dict) else {}
    encoded, mime_type = _text(fields, "data"), _text(fields, "mime_type")
    try:
        data = base64.b64decode(encoded or "", validate=True)
    except (binascii.Error, ValueError):
        raise Refusal(400, '"data" of an image must be base64.') from None
    starts = _IMAGE_STARTS.get(mime_type or "", ())
    if not data.startswith(starts) or not starts:
        raise Refusal(415, "Only PNG, JPEG, GIF and WebP images can be sent.")
    return Attachment(mime_type or "", (_text(fields, "name") or "")[:MAX_FILE_NAME] or None, data=data)
