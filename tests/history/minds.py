"""Embedders of tests, whose vectors say what a text is about, and what was stored of them."""

import hashlib

from sqlalchemy import select

from botservice import EmbeddingIndexer, LLMError
from botservice.history.finding import SearchIndexes
from botservice.history.vectors import QuestionVectors
from botservice.storage.tables.conversations import messages, vectors

PETS, MONEY = ("dog", "pet", "hound", "animal"), ("rent", "salary", "cash")


def mind(text):
    """A vector whose first numbers say what a text is about."""
    words = text.lower().replace("?", "").split()
    noise = [byte / 2550 for byte in hashlib.sha256(text.encode()).digest()[:6]]
    return [float(any(word in PETS for word in words)), float(any(word in MONEY for word in words)), *noise]


class Failing:
    """An embedder that does what a test says."""

    model_key, dim = "failing", None

    def __init__(self, fails=lambda text: LLMError("gone")):
        self.fails, self.asked = fails, []

    async def embed_documents(self, texts):
        return [await self.embed_query(text) for text in texts]

    async def embed_query(self, text):
        self.asked.append(text)
        error = self.fails(text)
        if error is not None:
            raise error
        return mind(text)


async def stored(storage):
    """Return the model of each message's vector, by the message's text."""
    query = select(messages.c.text, vectors.c.model_key).join(vectors, vectors.c.message_id == messages.c.id)
    return dict(await storage.read(lambda connection: connection.execute(query).all()))


async def indexer_of(storage, embedder):
    """Return an indexer that does nothing by itself."""
    SearchIndexes.of(storage).question_vectors = QuestionVectors(embedder)
    return EmbeddingIndexer(storage, embedder)


async def texts_of(history, text, k=5):
    return [hit.message.text for hit in await history.search(text, k)]
