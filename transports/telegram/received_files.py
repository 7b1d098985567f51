"""The files that people send: fetched within limits, and what cannot be fetched is said in words."""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from telegram.error import BadRequest, TelegramError

from botservice.core.messages import Attachment
from transports.common.documents import (
    ExtractedFiles,
    ExtractionAttempt,
    FetchedFile,
    SentFile,
    read_document,
    read_files,
)
from transports.common.json_fields import field, integer, string
from transports.telegram.client import TELEGRAM_FILE_BYTES, LocalFileError
from transports.telegram.context import TelegramContext

logger = logging.getLogger(__name__)

# A bot may fetch files of up to 20 MB. Source: core.telegram.org/bots/api#getfile.
_TRIES = 3
_TOO_LARGE = f"too large for a bot to fetch; Telegram's limit is {TELEGRAM_FILE_BYTES // 1024**2} MB"
_SHARE_FOLDER = "let this service read the server's folder, under the same path, or run the server without --local"


@dataclass(frozen=True, slots=True)
class TelegramFile(SentFile):
    """A file that came with a message, not fetched yet.

    Attributes:
        unique_id: Names the same file wherever it is sent; nothing is fetched by it.
    """

    unique_id: str | None = None


class TelegramFiles:
    """Fetches what came with a message."""

    def __init__(self, telegram: TelegramContext) -> None:
        self._telegram = telegram
        self._client = telegram.client

    async def fetch(self, files: Sequence[TelegramFile], *, event_id: int) -> ExtractedFiles:
        """Return files, and in words what is in them or why they are not there."""
        telegram = self._telegram
        return await read_files(files, self._fetch_one, _size_of, telegram.reading, telegram.storage, event_id)

    async def _fetch_one(self, file: TelegramFile, attempt: ExtractionAttempt) -> FetchedFile:
        if file.size_bytes is not None and file.size_bytes > TELEGRAM_FILE_BYTES:
            return file.refused(_TOO_LARGE)
        try:
            data = await self._download(str(file.id))
        except BadRequest as error:
            if "too big" in error.message.lower():
                return file.refused(_TOO_LARGE)
            logger.warning("telegram.file_refused", extra={"reason": error.message})
            return file.refused("Telegram does not give it out; ask for it to be sent again")
        except LocalFileError as error:
            logger.warning("telegram.local_file_unreadable", extra={"reason": error.message, "advice": _SHARE_FOLDER})
            return file.refused("this service cannot read the files of its own Bot API server")
        except TelegramError as error:
            logger.warning("telegram.file_not_fetched", extra={"reason": type(error).__name__})
            return file.refused("it could not be fetched; ask for it to be sent again")
        key = ("telegram", file.unique_id) if file.unique_id is not None else None
        attachment = Attachment(file.mime_type, file.name, data)
        return await read_document(attachment, str(file), self._telegram.reading, key=key, attempt=attempt)

    async def _download(self, file_id: str) -> bytes:
        """Return a file's bytes; what is lost on the way is fetched again, a few times."""
        for is_last in (*[False] * (_TRIES - 1), True):
            try:
                found: dict[str, Any] = await self._client.call("getFile", file_id=file_id)
                return await self._client.download(str(found["file_path"]))
            except (BadRequest, LocalFileError):
                raise
            except TelegramError:
                if is_last:
                    raise
        raise AssertionError("the last try returns or raises")


def sent_files(message: Mapping[str, Any]) -> Iterator[TelegramFile]:
    """Yield what came with a message, as far as it can be fetched."""
    sizes = message.get("photo") or field(message, "live_photo", "photo")
    pictures = [each for each in sizes if string(each, "file_id")] if isinstance(sizes, list) else []
    if pictures:
        largest = max(pictures, key=lambda each: (integer(each, "width") or 0) * (integer(each, "height") or 0))
        yield TelegramFile("picture", largest["file_id"], "image/jpeg", None, integer(largest, "file_size"))
    for kind, name, mime_type in _KINDS:
        file = message.get(kind)
        file_id = string(file, "file_id")
        # An animation comes a second time, as a document.
        if file_id and not (kind == "document" and message.get("animation") is not None):
            yield TelegramFile(
                name,
                file_id,
                string(file, "mime_type") or mime_type,
                string(file, "file_name"),
                integer(file, "file_size"),
                integer(file, "duration"),
                string(file, "file_unique_id"),
            )


_KINDS = (
    ("voice", "voice message", "audio/ogg"),
    ("audio", "audio", "audio/mpeg"),
    ("video_note", "video message", "video/mp4"),
    ("video", "video", "video/mp4"),
    ("animation", "animation", "video/mp4"),
    ("document", "file", "application/octet-stream"),
)


def _size_of(file: TelegramFile) -> int:
    return file.size_bytes or TELEGRAM_FILE_BYTES
