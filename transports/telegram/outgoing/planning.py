"""From an answer to the messages that make it visible. Pure: the same answer gives the same messages."""

import hashlib
from collections.abc import Sequence
from typing import Any

from botservice.messages import Attachment, Message
from botservice.turns.buttons import write_buttons
from botservice.turns.transport import BUTTONS, Payload
from botservice.turns.turn import StoredEvent
from transports.overflow import fitting, head_of, note, whole_file
from transports.telegram.inbound import reply_target
from transports.telegram.keyboards import MAX_BUTTONS, make_keyboard
from transports.telegram.outgoing.formatting import MAX_CAPTION_UNITS, as_wire, format_markdown

# A payload is {"method": …, the method's parameters} without the chat; files are named by the digest of their bytes.
_FILE_METHODS = {"photo": "sendPhoto", "voice": "sendVoice", "audio": "sendAudio", "video": "sendVideo"}
_PHOTOS = frozenset({"image/jpeg", "image/png", "image/webp", "image/gif", "image/bmp"})
_NO_WORDS = "👇"  # Telegram shows no buttons without a message
_LONGEST_CAPTION = 10_000  # characters of markdown; whatever is longer is no caption
_VOICES = frozenset({"audio/ogg", "audio/opus"})


def plan_answer(answer: Message, events: Sequence[StoredEvent]) -> list[Payload]:
    """Return the messages that make answer visible: its text in pieces, then its files."""
    buttons = answer.buttons[:MAX_BUTTONS]
    files = [_file(each) for each in answer.attachments]
    payloads = _captioned(answer, files) or [*_texts(answer, has_more=bool(files) or not buttons), *files]
    if payloads and buttons:
        payloads[-1] |= {"reply_markup": make_keyboard(buttons), BUTTONS: write_buttons(buttons)}
    target = reply_target(events)
    if payloads and target is not None:
        payloads[0]["reply_to"] = target
    return list(payloads)


def _captioned(answer: Message, files: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the one file of an answer with its text below; nothing where it is not like that."""
    if len(files) != 1 or len(answer.text) > _LONGEST_CAPTION:
        return []
    captions = format_markdown(answer.text, max_units=MAX_CAPTION_UNITS)
    if len(captions) != 1:
        return []
    entities = as_wire(captions[0])
    return [files[0] | {"caption": captions[0].text} | ({"caption_entities": entities} if entities else {})]


def _texts(answer: Message, *, has_more: bool) -> list[dict[str, Any]]:
    """Return the messages of a text; of a very long one the beginning, and the whole as a file.

    Args:
        has_more: Whether there is anything to show without a text.
    """
    head = head_of(answer.text)
    pieces, is_all = fitting(format_markdown(head or ("" if has_more else _NO_WORDS)), is_all=head == answer.text)
    payloads: list[dict[str, Any]] = []
    for piece in pieces:
        entities = as_wire(piece)
        payloads.append({"method": "sendMessage", "text": piece.text} | ({"entities": entities} if entities else {}))
    if not is_all:
        file = {"field": "document", **whole_file(answer.text)}
        payloads.append({"method": "sendDocument", "file": file, "caption": note(answer.language)})
    return payloads


def _file(attachment: Attachment) -> dict[str, Any]:
    kind = _kind(attachment)
    where = {"url": attachment.url} if attachment.data is None else {"sha256": digest(attachment.data)}
    return {
        "method": _FILE_METHODS.get(kind, "sendDocument"),
        "file": {"field": kind, "name": attachment.name, "mime_type": attachment.mime_type, **where},
    }


def digest(data: bytes) -> str:
    """Return what a file's bytes are called in storage."""
    return hashlib.sha256(data).hexdigest()


def _kind(attachment: Attachment) -> str:
    kind, _, _ = attachment.mime_type.partition("/")
    if attachment.mime_type in _PHOTOS:
        return "photo"
    if attachment.mime_type in _VOICES:
        return "voice"
    return kind if kind in ("audio", "video") else "document"
