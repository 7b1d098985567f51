"""What others carry of somebody into other chats while nothing says whose it is: it is known by its words alone.

That is what is forwarded from an account that hides itself, and answers of the assistant that repeat somebody.
"""

from collections.abc import Collection, Iterable

from sqlalchemy import Connection, func, select

from botservice.messages import Author
from botservice.privacy.own_messages import own_message_ids
from botservice.privacy.said import SHORTEST_QUOTE, Said, read_said
from botservice.storage.ranges import sure_up_to
from botservice.storage.references import decode_references
from botservice.storage.tables.conversations import message_references, messages

_HELD = messages.c.said_by_others
_UNNAMED = (
    select(messages.c.context_id, _HELD)
    .join(message_references, message_references.c.message_id == messages.c.id)
    .where(
        message_references.c.external_id.is_(None) | _HELD.contains('"kind":"share"', autoescape=True),
        message_references.c.person_id.is_(None) | _HELD.contains('"is_of_assistant":true', autoescape=True),
    )
)


def told_in(connection: Connection, context_id: int, accounts: Iterable[Author]) -> Collection[str]:
    """Return what some accounts say in a conversation, and the answers to it, as far as it tells whose it is."""
    ids = [number for each in accounts for number in own_message_ids(connection, context_id, each)]
    return telling(connection, context_id, read_said(connection, context_id, ids))


def telling(connection: Connection, context_id: int, said: Said) -> Collection[str]:
    """Return of what is to be forgotten in a conversation, and of the answers to it, what tells whose it is."""
    return said.with_answers(connection, context_id, ()).answer_texts


def carried(texts: Collection[str]) -> Said:
    """Return words as what is to be forgotten wherever it is not said whose they are."""
    return Said(texts=texts, answer_texts=texts, shortest=SHORTEST_QUOTE)


def find_contexts_carrying(connection: Connection, said: Said, *, after: int = 0) -> list[int]:
    """Return the conversations into which some words were carried.

    Args:
        after: What `newest_reference` was when all that was there by then was looked through.
    """
    if not said.texts:
        return []
    unnamed = _UNNAMED.where(message_references.c.id > sure_up_to(connection, after)) if after else _UNNAMED
    found = {
        row.context_id
        for row in connection.execute(unnamed)
        if any(said.is_repeated_by(each) for each in decode_references(row.said_by_others))
    }
    return sorted(found)


def newest_reference(connection: Connection) -> int:
    """Return how far whoever looks through all that is held of others has come: whatever comes later stands behind."""
    newest: int = connection.execute(select(func.coalesce(func.max(message_references.c.id), 0))).scalar_one()
    return newest
