"""Embedding messages in the background: off the reply path, newest first, and again where the model has changed."""

import asyncio
import logging
import time
from datetime import datetime, timedelta
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from botservice.core.argument_checks import adopt
from botservice.core.errors import BotServiceError, ClaimLost, DatabaseInUse, LLMError
from botservice.core.messages import Role
from botservice.history.documents import searchable_text
from botservice.history.edit_queries import find_edited
from botservice.history.embeddings import Embedder
from botservice.history.finding import SearchIndexes
from botservice.history.search_queries import find_missing, find_newest, find_newest_vector, write_vectors
from botservice.history.vectors import QuestionVectors, as_unit_rows
from botservice.storage.claims import Claim
from botservice.storage.database import Row, Storage
from botservice.storage.message_references import full_text_of

logger = logging.getLogger(__name__)

POLL_SECONDS: Final = 2.0
_BATCH: Final = 64  # one call, one commit
_STRETCH: Final = 4_096  # ids that one query looks through: the readers of a storage are few
_OVERLAP: Final = 256  # ids that are looked at again: on Postgres, a smaller one may become visible later
SAY_SECONDS: Final = 10.0
_EDITS_OVERLAP: Final = timedelta(seconds=60)  # clocks differ, and on Postgres an earlier edit may be visible later
_BACKOFF_SECONDS: Final = (1.0, 2.0, 5.0, 15.0, 60.0, 300.0)
# Contexts count from 1: this claim says which of the replicas embeds, and passes on when that one dies. Upkeep has 0.
_INDEXER: Final = -1
_MOST_REFUSED: Final = 5  # by then it is not the texts
_STANDBY_SECONDS: Final = 300.0  # so that a process with another model may start again without losing its place
_ANY_VECTOR: Final = (1 << 63) - 1


class EmbeddingIndexer:
    """Adds search by meaning to a storage: `async with EmbeddingIndexer(storage, OpenAIEmbedder()):`.

    While the block runs, new messages get their vectors in the background, old ones are caught up with, newest first,
    and questions are compared by meaning and words; what has no vector yet is found by its words. Several processes may
    run one on the same database: one of them works, on Postgres until it ends, so that processes with different models
    do not embed against each other. An embedder that fails costs nothing but the meaning.
    """

    def __init__(
        self,
        storage: Storage,
        embedder: Embedder,
        *,
        poll_seconds: float = POLL_SECONDS,
        say_seconds: float = SAY_SECONDS,
    ) -> None:
        """Make an indexer for an open storage.

        Args:
            poll_seconds: How often to look for new messages.
            say_seconds: How often to log how far it is, where there is much to catch up with.
        """
        self._storage = storage
        self._embedder = adopt(Embedder, embedder, "embedder", remedy="give one: OpenAIEmbedder()")
        self._poll_seconds = poll_seconds
        self._say_seconds = say_seconds
        self._task: asyncio.Task[None] | None = None
        self._model_key = ""
        self._seen = 0
        self._todo: list[tuple[int, int]] = []  # stretches of ids, (after, last]; the newest at the end
        self._refused: set[int] = set()
        self._edited_since = storage.now() - _EDITS_OVERLAP
        self._edited: set[tuple[int, datetime]] = set()
        self._one_at_a_time = asyncio.Lock()
        self._right: Claim | None = None
        self._has_asked = False
        self._replaceable = _ANY_VECTOR  # other models' vectors up to this one are made again
        self._newest_vector: int | None = None
        self._told_of = ""
        self._is_standby = False

    async def __aenter__(self) -> Self:
        SearchIndexes.of(self._storage).question_vectors = QuestionVectors(self._embedder)
        self._task = asyncio.create_task(self._run(), name="botservice-embeddings")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        SearchIndexes.of(self._storage).question_vectors = None
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            await self._give_back()

    async def catch_up(self) -> int:
        """Embed messages without a vector and return their number.

        Returns 0 if another process does the same. What another model has embedded
        since this indexer began to work is left alone.

        Raises:
            LLMError: the model did not answer; stored vectors are kept.
        """
        async with self._one_at_a_time:
            has_work = bool(await self._find_batch())
            try:
                is_wanted = has_work or (self._keeps_right and not self._has_asked)
                claim = await self._take_right() if is_wanted else None
                await self._look_for_other_model()
                return 0 if claim is None else await self._catch_up(claim)
            finally:
                if not self._keeps_right:
                    await self._give_back()

    async def _catch_up(self, claim: Claim) -> int:
        count = 0
        since = time.monotonic()
        while batch := await self._find_batch():
            count += await self._embed(batch, claim)
            if time.monotonic() - since >= self._say_seconds:
                since = time.monotonic()
                left = self._left(batch[-1].id)
                logger.info("embeddings.catching_up", extra={"count": count, "left_at_most": left})
        return count

    @property
    def _keeps_right(self) -> bool:
        """Whether the right to embed is kept between two batches: on an SQLite file it would keep other work away."""
        return self._task is not None and not self._storage.is_sqlite

    async def _take_right(self) -> Claim | None:
        """Return the right to embed, or None while another process has it."""
        self._has_asked = True
        if self._right is None or not self._right.is_held:
            self._right = await self._storage.claims.try_claim(_INDEXER)
        if self._right is not None and self._replaceable == _ANY_VECTOR:
            # Once: whoever embeds with another model after that would be embedded against for ever.
            self._replaceable, _ = await self._storage.read(find_newest_vector)
            self._newest_vector = self._replaceable
        self._is_standby = self._right is None and bool(self._told_of)
        return self._right

    async def _give_back(self) -> None:
        if self._right is not None:
            claim, self._right = self._right, None
            await asyncio.shield(self._storage.claims.release(claim))

    async def _look_for_other_model(self) -> None:
        """Say once that another process makes vectors with another model, which this one neither uses nor replaces."""
        newest, model_key = await self._storage.read(find_newest_vector)
        if self._newest_vector is None:
            self._newest_vector = newest
        if model_key == self._model_key:
            self._told_of = ""
        if newest <= self._newest_vector or model_key in (self._model_key, self._told_of):
            return
        self._told_of = model_key
        advice = (
            "another process embeds with another model: give all processes of a database the same, and start again "
            "those that have had the other one; until then, what it embeds is found by its words here"
        )
        logger.warning(
            "embeddings.other_model", extra={"model": self._model_key, "other_model": model_key, "advice": advice}
        )

    def _left(self, done_from: int) -> int:
        """Return how many messages may have no vector yet: ids are counted, which costs nothing.

        Args:
            done_from: The oldest message of the newest stretch that has one.
        """
        *older, (after, _) = self._todo
        return done_from - 1 - after + sum(last - first for first, last in older)

    async def _run(self) -> None:
        failures = 0
        while True:
            pause_seconds = self._poll_seconds
            try:
                count = await self.catch_up()
                failures = 0
                if count:
                    logger.info("embeddings.stored", extra={"count": count})
                if self._is_standby:
                    pause_seconds = max(pause_seconds, _STANDBY_SECONDS)
            except (ClaimLost, DatabaseInUse):
                logger.debug("embeddings.left_to_another_process")
            except Exception as error:  # a border: an embedder is foreign code; the words go on without it
                asked = error.retry_after_seconds if isinstance(error, LLMError) else None
                pause_seconds = max(_BACKOFF_SECONDS[min(failures, len(_BACKOFF_SECONDS) - 1)], asked or 0.0)
                failures += 1
                is_expected = isinstance(error, BotServiceError)
                reason = str(error) if is_expected else type(error).__name__
                logger.warning(
                    "embeddings.failed",
                    extra={"reason": reason, "again_in_seconds": pause_seconds},
                    exc_info=not is_expected,
                )
                await self._give_back()  # another process may have more luck
            await asyncio.sleep(pause_seconds)

    async def _find_batch(self) -> list[Row[*tuple[Any, ...]]]:
        """Return the newest messages without a vector; none if all have one."""
        await self._look_for_newer()
        key = self._model_key
        while self._todo:
            after, last = self._todo[-1]
            stretch = max(after, last - _STRETCH)
            find = partial(find_missing, model_key=key, replaceable=self._replaceable, limit=_BATCH)
            rows = await self._storage.read(partial(find, after=stretch, last=last))
            # Committed or not: a batch that fails is found again, because the stretch only shrinks behind it.
            wanted = [row for row in rows if row.id not in self._refused and _text_of(row)]
            if wanted:
                return wanted
            self._shrink(after, rows[-1].id - 1 if len(rows) == _BATCH else stretch)
            await self._look_for_newer()
        return []

    async def _look_for_newer(self) -> None:
        newest = await self._storage.read(find_newest)
        if self._model_key != self._embedder.model_key:
            self._model_key = self._embedder.model_key
            self._seen, self._todo = 0, []
            self._refused.clear()
            self._replaceable, self._newest_vector = _ANY_VECTOR, None
        if newest > self._seen:
            self._todo.append((max(0, self._seen - _OVERLAP), newest))
            self._seen = newest
        await self._look_for_edited()

    async def _look_for_edited(self) -> None:
        """Line up what was changed since it was looked at: it has lost its vector."""
        found = await self._storage.read(partial(find_edited, since=self._edited_since))
        self._todo += [(number - 1, number) for number, edited_at in found if (number, edited_at) not in self._edited]
        self._refused -= {number for number, _ in found}
        if found:
            self._edited_since = max(self._edited_since, found[-1][1] - _EDITS_OVERLAP)
            self._edited = set(found)

    def _shrink(self, after: int, last: int) -> None:
        self._todo[-1] = (after, last)
        if last <= after:
            self._todo.pop()

    async def _embed(self, batch: list[Row[*tuple[Any, ...]]], claim: Claim) -> int:
        try:
            await self._embed_together(batch, claim)
        except LLMError as error:
            if error.is_transient or len(batch) == 1:
                raise
            return await self._embed_one_by_one(batch, claim, error)
        return len(batch)

    async def _embed_one_by_one(self, batch: list[Row[*tuple[Any, ...]]], claim: Claim, error: LLMError) -> int:
        """Leave out the messages that the model refuses; where it refuses all, something else is wrong."""
        refused = set()
        for row in batch:
            try:
                await self._embed_together([row], claim)
            except LLMError as reason:
                if reason.is_transient:
                    raise
                refused.add(row.id)
                if len(refused) == _MOST_REFUSED and refused == {each.id for each in batch[:_MOST_REFUSED]}:
                    raise error from reason
        if len(refused) == len(batch):
            raise error
        self._refused |= refused
        logger.warning("embeddings.refused", extra={"messages": sorted(refused)})
        return len(batch) - len(refused)

    async def _embed_together(self, batch: list[Row[*tuple[Any, ...]]], claim: Claim) -> None:
        model_key = self._embedder.model_key
        found = await self._embedder.embed_documents([_text_of(row) for row in batch])
        try:
            matrix = await asyncio.to_thread(as_unit_rows, found, len(batch))
        except (TypeError, ValueError) as error:
            raise LLMError(f"the embedder's answer is no matrix: {error}") from error
        context_ids = {row.id: row.context_id for row in batch}
        await self._storage.write(
            lambda connection: write_vectors(connection, context_ids, model_key, matrix), fence=claim
        )


def _text_of(row: Row[*tuple[Any, ...]]) -> str:
    return searchable_text(Role(row.role), full_text_of(row), (each.get("name") for each in row.attachments or ()))
