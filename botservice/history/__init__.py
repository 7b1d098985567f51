"""The conversation: what was said, what of it stands in a prompt, and how it is found again."""

from botservice.history.chat_history import ChatHistory
from botservice.history.embeddings import Embedder, OpenAIEmbedder
from botservice.history.finding.questions import SearchHit
from botservice.history.indexing import EmbeddingIndexer
from botservice.history.local_embedder import LocalEmbedder
from botservice.history.shown import Room
from botservice.history.window import (
    MessageSelector,
    MessageWindowMessageSelector,
    NoMessages,
    SteadyWindowMessageSelector,
    TokenWindowMessageSelector,
)

__all__ = [
    "ChatHistory",
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
