"""Finding passages of the documents that a chat may read."""

import asyncio
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from botservice.agent.knowledge_base import KnowledgeBase, QuotedPassage
from botservice.conversation.context import AgentContext
from botservice.conversation.queries import read_is_shared
from botservice.core.chat_addresses import ChatAddress
from botservice.knowledge.indexer import ALL
from botservice.knowledge.queries import (
    KnowledgeSource,
    StoredPassage,
    list_passage_ids,
    list_passages,
    list_sources,
    list_vectors,
)
from botservice.people.access import Access
from botservice.people.names import chat_name, is_chat_name, is_guest
from botservice.storage.database import Connection, Storage

if TYPE_CHECKING:
    from botservice.knowledge.passage_index import PassageIndex

_LEAST_SIMILARITY: Final = 0.36
_LOOK_SECONDS: Final = 2.0  # how long it may take a service without documents to notice the first one

_Readers = tuple[str, ...]


def _new_index() -> "PassageIndex":
    """Return an empty index. NumPy is loaded by the first question to a document."""
    from botservice.knowledge.passage_index import PassageIndex

    return PassageIndex()


@dataclass(slots=True)
class _Group:
    """The documents that the same chats may read: one index, so that no other document has a part in what is found.

    Attributes:
        versions: Those of its sources that the index holds.
        model: Of the vectors that the index holds.
    """

    index: "PassageIndex" = field(default_factory=_new_index)
    versions: dict[int, int] = field(default_factory=dict)
    model: str | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


@dataclass(slots=True)
class _Stored:
    """What is known of the documents of one storage.

    Attributes:
        is_empty: Whether there were none when they were looked for, at looked_at.
    """

    groups: dict[_Readers, _Group] = field(default_factory=dict)
    is_empty: bool = False
    looked_at: float = 0.0


class StoredDocuments(KnowledgeBase):
    """The documents of a service, found by their words, and by meaning where there is a model for it."""

    def __init__(self, access: Access | None = None) -> None:
        """Find documents in the storage of the conversation that asks.

        Args:
            access: Says who is an owner.
        """
        self._access = access or Access()
        self._stored: WeakKeyDictionary[Storage, _Stored] = WeakKeyDictionary()

    async def has_documents(self, context: AgentContext) -> bool:
        """Return whether a chat may read any document."""
        return bool(await self._readable(context))

    async def find(
        self, question: str, context: AgentContext, *, k: int, is_likely: bool = True
    ) -> Sequence[QuotedPassage]:
        """Return the passages that best answer a question, best first, of documents that this chat may read."""
        readable = await self._readable(context)
        if not readable or not question.strip():
            return []
        vector, model = await _vector_of(context.storage, question)
        found: list[tuple[float, int]] = []
        for readers, sources in readable.items():
            group = self._stored_in(context.storage).groups.setdefault(readers, _Group())
            async with group.lock:
                await _load(context.storage, group, sources, model)
                ranking = await asyncio.to_thread(group.index.search, question, k=k, query_vector=vector)
            least = _least_coverage(len(group.index), by_meaning=ranking.by_meaning)
            if ranking and (ranking.coverage >= least or not is_likely):
                best = ranking[0][1] or 1.0
                found += [(ranking.coverage * score / best, number) for number, score in ranking]
        best_first = sorted(found, reverse=True)[:k]
        return await _quote(context.storage, {number: score for score, number in best_first})

    async def get(self, ids: Sequence[int], context: AgentContext) -> Sequence[QuotedPassage]:
        """Return passages by their ids, as far as this chat may read them."""
        readable = await self._readable(context)
        names = {source.name for sources in readable.values() for source in sources}
        return [each for each in await _quote(context.storage, dict.fromkeys(ids, 0.0)) if each.source in names]

    async def _readable(self, context: AgentContext) -> dict[_Readers, list[KnowledgeSource]]:
        """Return the sources that a chat may read, by who else may."""
        stored = self._stored_in(context.storage)
        if is_guest(context.context_keys) or (stored.is_empty and time.monotonic() - stored.looked_at < _LOOK_SECONDS):
            return {}

        def query(connection: Connection) -> tuple[list[KnowledgeSource], bool]:
            sources = list_sources(connection)
            has_private = any(not source.readers for source in sources)
            return sources, has_private and self._is_of_owner_alone(connection, context)

        sources, is_of_owner = await context.storage.read(query)
        stored.is_empty, stored.looked_at = not sources, time.monotonic()
        grouped: dict[_Readers, list[KnowledgeSource]] = {}
        for source in sources:
            if _reads(source.readers, context) or (is_of_owner and not source.readers):
                grouped.setdefault(tuple(sorted(source.readers)), []).append(source)
        return grouped

    def _is_of_owner_alone(self, connection: Connection, context: AgentContext) -> bool:
        """Return whether an owner asks, and no other person reads along."""
        keys = context.context_keys
        is_private = not is_chat_name(chat_name(keys)) and keys.get("channel_id", "D").startswith("D")
        if not is_private or read_is_shared(connection, context.id):
            return False
        return self._access.is_owner(connection, context.asker)

    def _stored_in(self, storage: Storage) -> _Stored:
        return self._stored.setdefault(storage, _Stored())


async def _quote(storage: Storage, scores: dict[int, float]) -> list[QuotedPassage]:
    by_id = {each.id: each for each in await storage.read(lambda connection: list_passages(connection, scores))}
    return [_quoted(by_id[number], score) for number, score in scores.items() if number in by_id]


async def _vector_of(storage: Storage, question: str) -> tuple[Any, str | None]:
    """Return the vector of a question and the name of its model, where there is one."""
    from botservice.history.finding import SearchIndexes

    vectors = SearchIndexes.of(storage).question_vectors
    return (None, None) if vectors is None else (await vectors.vector_of(question), vectors.model_key)


async def _load(storage: Storage, group: _Group, sources: Sequence[KnowledgeSource], model: str | None) -> None:
    """Bring an index up to date with what is stored."""
    versions = {source.id: source.version for source in sources}
    if group.versions == versions and group.model == model:
        return
    index = group.index

    def query(connection: Connection) -> tuple[list[int], list[StoredPassage], list[tuple[int, bytes]]]:
        ids = list_passage_ids(connection, versions)
        new = set(ids).difference(index.ids)
        vectors = list_vectors(connection, ids, model) if model is not None else []
        return ids, list_passages(connection, sorted(new)), vectors

    ids, new, vectors = await storage.read(query, is_long=True)
    await asyncio.to_thread(index.update, ids, new, vectors)
    group.versions, group.model = versions, model


def _least_coverage(passages: int, *, by_meaning: bool) -> float:
    """Return the coverage below which a passage likely answers nothing.

    In a larger index a word that a question shares with a passage is rarer, and says more. With it, passages are shown
    for a tenth of the questions that no document answers, at most (benchmarks/knowledge.py).
    """
    by_words = min(0.8, max(0.3, 0.18 + 0.1 * math.log(max(1, passages))))
    return (by_words + _LEAST_SIMILARITY) / 2 if by_meaning else by_words


def _reads(readers: _Readers, context: AgentContext) -> bool:
    """Return whether a chat is among readers; a chat's threads are in it."""
    if ALL in readers:
        return True
    for reader in readers:
        address = ChatAddress.parse(reader)
        if address.number == context.id or (address.keys and address.keys.items() <= context.context_keys.items()):
            return True
    return False


def _quoted(passage: StoredPassage, score: float) -> QuotedPassage:
    url = passage.path if passage.path.startswith(("http://", "https://")) else None
    return QuotedPassage(
        passage.id, passage.source, passage.title, passage.heading, passage.page, passage.text, url, round(score, 4)
    )
