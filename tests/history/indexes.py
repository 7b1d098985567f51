"""Search indexes of invented chats, and what is found in them."""

from datetime import UTC, datetime, timedelta

from botservice.core.messages import Role
from botservice.search.documents import Document
from botservice.search.index import SearchIndex

START = datetime(2024, 3, 1, 9, tzinfo=UTC)


def document(number, text, *, role=Role.USER, name=None, key=None, at=None):
    return Document(number, role, text, name, key, at or START + timedelta(minutes=number))


def index_of(*texts, **kwargs):
    index = SearchIndex()
    index.add([document(number, text, **kwargs) for number, text in enumerate(texts, 1)])
    return index


def found(index, text, k=10, **kwargs):
    return [number for number, _ in index.search(text, k=k, **kwargs)]
