"""Reading PDFs and web pages in processes of their own: a hostile one costs its own process alone."""

import asyncio
import contextlib
import importlib.util
import json
import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Final

from botservice.agent import document_reader_program as program
from botservice.core.errors import BotServiceError

_AT_ONCE: Final = 2
_QUEUE_SECONDS: Final = 60.0
_LAST_SECONDS: Final = 1.0
_KEPT_ENVIRONMENT: Final = ("PATH", "PYTHONPATH", "PYTHONHOME", "SYSTEMROOT", "LANG", "LD_LIBRARY_PATH")
_OUR_LIMITS: Final = frozenset({"LimitReachedError", "RecursionError"})


class TooMuchToRead(BotServiceError):
    """A file takes more than reading one may take, or too many wait to be read."""

    def __init__(self, message: str, *, is_for_good: bool = True) -> None:
        super().__init__(message)
        self.is_for_good = is_for_good


@dataclass(frozen=True, slots=True)
class PageLimits:
    """What reading one file may take.

    Attributes:
        seconds: From the start of its process to its end, whatever else the machine does.
        cpu_seconds: Of work.
        stream_bytes: What one compressed part of it may become.
    """

    seconds: float = 20.0
    cpu_seconds: int = 8
    memory_bytes: int = 192 * 1024**2
    stream_bytes: int = 32 * 1024**2
    max_pages: int = 1000


class PdfReader:
    """Reads PDFs, each in a process that ends at its limits. A few are read side by side; the others wait."""

    kind: ClassVar[str] = "pdf"
    name: ClassVar[str] = "PDF"

    def __init__(self, limits: PageLimits | None = None, *, at_once: int = _AT_ONCE, is_paged: bool = False) -> None:
        """Make a reader.

        Args:
            is_paged: Whether a form feed stands after each page of a PDF.
        """
        self._limits = limits or PageLimits()
        self._slots = asyncio.Semaphore(at_once)
        self._options: dict[str, Any] = {"is_paged": is_paged}

    async def __call__(self, data: bytes, max_characters: int) -> str:
        """Return the text on a PDF's pages, up to max_characters.

        Raises:
            ValueError: it is damaged, locked, or nothing of the kind.
            TooMuchToRead: it takes too much, or too many wait before it.
        """
        return await self._read(data, max_characters, self._options)

    async def _read(self, data: bytes, max_characters: int, options: Mapping[str, Any]) -> str:
        try:
            async with asyncio.timeout(_QUEUE_SECONDS):
                await self._slots.acquire()
        except TimeoutError:
            raise TooMuchToRead("too many files wait to be read", is_for_good=False) from None
        try:
            found = await self._run(data, {"max_characters": max_characters, **options})
        finally:
            self._slots.release()
        if found.startswith(program.READ):
            return found[1:].decode("utf-8", "replace")[:max_characters]
        reason = found[1:100].decode("utf-8", "replace")
        if not found.startswith(program.REFUSED) or reason in _OUR_LIMITS:
            raise TooMuchToRead(f"reading it was cut off: {reason or 'it took too much'}")
        raise ValueError(f"the {self.name} cannot be read: {reason}")

    async def _run(self, data: bytes, options: Mapping[str, Any]) -> bytes:
        """Return what a process of its own says of a file, or nothing if it was cut off."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-P",  # nothing next to this program, and nothing in the current folder, takes a library's place
            "-Wignore",
            program.__file__,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=_environment(),
        )
        limits = {**asdict(self._limits), "kind": self.kind, "size_bytes": len(data), **options}
        try:
            async with asyncio.timeout(self._limits.seconds):
                return await _converse(
                    process, json.dumps(limits).encode() + b"\n", data, 4 * options["max_characters"] + 1
                )
        except TimeoutError:
            return b""
        finally:
            await asyncio.shield(_end(process))


class HtmlReader(PdfReader):
    """Reads web pages, given as their address, a line's end, and the page in UTF-8: first its title, then its text."""

    kind, name = "html", "page"

    def __init__(self, limits: PageLimits | None = None, *, at_once: int = _AT_ONCE) -> None:
        super().__init__(limits or PageLimits(seconds=10.0, cpu_seconds=4), at_once=at_once)


class OfficeReader(PdfReader):
    """Reads office documents, books, letters and saved web pages as Markdown, with headings and tables."""

    kind, name = "office", "document"
    MIME_TYPES: ClassVar[Mapping[str, str]] = {
        ".docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
        ".xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        ".pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        ".docm": "application/vnd.ms-word.document.macroEnabled.12",
        ".xlsm": "application/vnd.ms-excel.sheet.macroEnabled.12",
        ".pptm": "application/vnd.ms-powerpoint.presentation.macroEnabled.12",
        ".odt": "application/vnd.oasis.opendocument.text",
        ".ods": "application/vnd.oasis.opendocument.spreadsheet",
        ".epub": "application/epub+zip",
        ".rtf": "application/rtf",
        ".eml": "message/rfc822",
        ".html": "text/html",
        ".htm": "text/html",
        ".csv": "text/csv",
    }
    """What it reads, by the ending of a file's name."""

    @staticmethod
    def is_installed() -> bool:
        """Return whether the library is there that reads them: `botservice[documents]`."""
        return importlib.util.find_spec("kreuzberg") is not None

    async def read(self, data: bytes, ending: str, max_characters: int) -> str:
        """Return a document as Markdown, up to max_characters.

        Args:
            ending: One of MIME_TYPES, such as ".docx".

        Raises:
            ValueError: it is damaged, locked, or of another kind.
            TooMuchToRead: it takes too much, or too many wait before it.
        """
        return await self._read(data, max_characters, {"mime_type": self.MIME_TYPES[ending]})


async def _converse(process: asyncio.subprocess.Process, head: bytes, data: bytes, max_bytes: int) -> bytes:
    """Give a process what it reads, and return what it says; its stdin stays open, so that it knows we live."""
    assert process.stdin is not None, "it is piped"  # noqa: S101 - an invariant
    assert process.stdout is not None, "it is piped"  # noqa: S101 - an invariant
    with contextlib.suppress(ConnectionError):  # it has ended already; what it said before counts
        process.stdin.writelines([head, data])
        await process.stdin.drain()
    found = bytearray()
    while len(found) <= max_bytes and (piece := await process.stdout.read(65_536)):
        found += piece
    return bytes(found)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a process, if it has not ended yet, and return when it has."""
    if process.stdin is not None:
        process.stdin.close()
    with contextlib.suppress(TimeoutError):  # one that is done ends by itself now
        async with asyncio.timeout(_LAST_SECONDS):
            await process.wait()
            return
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, getattr(signal, "SIGKILL", signal.SIGTERM))
    await process.wait()


def _environment() -> dict[str, str]:
    """Return what a reader needs to start, and none of the service's secrets."""
    kept = {name: os.environ[name] for name in _KEPT_ENVIRONMENT if name in os.environ}
    return {**kept, "MALLOC_ARENA_MAX": "1", "PYTHONDONTWRITEBYTECODE": "1"}
