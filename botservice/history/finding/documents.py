"""Messages as search sees them: the query that reads them, and what is made of its rows."""

from collections.abc import Iterable, Iterator
from typing import Any

from sqlalchemy import Row, bindparam, select

from botservice.history.finding.searchable import searchable_text
from botservice.history.ranking import Document
from botservice.history.ranking.people import author_key
from botservice.history.rows import IS_SAID
from botservice.messages import Author, Role
from botservice.references import write_out
from botservice.storage.references import decode_references
from botservice.storage.tables.conversations import messages

MESSAGES = select(
    messages.c.id,
    messages.c.position,
    messages.c.role,
    messages.c.text,
    messages.c.attachments,
    messages.c.author_platform,
    messages.c.author_id,
    messages.c.author_name,
    messages.c.created_at,
    messages.c.said_by_others,
).where(messages.c.context_id == bindparam("context"), IS_SAID)


def read_documents(rows: Iterable[Row[*tuple[Any, ...]]]) -> Iterator[Document]:
    """Yield what is searched of the rows of MESSAGES."""
    for number, position, role_name, text, attachments, platform, author_id, author_name, created_at, others in rows:
        role = Role.USER if role_name == Role.USER else Role.ASSISTANT
        said = write_out(text, decode_references(others))
        searchable = searchable_text(role, said, [each.get("name") for each in attachments] if attachments else ())
        if searchable:
            key = author_key(Author(platform, author_id, author_name)) if author_id else None
            yield Document(number, role, searchable, author_name, key, created_at, position, bool(attachments))
