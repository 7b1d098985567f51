"""Keeping the folders of KNOWLEDGE up to date while the service runs, in one process at a time."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Final

from botservice.core.background_task import background_task
from botservice.core.errors import BotServiceError, ClaimLost
from botservice.history.embeddings import Embedder
from botservice.knowledge.indexer import KnowledgeIndexer, read_readers_file
from botservice.storage.database import Storage

logger = logging.getLogger(__name__)

EVERY_SECONDS: Final = 30.0
# No context has this id: this claim says which of the replicas reads documents. Maintenance has 0, embedding has -1.
_WATCHER: Final = -2


class KnowledgeWatcher:
    """Reads what has changed in folders, and embeds passages that have no vector."""

    def __init__(self, storage: Storage, folders: Sequence[Path], embedder: Embedder | None = None) -> None:
        self._storage = storage
        self._folders = folders
        self._indexer = KnowledgeIndexer(storage, embedder)
        self._told: dict[Path | None, str] = {}

    @contextlib.asynccontextmanager
    async def running(self, *, every_seconds: float = EVERY_SECONDS) -> AsyncIterator[None]:
        """Look at once, and then at intervals, until the block is left."""
        async with background_task(self._repeat(every_seconds), name="botservice-knowledge"):
            yield

    async def run_once(self) -> bool:
        """Read what has changed; return False where another process does so.

        Raises:
            DatabaseInUse: another process works on this SQLite file.
        """
        if not self._folders and not await self._indexer.has_work():
            return True
        claim = await self._storage.claims.try_claim(_WATCHER)
        if claim is None:
            return False
        try:
            for folder in self._folders:
                await self._look(folder)
            try:
                await self._indexer.embed()
            except BotServiceError as error:
                self._tell(None, str(error))
            else:
                self._told.pop(None, None)
        finally:
            await asyncio.shield(self._storage.claims.release(claim))
        return True

    async def _look(self, folder: Path) -> None:
        try:
            given = await asyncio.to_thread(read_readers_file, folder)
            path, name = str(folder), given.get("name")
            source, report = await self._indexer.add(path, name=name, readers=given.get("readers", ()))
        except BotServiceError as error:
            if isinstance(error, ClaimLost):
                raise
            self._tell(folder, str(error))
            return
        if report.has_changed:
            counts = {"added": report.added, "changed": report.changed, "removed": report.removed}
            logger.info("knowledge.read", extra={"source": source.id, **counts})
        if report.problems:
            self._tell(
                folder, f"{len(report.problems)} documents cannot be read: `botservice knowledge list` names them"
            )
        else:
            self._told.pop(folder, None)

    def _tell(self, what: Path | None, reason: str) -> None:
        """Log a problem once, until it is another one."""
        if self._told.get(what) != reason:
            self._told[what] = reason
            logger.warning("knowledge.problem", extra={"reason": reason})

    async def _repeat(self, every_seconds: float) -> None:
        while True:
            try:
                await self.run_once()
            except BotServiceError as error:
                logger.warning("knowledge.postponed", extra={"reason": str(error)})
            except Exception:
                logger.exception("knowledge.failed")  # whatever it was: the service answers without
            await asyncio.sleep(every_seconds)
