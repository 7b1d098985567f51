"""Finding the message in which a person said a fact in their own words."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import bindparam, select

from botservice.core.messages import Author
from botservice.people.own_words import is_said_in
from botservice.storage.database import Connection
from botservice.storage.tables.conditions import MESSAGE_IS_OF_A_PERSON
from botservice.storage.tables.conversations import messages

_NEWEST = 30  # messages of people in a chat that are looked at
_OWN = 6  # of them, those of the person

_ROWS = select(*messages.c["id", "text", "own_text", "said_by_others", "attachments", "author_platform", "author_id"])
_ONE = _ROWS.where(messages.c.id == bindparam("message"))
_SAID = (
    _ROWS.where(messages.c.context_id == bindparam("context"), MESSAGE_IS_OF_A_PERSON)
    .order_by(messages.c.position.desc())
    .limit(_NEWEST)
)


def find_source(connection: Connection, context_id: int, author: Author, text: str) -> tuple[int, str] | None:
    """Return the newest message of an author in a context that says all of a fact, and the author's words in it.

    Return None if there is none. What it quotes, forwards or shares of others does not count, nor what stands in files.
    """
    said = [
        row
        for row in connection.execute(_SAID, {"context": context_id}).all()
        if row.author_platform == author.platform and row.author_id == author.id
    ]
    for row in said[:_OWN]:
        own = own_words_in(row)
        if is_said_in(text, own):
            return row.id, own
    return None


def own_texts(connection: Connection, context_id: int, author: Author | None) -> Sequence[str]:
    """Return what an author wrote themselves in the newest messages of a context.

    Args:
        author: None for whoever has no name.
    """
    theirs = (None, None) if author is None else (author.platform, author.id)
    rows = connection.execute(_SAID, {"context": context_id}).all()
    return [own_words_in(row) for row in rows if (row.author_platform, row.author_id) == theirs]


def own_words_of(connection: Connection, message_id: int) -> str:
    """Return the author's own words in a message."""
    return own_words_in(connection.execute(_ONE, {"message": message_id}).one())


def own_words_in(row: Any) -> str:
    """Return the author's own words in a message's row.

    Where that is not stored, what stands in files, in brackets behind the rest, is not counted.
    """
    if row.own_text is not None:
        return str(row.own_text)
    return str(row.text).partition("\n[")[0] if row.attachments else str(row.text)
