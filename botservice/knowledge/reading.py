"""Reading the text of a document, whatever its format, within limits."""

from pathlib import PurePath
from typing import Final

from botservice.agent.document_reader import OfficeReader, PageLimits, PdfReader, TooMuchToRead
from botservice.agent.text_encodings import decode
from botservice.core.errors import KnowledgeError

MOST_BYTES: Final = 50 * 1024**2
_MOST_CHARACTERS: Final = 4_000_000
_LIMITS: Final = PageLimits(
    seconds=120.0, cpu_seconds=60, memory_bytes=512 * 1024**2, stream_bytes=128 * 1024**2, max_pages=10_000
)
_TEXT_ENDINGS: Final = frozenset({".md", ".markdown", ".txt", ".rst", ".text"})
_SAVE_AS: Final = {".doc": ".docx", ".xls": ".xlsx", ".ppt": ".pptx", ".odp": ".pptx"}
_READ: Final = frozenset({".pdf", *_TEXT_ENDINGS, *OfficeReader.MIME_TYPES})
ENDINGS: Final = _READ.union(_SAVE_AS)
"""The endings of files that are documents; those that cannot be read are refused by name."""


class DocumentReader:
    """Reads documents as text, or as Markdown with headings and tables; pages of a PDF end with a form feed."""

    def __init__(self) -> None:
        self._pdf = PdfReader(_LIMITS, is_paged=True)
        self._office = OfficeReader(_LIMITS)

    async def read(self, name: str, data: bytes) -> str:
        """Return the text of a document.

        Args:
            name: Its file name; the ending says what it is.

        Raises:
            KnowledgeError: it cannot be read; the message says why.
        """
        ending = PurePath(name).suffix.lower()
        if ending in _SAVE_AS:
            raise KnowledgeError(f"{ending} is not read: save it as {_SAVE_AS[ending]}")
        if ending not in _READ:
            raise KnowledgeError(f"{ending or 'a file without an ending'} is no document: {', '.join(sorted(_READ))}")
        if len(data) > MOST_BYTES:
            raise KnowledgeError(f"it has more than {MOST_BYTES // 1024**2} MB: divide the document")
        try:
            text = await self._read(ending, data)
        except TooMuchToRead as error:
            raise KnowledgeError(f"{error}: divide the document") from None
        except ValueError as error:
            raise KnowledgeError(f"{error}: it is damaged, locked, or larger than it says") from None
        if not text.strip():
            raise KnowledgeError("it has no text: if it is scanned, run it through text recognition first")
        return text

    async def _read(self, ending: str, data: bytes) -> str:
        if ending == ".pdf":
            return await self._pdf(data, _MOST_CHARACTERS)
        if ending in OfficeReader.MIME_TYPES:
            if not OfficeReader.is_installed():
                raise KnowledgeError(f'{ending} needs a package: pip install "botservice[documents]"')
            return await self._office.read(data, ending, _MOST_CHARACTERS)
        found = decode(data)
        if found is None:
            raise KnowledgeError("it is no text, whatever its name says")
        return found[0][:_MOST_CHARACTERS]
