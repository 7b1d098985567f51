"""What stands in a file, for a model that reads text and looks at pictures."""

import asyncio
import codecs
import logging
from dataclasses import dataclass
from typing import Protocol

from botservice.messages import Attachment, storable

logger = logging.getLogger(__name__)

MAX_TEXT_CHARACTERS = 20_000
_READ_SECONDS = 20.0
_TEXT_TYPES = frozenset(
    {
        "application/json",
        "application/xml",
        "application/x-yaml",
        "application/yaml",
        "application/toml",
        "application/javascript",
        "application/x-sh",
        "application/x-python",
        "application/sql",
        "application/csv",
    }
)
_TEXT_ENDINGS = (
    ".txt", ".md", ".rst", ".csv", ".tsv", ".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".log", ".xml", ".html",
    ".css", ".js", ".ts", ".tsx", ".jsx", ".py", ".rb", ".go", ".rs", ".c", ".h", ".cc", ".cpp", ".hpp", ".java", ".kt",
    ".swift", ".sh", ".sql", ".php", ".lua", ".r", ".tex", ".srt", ".vtt", ".diff", ".patch",
)  # fmt: skip
_MARKS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))


class Transcriber(Protocol):
    """Turns speech into text."""

    async def transcribe(self, attachment: Attachment) -> str:
        """Return what is said in a recording.

        Raises:
            BotServiceError: it cannot be understood.
        """


class PageReader(Protocol):
    """Reads the text of a PDF; it runs in a thread."""

    def __call__(self, data: bytes, max_characters: int) -> str:
        """Return the text on its pages.

        Raises:
            ValueError: it cannot be read.
        """


@dataclass(frozen=True, slots=True)
class Reading:
    """What this installation can read besides text: None where it cannot."""

    transcriber: Transcriber | None = None
    read_pdf: PageReader | None = None


async def read_document(attachment: Attachment, what: str, reading: Reading) -> tuple[Attachment | None, str]:
    """Return a file as the model gets it, and its text or a remark on it.

    A picture goes as it is. Of text, the words go into the message; of speech, what is said.
    """
    kind = attachment.mime_type.partition("/")[0]
    if kind == "image":
        return attachment, ""
    if kind in ("audio", "video"):
        return attachment, await _listen(attachment, what, reading.transcriber)
    if attachment.mime_type == "application/pdf" or (attachment.name or "").lower().endswith(".pdf"):
        return attachment, await _read_pages(attachment, what, reading.read_pdf)
    text = _decode(attachment) if _is_text(attachment) else None
    return attachment, _quote(what, text) if text is not None else f"[{what}]"


async def _listen(attachment: Attachment, what: str, transcriber: Transcriber | None) -> str:
    if transcriber is None:
        return f"[{what}: it cannot be listened to here]"
    try:
        async with asyncio.timeout(_READ_SECONDS * 3):
            said = await transcriber.transcribe(attachment)
    except Exception as error:  # noqa: BLE001 - a border: without the words, the message is still answered
        logger.warning("files.not_transcribed", extra={"reason": type(error).__name__})
        return f"[{what}: it could not be understood]"
    return f"[{what}, transcribed]\n{said}" if said.strip() else f"[{what}: nothing is said in it]"


async def _read_pages(attachment: Attachment, what: str, read_pdf: PageReader | None) -> str:
    if read_pdf is None or attachment.data is None:
        return f"[{what}]"
    try:
        async with asyncio.timeout(_READ_SECONDS):
            text = await asyncio.to_thread(read_pdf, attachment.data, MAX_TEXT_CHARACTERS + 1)
    except Exception as error:  # noqa: BLE001 - a border: PDFs are what anybody made
        logger.warning("files.pdf_unreadable", extra={"reason": type(error).__name__})
        return f"[{what}: its text cannot be read]"
    return _quote(what, text) if text.strip() else f"[{what}: it has no text, only pictures]"


def _quote(what: str, text: str) -> str:
    kept = storable(text[:MAX_TEXT_CHARACTERS]).strip()
    more = f"\n[it goes on; these are its first {MAX_TEXT_CHARACTERS} characters]"
    return f"[{what}]\n{kept}{more if len(text) > MAX_TEXT_CHARACTERS else ''}"


def _is_text(attachment: Attachment) -> bool:
    name = (attachment.name or "").lower()
    return (
        attachment.mime_type.startswith("text/")
        or attachment.mime_type in _TEXT_TYPES
        or attachment.mime_type.endswith(("+json", "+xml"))
        or name.endswith(_TEXT_ENDINGS)
    )


def _decode(attachment: Attachment) -> str | None:
    """Return the text of a file in whatever usual encoding it is written; None if it is no text after all."""
    data = attachment.data or b""
    encoding = next((name for mark, name in _MARKS if data.startswith(mark)), None)
    for each in (encoding,) if encoding else ("utf-8", "cp1252", "latin-1"):
        try:
            text = data.decode(each)
        except UnicodeDecodeError:
            continue
        return None if text.count("\0") > len(text) // 100 else text
    return None
