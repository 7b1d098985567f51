"""The files of a message: as the page posts them, as a model reads them, and as the page shows them."""

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from starlette.exceptions import HTTPException

from botservice.core.messages import Attachment, InboundMessage
from botservice.core.quoting import in_one_line, quote_name
from botservice.storage.database import Storage
from botservice.turns.turn import StoredEvent
from transports.common.documents import DocumentReaders, ExtractionAttempt, FetchedFile, read_document, read_files
from transports.common.requests import parse_text

BROWSER_FILES: Final = 10
BROWSER_FILES_BYTES: Final = 10_000_000  # of all files of a message together
MAX_FILE_NAME: Final = 200

_UNKNOWN: Final = "application/octet-stream"
_LONGEST_TYPE: Final = 127  # characters of a media type's name, twice (RFC 6838, 4.2)
# How pictures begin that models and browsers show; whatever else calls itself a picture is a file.
_IMAGE_STARTS: Final = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}
_KINDS: Final = {"image": "picture", "audio": "audio", "video": "video"}


def parse_files(fields: Mapping[str, Any]) -> tuple[Attachment, ...]:
    """Return the files in a post."""
    files = [_file(each) for each in _list_files(fields)]
    if sum(len(each.data or b"") for each in files) > BROWSER_FILES_BYTES:
        raise HTTPException(413, f"Files may have {BROWSER_FILES_BYTES // 1_000_000} MB together.")
    return tuple(files)


def label_of(mime_type: str, name: str | None) -> str:
    """Return the label of a file in a text for a model."""
    kind = _KINDS.get(mime_type.partition("/")[0], "file")
    return f"{kind}, {quote_name(name)}" if name else kind


def without_contents(text: str, files: Iterable[Mapping[str, Any]]) -> str:
    """Return what a person wrote, without the contents of the files, which are shown by themselves."""
    ends = [len(text)]
    for each in files:
        mark = f"[{label_of(each['mime_type'], each.get('name'))}"
        at = 0 if text.startswith(mark) else text.find(f"\n{mark}")
        ends += [at] if at >= 0 else []
    return text[: min(ends)]


@dataclass(frozen=True, slots=True)
class Documents:
    """Reads what stands in files, for models."""

    reading: DocumentReaders = field(default_factory=DocumentReaders)
    storage: Callable[[], Storage | None] = lambda: None

    async def read(self, message: InboundMessage, event: StoredEvent) -> InboundMessage:
        """Return a message with what stands in its files."""

        async def read(numbered: tuple[int, Attachment], attempt: ExtractionAttempt) -> FetchedFile:
            index, file = numbered
            label, key = label_of(file.mime_type, file.name), ("web", f"{event.key}:{index}")
            return await read_document(file, label, self.reading, key=key, attempt=attempt)

        files, storage = enumerate(message.attachments), self.storage()
        fetched = await read_files(files, read, lambda each: len(each[1].data or b""), self.reading, storage, event.id)
        return _with_texts(message, fetched.remarks, fetched.unread)

    def name(self, message: InboundMessage) -> InboundMessage:
        """Return a message whose files are named and not read."""
        files = [each for each in message.attachments if each.mime_type not in _IMAGE_STARTS]
        remarks = [f"[{label_of(each.mime_type, each.name)}]" for each in files]
        return replace(_with_texts(message, remarks, ()), is_whole=not remarks)


def _with_texts(message: InboundMessage, remarks: Sequence[str], unread: Sequence[str]) -> InboundMessage:
    said = "\n".join(part for part in (message.text, *remarks) if part)
    own = message.own_text if said == message.text else message.text if message.own_text is None else message.own_text
    return replace(message, text=said, own_text=own, unread=tuple(unread), is_whole=True)


def _list_files(fields: Mapping[str, Any]) -> list[Any]:
    value = fields.get("files") or []
    if not isinstance(value, list):
        raise HTTPException(400, '"files" must be a list.')
    if len(value) > BROWSER_FILES:
        raise HTTPException(413, f"At most {BROWSER_FILES} files can be sent at once.")
    return value


def _file(value: Any) -> Attachment:
    fields = value if isinstance(value, dict) else {}
    encoded, mime_type = parse_text(fields, "data"), parse_text(fields, "mime_type") or ""
    try:
        data = base64.b64decode(encoded or "", validate=True)
    except (binascii.Error, ValueError):
        raise HTTPException(400, '"data" of a file must be base64.') from None
    starts = _IMAGE_STARTS.get(mime_type, ())
    is_shown = bool(starts) and data.startswith(starts)
    name = in_one_line(parse_text(fields, "name") or "")[:MAX_FILE_NAME] or None
    if not data:
        raise HTTPException(400, f"{name or 'A file'} is empty.")
    return Attachment(mime_type if is_shown else _type_of_file(mime_type), name, data=data)


def _type_of_file(mime_type: str) -> str:
    """Return what a file is, as its sender says: never a picture, for it does not begin as those that are shown."""
    kind, _, rest = mime_type.partition(";")[0].strip().lower().partition("/")
    if not (kind.isascii() and kind.isalnum() and rest.isascii() and 0 < len(rest) <= _LONGEST_TYPE):
        return _UNKNOWN
    if not all(each.isalnum() or each in "!#$&-^_.+" for each in rest):
        return _UNKNOWN
    if kind == "image":
        return "application/xml" if rest.endswith("+xml") else _UNKNOWN
    return f"{kind}/{rest}"
