"""From an answer to the messages that make it visible. Pure: the same answer gives the same messages.

A payload is {"method": …, the method's parameters} without the chat; files are named by the digest of their bytes. One
in a form that not every chat takes says which (`form`), and holds the messages that are sent in its place (`plain`).
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from botservice.core.messages import Attachment, Message, Role
from botservice.turns.buttons import write_buttons
from botservice.turns.transport import BUTTONS, Payload
from botservice.turns.turn import StoredEvent
from transports.common.stored_files import name_file
from transports.common.too_long_messages import cut_long, note, whole_file
from transports.telegram.formatting import (
    MAX_CAPTION_UNITS,
    MAX_TEXT_UNITS,
    Rich,
    as_wire,
    format_formatted,
    format_markdown,
)
from transports.telegram.inbound_events import is_comment, reply_target
from transports.telegram.keyboards import MAX_BUTTONS, make_keyboard
from transports.telegram.refused_forms import RICH, receiver_of
from transports.telegram.rich import as_rich

VOICE = "voice"
_NO_WORDS = "👇"  # Telegram shows no buttons without a message
_LONGEST_CAPTION = 10_000  # characters of markdown; whatever is longer is no caption
ALBUM: Final = "album"
# What Telegram publishes for sendMediaGroup and for sending files.
_MOST_TOGETHER: Final = 10
_MAX_PHOTO_BYTES: Final = 10 * 1024 * 1024
_METHODS: Final = {"photo": "sendPhoto", "voice": "sendVoice", "audio": "sendAudio", "video": "sendVideo"}
_TOGETHER: Final = {"photo": "seen", "video": "seen", "audio": "heard", "document": "read"}
_PHOTOS: Final = frozenset({"image/jpeg", "image/png", "image/webp", "image/gif", "image/bmp"})
_VOICES: Final = frozenset({"audio/ogg", "audio/opus"})


def plan_answer(answer: Message, events: Sequence[StoredEvent], *, is_rich: bool = True) -> list[Payload]:
    """Return the messages that make answer visible: its text in one rich message or in pieces, then its files.

    Args:
        is_rich: Whether tables, formulas and long texts may come as a rich message.
    """
    buttons = answer.buttons[:MAX_BUTTONS]
    files = plan_files(answer.attachments) if answer.attachments else []
    payloads = _captioned(answer, files) or [*_said(answer, files, is_rich=is_rich), *files]
    if payloads and buttons:
        shown = {"reply_markup": make_keyboard(buttons)}
        place = next((each for each in reversed(payloads) if each.get("form") != ALBUM), None)
        if place is None:
            place = {"method": "sendMessage", "text": _NO_WORDS}
            payloads.append(place)
        _decorate(place, -1, shown)
        place[BUTTONS] = write_buttons(buttons)
    if payloads and (target := reply_target(events)) is not None:
        _reply(payloads, target, with_all=is_comment(events))
    if answer.is_personal and (receiver := receiver_of(events)) is not None:
        for each in payloads:
            each["receiver"] = receiver
    return list(payloads)


def _decorate(payload: dict[str, Any], place: int, values: dict[str, Any]) -> None:
    """Add to a payload, and to that one of those in its place which stands first or last."""
    payload |= values
    if "plain" in payload:
        payload["plain"][place] |= values


def _reply(payloads: Sequence[dict[str, Any]], target: int, *, with_all: bool) -> None:
    """Let the first of an answer's messages reply, or all of them and those in their places."""
    if not with_all:
        _decorate(payloads[0], 0, {"reply_to": target})
        return
    for payload in payloads:
        for each in (payload, *payload.get("plain", ())):
            each["reply_to"] = target


def _captioned(answer: Message, files: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the one file, or album, of an answer with its text below; nothing where it is not like that."""
    if len(files) != 1 or len(answer.text) > _LONGEST_CAPTION or (answer.buttons and "media" in files[0]):
        return []
    captions = formatted(answer, answer.text, max_units=MAX_CAPTION_UNITS)
    if len(captions) != 1:
        return []
    entities = as_wire(captions[0])
    words = {"caption": captions[0].text} | ({"caption_entities": entities} if entities else {})
    if "media" not in files[0]:
        return [files[0] | words]
    (first, *others), (plain, *more) = files[0]["media"], files[0]["plain"]
    return [files[0] | {"media": [first | words, *others], "plain": [plain | words, *more]}]


def _said(answer: Message, files: Sequence[Any], *, is_rich: bool) -> list[dict[str, Any]]:
    """Return the messages of a text: one where it is rich, which holds the others."""
    texts = _texts(answer, has_more=bool(files) or not answer.buttons)
    if answer.spoken is not None and not files and (spoken := _captioned(answer, plan_files([answer.spoken]))):
        return [spoken[0] | {"form": VOICE, "plain": texts}]
    if not is_rich or answer.formatted is not None or answer.role is Role.SYSTEM or not texts:
        return texts
    rich = as_rich(answer.text, is_long=len(texts) > 1)
    if rich is None:
        return texts
    return [{"method": "sendRichMessage", "rich_message": rich, "form": RICH, "plain": texts}]


def _texts(answer: Message, *, has_more: bool) -> list[dict[str, Any]]:
    """Return the messages of a text; of a very long one the beginning, and the whole as a file."""
    pieces, is_long = cut_long(answer.text or ("" if has_more else _NO_WORDS), lambda text: formatted(answer, text))
    payloads: list[dict[str, Any]] = []
    for piece in pieces:
        entities = as_wire(piece)
        payloads.append({"method": "sendMessage", "text": piece.text} | ({"entities": entities} if entities else {}))
    if is_long:
        file = {"field": "document", **whole_file(answer.text)}
        payloads.append({"method": "sendDocument", "file": file, "caption": note(answer.language)})
    return payloads


def formatted(answer: Message, text: str, *, max_units: int = MAX_TEXT_UNITS) -> list[Rich]:
    """Return the messages of an answer's text: what the service itself says is no Markdown."""
    if answer.formatted is not None and text:
        return format_formatted(answer.formatted, max_units=max_units, moments=answer.moments)
    return format_markdown(text, max_units=max_units, moments=answer.moments)


def plan_files(attachments: Sequence[Attachment]) -> list[dict[str, Any]]:
    """Return the messages that show files, in their order: those of a kind that follow each other in albums."""
    files = [_file(each) for each in attachments]
    kinds = groupby(files, key=lambda file: _TOGETHER.get(file["file"]["field"]))
    return [payload for kind, found in kinds for payload in _together(list(found), is_album=kind is not None)]


def _together(files: Sequence[dict[str, Any]], *, is_album: bool) -> Iterator[dict[str, Any]]:
    begin = 0
    while begin < len(files):
        rest = len(files) - begin
        size = min(rest, _MOST_TOGETHER) if is_album else 1
        if rest == _MOST_TOGETHER + 1 and is_album:
            size -= 1  # or one would be left alone
        found = files[begin : begin + size]
        yield _album(found) if size > 1 else found[0]
        begin += size


def _album(files: Sequence[dict[str, Any]]) -> dict[str, Any]:
    media = [{"type": each["file"]["field"], "file": each["file"]} for each in files]
    return {"method": "sendMediaGroup", "media": media, "form": ALBUM, "plain": list(files)}


def _file(attachment: Attachment) -> dict[str, Any]:
    kind = _kind(attachment)
    return {"method": _METHODS.get(kind, "sendDocument"), "file": {"field": kind, **name_file(attachment)}}


def _kind(attachment: Attachment) -> str:
    kind, _, _ = attachment.mime_type.partition("/")
    if attachment.mime_type in _PHOTOS:
        return "photo" if len(attachment.data or b"") <= _MAX_PHOTO_BYTES else "document"
    if attachment.mime_type in _VOICES:
        return "voice"
    return kind if kind in ("audio", "video") else "document"
