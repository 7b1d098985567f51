"""Adding documents and keeping them up to date: what is new is read, what is gone is deleted, the rest stays."""

import asyncio
import hashlib
import json
import logging
import os
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, Final

from botservice.agent.fetch_page import PageReader
from botservice.agent.page_addresses import PageAddress
from botservice.core.chat_addresses import CHAT_FORMS, ChatAddress
from botservice.core.errors import BotServiceError, KnowledgeError, LLMError, PageRefused
from botservice.history.embeddings import Embedder
from botservice.history.vectors import as_unit_rows
from botservice.knowledge.passages import split_document
from botservice.knowledge.queries import (
    KnowledgeSource,
    StoredDocument,
    count_source,
    delete_documents,
    delete_source,
    list_documents,
    list_sources,
    list_without_vector,
    note_read,
    note_stamp,
    put_document,
    put_source,
    put_vectors,
)
from botservice.knowledge.reading import ENDINGS, MOST_BYTES, DocumentReader
from botservice.storage.database import Storage

logger = logging.getLogger(__name__)

ALL: Final = "all"
SENT: Final = "chat"  # the location of a file that was sent to the bot
READERS_FILE: Final = "knowledge.json"
_MOST_FILES: Final = 20_000
_BATCH: Final = 64  # texts that are embedded at once
_FORMAT: Final = b"1"  # of how passages are cut: another one reads every document again


@dataclass(slots=True)
class ReadingReport:
    """What one reading of a source has found.

    Attributes:
        problems: Documents that could not be read, with the reason.
    """

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    problems: list[tuple[str, str]] = field(default_factory=list)

    @property
    def has_changed(self) -> bool:
        """Whether anything that is stored is other than before."""
        return bool(self.added or self.changed or self.removed)


@dataclass(frozen=True, slots=True)
class _File:
    path: str
    stamp: str
    where: Path


def parse_readers(given: Sequence[str] | str) -> tuple[str, ...]:
    """Read who may read a source: "all", or chats; nothing for owners alone.

    Raises:
        KnowledgeError: a chat is named in no known form.
    """
    names = [part.strip() for part in (given.split(",") if isinstance(given, str) else given)]
    names = [name for name in names if name]
    for name in names:
        if name != ALL:
            try:
                ChatAddress.parse(name)
            except ValueError:
                raise KnowledgeError(f"{name!r} is no chat: write {ALL}, or {CHAT_FORMS}") from None
    return (ALL,) if ALL in names else tuple(dict.fromkeys(names))


class KnowledgeIndexer:
    """Reads sources into the database."""

    def __init__(
        self,
        storage: Storage,
        embedder: Embedder | None = None,
        *,
        reader: DocumentReader | None = None,
        pages: PageReader | None = None,
    ) -> None:
        """Make an indexer.

        Args:
            embedder: What gives passages their meaning; without one they are found by their words.
            pages: What reads web pages.
        """
        self._storage = storage
        self._embedder = embedder
        self._reader = reader or DocumentReader()
        self._pages = pages or PageReader()

    async def add(
        self, location: str, *, name: str | None = None, readers: Collection[str] = ()
    ) -> tuple[KnowledgeSource, ReadingReport]:
        """Add a folder, a file or a web page, and read it. One that is known is read again.

        Args:
            name: What it is called in `list`, and in answers; by default the name of the folder or file.
            readers: Who may read it, as `parse_readers` returns it.

        Raises:
            KnowledgeError: there is no such file, the name is taken, or a file or page cannot be read.
        """
        where, default = _locate(location)
        now = self._storage.now()
        known = await self._storage.read(list_sources)
        before = next((each for each in known if each.name == (name or default)), None)
        source = await self._storage.write(lambda c: put_source(c, name or default, where, tuple(readers), now))
        report = await self.refresh(source)
        if before is None and report.problems and await asyncio.to_thread(Path(where).is_file):
            await self._storage.write(lambda c: delete_source(c, source.name))
            raise KnowledgeError(f"{location}: {report.problems[0][1]}")
        return source, report

    async def add_file(self, name: str, data: bytes, readers: Collection[str]) -> int:
        """Add a file that is nowhere on this machine, and return how many passages it has.

        Args:
            name: Its file name, which names the source: the same name again takes its place.

        Raises:
            KnowledgeError: it cannot be read, or a source of another kind has the name.
        """
        text = await self._reader.read(name, data)
        now = self._storage.now()
        source = await self._storage.write(lambda c: put_source(c, name, SENT, tuple(readers), now))
        digest = hashlib.blake2b(_FORMAT + data, digest_size=16).digest()
        await self._store(source, name, digest.hex(), digest, (text, None))
        await self._storage.write(lambda c: note_read(c, source.id, now))
        return (await self._storage.read(lambda c: count_source(c, source.id))).passages

    async def refresh(self, source: KnowledgeSource) -> ReadingReport:
        """Read again what has changed of a source. One that is missing or empty keeps what it had.

        Raises:
            KnowledgeError: its folder is missing or empty, or its page cannot be read.
        """
        if _is_address(source.location):
            return await self._refresh_page(source)
        if source.location == SENT:
            return ReadingReport(unchanged=1)
        path = Path(source.location)
        found = await asyncio.to_thread(_list_files, path)
        if not found:
            raise KnowledgeError(f"{source.name}: {path} is missing or has no documents; what was read of it is kept")
        report = ReadingReport()
        known = {each.path: each for each in await self._storage.read(lambda c: list_documents(c, source.id))}
        for file in found:
            await self._take(source, file, known.pop(file.path, None), report)
        if known:
            gone = [each.id for each in known.values()]
            await self._storage.write(lambda c: delete_documents(c, source.id, gone))
            report.removed = len(gone)
        await self._storage.write(lambda c: note_read(c, source.id, self._storage.now()))
        return report

    async def _take(
        self, source: KnowledgeSource, file: _File, known: StoredDocument | None, report: ReadingReport
    ) -> None:
        if known is not None and known.stamp == file.stamp:
            report.unchanged += 1
            if known.problem:
                report.problems.append((file.path, known.problem))
            return
        data = await asyncio.to_thread(_read_bytes, file.where)
        digest = hashlib.blake2b(_FORMAT + data, digest_size=16).digest()
        if known is not None and known.digest == digest and not known.problem:
            await self._storage.write(lambda c: note_stamp(c, known.id, file.stamp))
            report.unchanged += 1
            return
        read = await self._read(file.path, data, report)
        await self._store(source, file.path, file.stamp, digest, read)
        if read[1] is None:
            report.added += known is None
            report.changed += known is not None

    async def _read(self, path: str, data: bytes, report: ReadingReport) -> tuple[str, str | None]:
        """Return the text of a document, or why it cannot be read."""
        try:
            return await self._reader.read(path, data), None
        except KnowledgeError as error:
            report.problems.append((path, str(error)))
            return "", str(error)

    async def _store(
        self,
        source: KnowledgeSource,
        path: str,
        stamp: str,
        digest: bytes,
        read: tuple[str, str | None],
        title: str = "",
    ) -> None:
        text, problem = read
        heading, found = await asyncio.to_thread(split_document, text)
        name = title or heading or PurePath(path).stem.replace("_", " ")
        await self._storage.write(
            lambda c: put_document(
                c, source.id, path, title=name, stamp=stamp, digest=digest, found=found, problem=problem
            )
        )

    async def _refresh_page(self, source: KnowledgeSource) -> ReadingReport:
        address = source.location
        try:
            page = await self._pages.read(PageAddress.read(address))
        except (PageRefused, ValueError) as error:
            raise KnowledgeError(f"{source.name}: {address}: {error}; what was read of it is kept") from None
        digest = hashlib.blake2b(_FORMAT + page.text.encode("utf-8", "replace"), digest_size=16).digest()
        known = {each.path: each for each in await self._storage.read(lambda c: list_documents(c, source.id))}
        before = known.get(address)
        await self._storage.write(lambda c: note_read(c, source.id, self._storage.now()))
        if before is not None and before.digest == digest:
            return ReadingReport(unchanged=1)
        await self._store(source, address, digest.hex(), digest, (page.text, None), page.title)
        return ReadingReport(added=int(before is None), changed=int(before is not None))

    async def has_work(self) -> bool:
        """Return whether any passage has to be embedded."""
        if self._embedder is None:
            return False
        model = self._embedder.model_key
        return bool(await self._storage.read(lambda c: list_without_vector(c, model, 1), is_short=True))

    async def embed(self) -> int:
        """Give every passage without a vector one; return how many got theirs.

        Raises:
            LLMError: the model did not answer; stored vectors are kept.
        """
        if self._embedder is None:
            return 0
        model, count = self._embedder.model_key, 0
        while batch := await self._storage.read(lambda c: list_without_vector(c, model, _BATCH)):
            try:
                rows = as_unit_rows(
                    await self._embedder.embed_documents(
                        [f"{each.title}\n{each.heading}\n{each.text}" for each in batch]
                    ),
                    len(batch),
                )
            except BotServiceError:
                raise
            except Exception as error:  # a boundary: an embedder is foreign code
                raise LLMError(f"the passages were not embedded: {type(error).__name__}") from error
            vectors = [(each.id, row.tobytes()) for each, row in zip(batch, rows, strict=True)]
            await self._storage.write(lambda c, vectors=vectors: put_vectors(c, model, vectors))  # type: ignore[misc]
            count += len(batch)
        return count


def _is_address(location: str) -> bool:
    return location.startswith(("http://", "https://"))


def _locate(location: str) -> tuple[str, str]:
    """Return where a source is, and what it is called by default.

    Raises:
        KnowledgeError: there is nothing.
    """
    if _is_address(location):
        try:
            return location, PageAddress.read(location).host
        except (PageRefused, ValueError) as error:
            raise KnowledgeError(f"{location}: {error}") from None
    path = Path(location).expanduser()
    if not path.exists():
        raise KnowledgeError(f"there is no file or folder {location}")
    path = path.resolve()
    return str(path), path.stem if path.is_file() else path.name


def read_readers_file(folder: Path) -> dict[str, Any]:
    """Return what a folder's knowledge.json says: {"for": ["all"], "name": "handbook"}; nothing where there is none.

    Raises:
        KnowledgeError: it is no JSON object, or names something else.
    """
    path = folder / READERS_FILE
    try:
        given = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise KnowledgeError(f"{path}: {error}") from None
    if not isinstance(given, dict) or not given.keys() <= {"for", "name"}:
        raise KnowledgeError(f'{path}: it must be an object such as {{"for": ["all"], "name": "handbook"}}')
    readers, name = given.get("for", []), given.get("name")
    if not isinstance(readers, list) or not all(isinstance(each, str) for each in readers):
        raise KnowledgeError(f'{path}: "for" must be a list of chats, such as ["telegram:-100123"]')
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise KnowledgeError(f'{path}: "name" must be a text')
    return {"readers": parse_readers(readers), "name": name}


def _list_files(path: Path) -> list[_File]:
    """Return the documents below a folder, or a file itself; hidden files and links are left out."""
    if path.is_file():
        return [_described(path, path.name)]
    found = list(_walk(path))
    if len(found) > _MOST_FILES:
        raise KnowledgeError(f"{path} has more than {_MOST_FILES:,} documents: add its folders one by one")
    return found


def _walk(folder: Path) -> Iterator[_File]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for name in sorted(names):
            path = Path(root) / name
            is_document = path.suffix.lower() in ENDINGS and not name.startswith((".", "~$"))
            if is_document and not path.is_symlink() and path.is_file():
                yield _described(path, path.relative_to(folder).as_posix())


def _described(path: Path, name: str) -> _File:
    state = path.stat()
    return _File(name, f"{state.st_size}:{state.st_mtime_ns}", path)


def _read_bytes(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(MOST_BYTES + 1)
