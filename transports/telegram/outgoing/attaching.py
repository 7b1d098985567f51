"""The files of an answer, as messages: pictures and videos together, and what is no picture as a document."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Final

from botservice.messages import Attachment
from botservice.storage.blobs import digest_of

ALBUM: Final = "album"
# What Telegram publishes for sendMediaGroup and for sending files.
_MOST_TOGETHER: Final = 10
_MAX_PHOTO_BYTES: Final = 10 * 1024 * 1024
_METHODS: Final = {"photo": "sendPhoto", "voice": "sendVoice", "audio": "sendAudio", "video": "sendVideo"}
_TOGETHER: Final = {"photo": "seen", "video": "seen", "audio": "heard", "document": "read"}
_PHOTOS: Final = frozenset({"image/jpeg", "image/png", "image/webp", "image/gif", "image/bmp"})
_VOICES: Final = frozenset({"audio/ogg", "audio/opus"})


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
    where = {"url": attachment.url} if attachment.data is None else {"sha256": digest_of(attachment.data)}
    return {
        "method": _METHODS.get(kind, "sendDocument"),
        "file": {"field": kind, "name": attachment.name, "mime_type": attachment.mime_type, **where},
    }


def _kind(attachment: Attachment) -> str:
    kind, _, _ = attachment.mime_type.partition("/")
    if attachment.mime_type in _PHOTOS:
        return "photo" if len(attachment.data or b"") <= _MAX_PHOTO_BYTES else "document"
    if attachment.mime_type in _VOICES:
        return "voice"
    return kind if kind in ("audio", "video") else "document"
