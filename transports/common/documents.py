"""What stands in a file, for a model that reads text and looks at pictures; what was read lately is not read again."""

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol, Self, TypeVar
from weakref import WeakValueDictionary

from cachetools import TTLCache

from botservice.agent.document_reader import OfficeReader, PdfReader, TooMuchToRead
from botservice.agent.text_encodings import decode
from botservice.config.settings import Settings
from botservice.core.messages import Attachment, storable
from botservice.core.quoting import quote_name
from botservice.storage.database import Storage
from botservice.turns.event_queries import begin_reading, end_reading

FileKey = tuple[str, str]
"""A platform, and its own name of a file."""

_MAX_CHARACTERS = 2_000_000
_KEPT_SECONDS = 3600.0


@dataclass(frozen=True, slots=True)
class FileText:
    """What a message says of one of its files.

    Attributes:
        text: For the model.
        unread: What the file is called, where the person is to be told that it was not read.
        is_for_good: Whether reading it again would give the same.
    """

    text: str
    unread: str | None = None
    is_for_good: bool = True


class KeptTexts:
    """Keeps what was read for an hour, in memory alone; two who need the same file read it once."""

    def __init__(self, *, max_characters: int = _MAX_CHARACTERS, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept: TTLCache[FileKey, FileText] = TTLCache(
            max_characters, _KEPT_SECONDS, clock, lambda known: len(known.text)
        )
        self._locks: WeakValueDictionary[FileKey, asyncio.Lock] = WeakValueDictionary()

    async def once(self, key: FileKey | None, read: Callable[[], Awaitable[FileText]]) -> FileText:
        """Return what is known of a file, or what read returns; without a key, it is always read."""
        if key is None:
            return await read()
        lock = self._locks.setdefault(key, asyncio.Lock())
        async with lock:
            known = self._kept.get(key)
            if known is None:
                known = await read()
                if known.is_for_good and len(known.text) <= self._kept.maxsize:
                    self._kept[key] = known
            return known


logger = logging.getLogger(__name__)

_MAX_BYTES = 64 * 1024 * 1024

MAX_TEXT_CHARACTERS = 20_000
_READ_SECONDS = 20.0
_TOO_MUCH: Final = "it was not read, because reading it takes too much"
_READ_AS_TEXT = frozenset({".csv", ".html", ".htm"})
_TEXT_TYPES = frozenset(
    f"application/{kind}"
    for kind in ("json", "xml", "x-yaml", "yaml", "toml", "javascript", "x-sh", "x-python", "sql", "csv")
)
_TEXT_ENDINGS = (
    ".txt", ".md", ".rst", ".csv", ".tsv", ".json", ".yaml", ".yml", ".toml", ".ini", ".cfg", ".log", ".xml", ".html",
    ".css", ".js", ".ts", ".tsx", ".jsx", ".py", ".rb", ".go", ".rs", ".c", ".h", ".cc", ".cpp", ".hpp", ".java", ".kt",
    ".swift", ".sh", ".sql", ".php", ".lua", ".r", ".tex", ".srt", ".vtt", ".diff", ".patch",
)  # fmt: skip


class ExtractionAttempt:
    """The reading of one event's files, as a context manager: only the process's own end leaves it without an end."""

    def __init__(self, storage: Storage | None, event_id: int) -> None:
        self._storage = storage
        self._event_id = event_id
        self._may_read: bool | None = None

    async def begin(self) -> bool:
        """Return whether the event's files may be read; that they are is stored when this returns."""
        if self._storage is None:
            return True
        if self._may_read is None:
            self._may_read = await begin_reading(self._storage, self._event_id)
        return self._may_read

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._may_read and self._storage is not None:
            await asyncio.shield(end_reading(self._storage, self._event_id))


class MemoryLimit:
    """A limit of so many bytes; those who need more than is free wait, in the order of coming."""

    def __init__(self, max_bytes: int = _MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._free = max_bytes
        self._first = asyncio.Lock()  # held by who waits for room; the others wait for it, in the order of coming
        self._given_back = asyncio.Event()

    @contextlib.asynccontextmanager
    async def taking(self, size_bytes: int) -> AsyncIterator[None]:
        """Hold so many bytes while a block runs; more than there is counts as all."""
        size = min(size_bytes, self._max_bytes)
        async with self._first:
            while size > self._free:
                self._given_back.clear()
                await self._given_back.wait()
            self._free -= size
        try:
            yield
        finally:
            self._free += size
            self._given_back.set()


class Transcriber(Protocol):
    """Turns speech into text."""

    async def transcribe(self, attachment: Attachment) -> str:
        """Return what is said in a recording."""


ReadPages = Callable[[bytes, int], Awaitable[str]]
"""Returns the text on a PDF's pages, up to so many characters; ValueError: it is damaged or locked. TooMuchToRead."""


@dataclass(frozen=True, slots=True)
class DocumentReaders:
    """What this installation can read besides text: None if it cannot."""

    transcriber: Transcriber | None = None
    read_pdf: ReadPages | None = None
    office: OfficeReader | None = None
    kept: KeptTexts = field(default_factory=KeptTexts)
    memory_limit: MemoryLimit = field(default_factory=MemoryLimit)

    @classmethod
    def of_installation(cls, transcriber: Transcriber | None = None) -> Self:
        """Return readers of everything for which the packages are installed."""
        return cls(transcriber, PdfReader(), OfficeReader() if OfficeReader.is_installed() else None)


@dataclass(slots=True)
class ExtractedFiles:
    """Files, and in words what is in them or why they are not there.

    Attributes:
        unread: What those are called of which the person is to be told that they were not read.
    """

    attachments: list[Attachment] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def add(self, attachment: Attachment | None, said: FileText) -> None:
        """Take one more file, with what is said of it."""
        if attachment is not None:
            self.attachments.append(attachment)
        if said.text:
            self.remarks.append(said.text)
        if said.unread is not None:
            self.unread.append(said.unread)


FetchedFile = tuple[Attachment | None, FileText]


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file that came with a message, not fetched yet.

    Attributes:
        id: By which the platform gives it out.
        size_bytes: As the platform says, or None if it does not.
    """

    kind: str
    id: str | None
    mime_type: str
    name: str | None = None
    size_bytes: int | None = None
    duration_seconds: int | None = None

    def __str__(self) -> str:
        """Return what a model is told of it, such as 'voice message, 5 s, 2.0 MB'."""
        duration = "" if self.duration_seconds is None else f"{self.duration_seconds} s"
        size = f"{self.size_bytes / 1024**2:.1f} MB" if self.size_bytes and self.size_bytes >= 1024**2 else ""
        return ", ".join(fact for fact in (self.kind, self.name and quote_name(self.name), duration, size) if fact)

    def refused(self, why: str) -> FetchedFile:
        """Return it with the reason why it is not there."""
        return None, FileText(f"[{self}: {why}]")


File = TypeVar("File")


async def read_files(
    files: Iterable[File],
    read: Callable[[File, ExtractionAttempt], Awaitable[FetchedFile]],
    size_of: Callable[[File], int],
    reading: DocumentReaders,
    storage: Storage | None,
    event_id: int,
) -> ExtractedFiles:
    """Return the files of an event, and in words what is in them or why they are not there.

    Args:
        read: Fetches and reads one of them.
        size_of: Returns how many bytes one takes at most.
    """
    fetched = ExtractedFiles()
    async with ExtractionAttempt(storage, event_id) as attempt:
        for file in files:
            async with reading.memory_limit.taking(size_of(file)):
                fetched.add(*await read(file, attempt))
    return fetched


async def read_document(
    attachment: Attachment,
    what: str,
    reading: DocumentReaders,
    *,
    key: FileKey | None = None,
    attempt: ExtractionAttempt | None = None,
) -> FetchedFile:
    """Return a file as the model gets it, and its text or a remark on it.

    A picture goes as it is. Of text, the words go into the message; of speech, what is said.

    Args:
        key: The platform's own name of the file: what was read under it is not read again.
        attempt: Says whether reading it has ended a process before.
    """
    kind = attachment.mime_type.partition("/")[0]
    if kind == "image":
        return attachment, FileText("")
    if kind in ("audio", "video"):
        return attachment, await reading.kept.once(key, partial(_listen, attachment, what, reading.transcriber))
    if attachment.mime_type == "application/pdf" or (attachment.name or "").lower().endswith(".pdf"):
        return attachment, await reading.kept.once(
            key, partial(_read_pages, attachment, what, reading.read_pdf, attempt)
        )
    if (ending := _office_ending(attachment)) is not None:
        read = None if reading.office is None else partial(_read_office, reading.office, ending)
        return attachment, await reading.kept.once(key, partial(_read_pages, attachment, what, read, attempt))
    found = decode(attachment.data or b"") if _is_text(attachment) else None
    if found is None:
        return attachment, FileText(f"[{what}]")
    text, guessed = found
    doubt = "" if guessed is None else f", read as {guessed}, which is a guess: letters may be wrong"
    return attachment, FileText(_quote(f"{what}{doubt}", text))


async def _listen(attachment: Attachment, what: str, transcriber: Transcriber | None) -> FileText:
    if transcriber is None:
        return FileText(f"[{what}: it cannot be listened to here]")
    try:
        async with asyncio.timeout(_READ_SECONDS * 3):
            said = await transcriber.transcribe(attachment)
    except Exception as error:  # noqa: BLE001 - a border: without the words, the message is still answered
        logger.warning("files.not_transcribed", extra={"reason": type(error).__name__})
        return FileText(f"[{what}: it could not be understood]", is_for_good=False)
    return FileText(f"[{what}, transcribed]\n{said}" if said.strip() else f"[{what}: nothing is said in it]")


async def _read_pages(
    attachment: Attachment, what: str, read: ReadPages | None, attempt: ExtractionAttempt | None
) -> FileText:
    if read is None or attachment.data is None:
        return FileText(f"[{what}]")
    if attempt is not None and not await attempt.begin():
        logger.warning("files.document_left", extra={"advice": "a process ended while it read this file"})
        return FileText(f"[{what}: {_TOO_MUCH}]", unread=attachment.name or what)
    try:
        text = await read(attachment.data, MAX_TEXT_CHARACTERS + 1)
    except TooMuchToRead as error:
        logger.warning("files.document_too_much", extra={"reason": str(error)})
        return FileText(f"[{what}: {_TOO_MUCH}]", unread=attachment.name or what, is_for_good=error.is_for_good)
    except Exception as error:  # noqa: BLE001 - a boundary: anybody may have made the file
        logger.warning("files.document_unreadable", extra={"reason": type(error).__name__})
        return FileText(f"[{what}: its text cannot be read]")
    return FileText(_quote(what, text) if text.strip() else f"[{what}: it has no text, only pictures]")


async def _read_office(office: OfficeReader, ending: str, data: bytes, max_characters: int) -> str:
    return await office.read(data, ending, max_characters)


def _office_ending(attachment: Attachment) -> str | None:
    """Return the ending of an office document's name, or of its kind; None for other files, and for plain text."""
    name = (attachment.name or "").lower()
    for ending, mime_type in OfficeReader.MIME_TYPES.items():
        if attachment.mime_type == mime_type or name.endswith(ending):
            return None if ending in _READ_AS_TEXT else ending
    return None


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


def build_reading(settings: Settings) -> DocumentReaders:
    """Return what can be read of the files that people send; speech only where a model for it is set."""
    from botservice.factories import build_transcriber

    return DocumentReaders.of_installation(build_transcriber(settings))
