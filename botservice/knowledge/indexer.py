"""Adding documents and keeping them up to date: what is new is read, what is gone is deleted, the rest stays."""

import asyncio
import json
import logging
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any, Final

from botservice.agent.fetch_page_tool import PageReader
from botservice.agent.page_addresses import PageAddress
from botservice.core.chat_addresses import CHAT_FORMS, ChatAddress
from botservice.core.errors import BotServiceError, KnowledgeError, LLMError, PageRefused
from botservice.core.messages import storable
from botservice.core.quoting import in_one_line
from botservice.history.embeddings import Embedder
from botservice.knowledge.files import File, digest_of, list_files, read_bytes
from botservice.knowledge.passages import Passage, short_heading, split_document
from botservice.knowledge.queries import (
    SENT,
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
from botservice.knowledge.reading import DocumentReader
from botservice.storage.database import Storage

logger = logging.getLogger(__name__)

ALL: Final = "all"
READERS_FILE: Final = "knowledge.json"
_BATCH: Final = 64  # texts that are embedded at once
_LONGEST_NAME: Final = 200


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
                ChatAddress.parse(name if name.isprintable() else "")
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
            KnowledgeError: there is no such file, the folder has no documents, the name is taken, or a file or page
                cannot be read.
        """
        where, default = _locate(location)
        called = _source_name(name or default)
        found = None if _is_address(where) else await list_files(called, where)
        source, is_new = await self._put(called, where, readers)
        try:
            report = await (self._refresh_page(source) if found is None else self._refresh_files(source, found))
        except KnowledgeError:
            if is_new:
                await self._storage.write(lambda c: delete_source(c, called))
            raise
        if is_new and report.problems and await asyncio.to_thread(Path(where).is_file):
            await self._storage.write(lambda c: delete_source(c, called))
            raise KnowledgeError(f"{location}: {report.problems[0][1]}")
        return await self._open(source, readers), report

    async def _put(self, name: str, location: str, readers: Collection[str]) -> tuple[KnowledgeSource, bool]:
        """Store a source, and whether it is new, for those of its readers who could read it before.

        What it had may be private, until it is read again.
        """
        known = await self._storage.read(list_sources)
        same = (each for each in known if each.name == name or each.location == location != SENT)
        before = next(same, None)
        first = tuple(readers) if before is None else _who_may_read_both(before.readers, tuple(readers))
        now = self._storage.now()
        return await self._storage.write(lambda c: put_source(c, name, location, first, now)), before is None

    async def _open(self, source: KnowledgeSource, readers: Collection[str]) -> KnowledgeSource:
        """Let all of its readers read a source, now that it is read."""
        if source.readers == tuple(readers):
            return source
        now = self._storage.now()
        return await self._storage.write(lambda c: put_source(c, source.name, source.location, readers, now))

    async def add_file(self, name: str, data: bytes, readers: Collection[str]) -> int:
        """Add a file that is nowhere on this machine, and return how many passages it has.

        Args:
            name: Its file name, which names the source: the same name again takes its place.

        Raises:
            KnowledgeError: it cannot be read, or a source of another kind has the name.
        """
        read = await self._read(name, data)
        called, digest = _source_name(name), digest_of(data)
        source, _ = await self._put(called, SENT, readers)
        await self._store(source, called, digest.hex(), digest, read)
        await self._open(source, readers)
        await self._storage.write(lambda c: note_read(c, source.id, self._storage.now()))
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
        return await self._refresh_files(source, await list_files(source.name, source.location))

    async def _refresh_files(self, source: KnowledgeSource, found: Sequence[File]) -> ReadingReport:
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
        self, source: KnowledgeSource, file: File, known: StoredDocument | None, report: ReadingReport
    ) -> None:
        if known is not None and known.stamp == file.stamp:
            report.unchanged += 1
            if known.problem:
                report.problems.append((file.path, known.problem))
            return
        try:
            data = await asyncio.to_thread(read_bytes, file.where, getattr(os, "O_NOFOLLOW", 0))
        except OSError as error:
            problem = f"it cannot be opened: {error.strerror}"
            report.problems.append((file.path, problem))
            if known is None or known.problem:  # else what was read of it is kept
                await self._store(source, file.path, "", b"", ("", []), problem=problem)
            return
        digest = digest_of(data)
        if known is not None and known.digest == digest and not known.problem:
            await self._storage.write(lambda c: note_stamp(c, known.id, file.stamp))
            report.unchanged += 1
            return
        try:
            read = await self._read(file.where.name, data)
        except KnowledgeError as error:
            report.problems.append((file.path, str(error)))
            await self._store(source, file.path, file.stamp, digest, ("", []), problem=str(error))
            return
        await self._store(source, file.path, file.stamp, digest, read)
        report.added += known is None
        report.changed += known is not None

    async def _read(self, name: str, data: bytes) -> tuple[str, list[Passage]]:
        """Return the first heading and the passages of a document.

        Raises:
            KnowledgeError: it cannot be read.
        """
        return await asyncio.to_thread(split_document, await self._reader.read(name, data))

    async def _store(
        self,
        source: KnowledgeSource,
        path: str,
        stamp: str,
        digest: bytes,
        read: tuple[str, list[Passage]],
        title: str = "",
        problem: str | None = None,
    ) -> None:
        heading, found = read
        name = short_heading(title or heading or PurePath(path).stem.replace("_", " "))
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
        digest = digest_of(page.text.encode("utf-8", "replace"))
        known = {each.path: each for each in await self._storage.read(lambda c: list_documents(c, source.id))}
        before = known.get(address)
        await self._storage.write(lambda c: note_read(c, source.id, self._storage.now()))
        if before is not None and before.digest == digest:
            return ReadingReport(unchanged=1)
        read = await asyncio.to_thread(split_document, page.text)
        await self._store(source, address, digest.hex(), digest, read, page.title)
        return ReadingReport(added=int(before is None), changed=int(before is not None))

    async def has_work(self) -> bool:
        """Return whether any passage has to be embedded."""
        if self._embedder is None:
            return False
        model = self._embedder.model_key
        return bool(await self._storage.read(lambda c: list_without_vector(c, model, 1)))

    async def embed(self) -> int:
        """Give every passage without a vector one; return how many got theirs.

        Raises:
            LLMError: the model did not answer; stored vectors are kept.
        """
        if self._embedder is None:
            return 0
        from botservice.history.vectors import as_unit_rows

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


def _source_name(given: str) -> str:
    """Return what a source is called: one line that is not too long.

    Raises:
        KnowledgeError: nothing of it can be seen.
    """
    name = in_one_line(storable(given))[:_LONGEST_NAME].strip()
    if not name:
        raise KnowledgeError("a source needs a name: give it with --name")
    return name


def _who_may_read_both(before: tuple[str, ...], after: tuple[str, ...]) -> tuple[str, ...]:
    """Return those who may read a source before and after its readers change."""
    if ALL in before or ALL in after:
        return after if ALL in before else before
    return tuple(each for each in after if each in before)


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
    if not path.is_file() and not path.is_dir():  # a pipe or a device is neither
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
        given = json.loads(read_bytes(path))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise KnowledgeError(f"{path}: {error}") from None
    if not isinstance(given, dict) or not given.keys() <= {"for", "name"}:
        raise KnowledgeError(f'{path}: it must be an object such as {{"for": ["all"], "name": "handbook"}}')
    readers, name = given.get("for", []), given.get("name")
    if not isinstance(readers, list) or not all(isinstance(each, str) for each in readers):
        raise KnowledgeError(f'{path}: "for" must be a list of chats, such as ["telegram:-100123"]')
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise KnowledgeError(f'{path}: "name" must be a text')
    return {"readers": parse_readers(readers), "name": name}
