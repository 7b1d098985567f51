"""Ranking of a chat's messages for a question: pure, synchronous, without a model."""

from typing import TYPE_CHECKING, Any

from botservice.history.ranking.documents import Document
from botservice.history.ranking.words.tokens import tokenize

if TYPE_CHECKING:
    from botservice.history.ranking.index import SearchIndex
    from botservice.history.ranking.query import is_worth_searching

__all__ = ["Document", "SearchIndex", "is_worth_searching", "tokenize"]


def __getattr__(name: str) -> Any:
    # NumPy, stop words and stemmers take 15 MiB: they are loaded with the first search.
    if name == "SearchIndex":
        from botservice.history.ranking.index import SearchIndex

        return SearchIndex
    if name == "is_worth_searching":
        from botservice.history.ranking.query import is_worth_searching

        return is_worth_searching
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
