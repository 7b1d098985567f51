"""The conversation: what was said, what of it stands in a prompt, and how it is found again."""

from typing import TYPE_CHECKING, Any

from botservice.history.chat_history import ChatHistory
from botservice.history.embeddings import Embedder, OpenAIEmbedder
from botservice.history.finding.questions import SearchHit
from botservice.history.shown import Room
from botservice.history.window import (
    MessageSelector,
    MessageWindowMessageSelector,
    NoMessages,
    SteadyWindowMessageSelector,
    TokenWindowMessageSelector,
)

if TYPE_CHECKING:
    from botservice.history.e5_embedder import E5Embedder
    from botservice.history.indexing import EmbeddingIndexer
    from botservice.history.local_embedder import LocalEmbedder

__all__ = [
    "ChatHistory",
    "E5Embedder",
    "Embedder",
    "EmbeddingIndexer",
    "LocalEmbedder",
    "MessageSelector",
    "MessageWindowMessageSelector",
    "NoMessages",
    "OpenAIEmbedder",
    "Room",
    "SearchHit",
    "SteadyWindowMessageSelector",
    "TokenWindowMessageSelector",
]


def __getattr__(name: str) -> Any:
    # What calculates with vectors is loaded when it is first used.
    if name == "EmbeddingIndexer":
        from botservice.history.indexing import EmbeddingIndexer

        return EmbeddingIndexer
    if name == "E5Embedder":
        from botservice.history.e5_embedder import E5Embedder

        return E5Embedder
    if name == "LocalEmbedder":
        from botservice.history.local_embedder import LocalEmbedder

        return LocalEmbedder
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
