"""Ranking of a chat's messages for a question: pure, synchronous, without a model."""

from botservice.history.ranking.documents import Document
from botservice.history.ranking.index import SearchIndex
from botservice.history.ranking.query import is_worth_searching
from botservice.history.ranking.words.tokens import tokenize

__all__ = ["Document", "SearchIndex", "is_worth_searching", "tokenize"]
