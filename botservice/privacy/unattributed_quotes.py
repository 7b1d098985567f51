"""What others carry of a person into other chats while nothing says whose it is: it is known by its words alone.

That is what is forwarded from an account that hides itself, and answers of the assistant that repeat a person.
"""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from botservice.messages import Author, Role
from botservice.privacy.own_messages import is_alone, own_message_ids
from botservice.privacy.repeated_words import SHORTEST_QUOTE, Said, read_said
from botservice.storage.references import decode_references
from botservice.storage.tables.conversations import message_references, messages

_HELD = messages.c.said_by_others
_ANSWERS = select(messages.c.id).where(messages.c.role != Role.USER.value)
_UNNAMED = (
    select(messages.c.context_id, _HELD)
    .join(message_references, message_references.c.message_id == messages.c.id)
    .where(
        message_references.c.external_id.is_(None) | _HELD.contains('"kind":"share"', autoescape=True),
        message_references.c.person_id.is_(None) | _HELD.contains('"is_of_assistant":true', autoescape=True),
    )
)


@dataclass(slots=True)
class Told:
    """Words by which others may carry a person elsewhere, and how far what is held of others was looked through."""

    words: Said = Said()  # noqa: RUF009 - frozen
    seen: int = 0


def told_in(connection: Connection, context_id: int, accounts: Collection[Author]) -> Collection[str]:
    """Return what some accounts say in a conversation, and the answers to it, as far as it tells whose it is.

    Where nobody else writes, all is an answer to them: also that of which no turn tells so any more.
    """
    ids = [number for each in accounts for number in own_message_ids(connection, context_id, each)]
    said = read_said(connection, context_id, ids)
    if not is_alone(connection, context_id, accounts):
        return telling(connection, context_id, said)
    answers = connection.execute(_ANSWERS.where(messages.c.context_id == context_id)).scalars().all()
    return said.with_answers(connection, context_id, answers).answer_texts


def telling(connection: Connection, context_id: int, said: Said) -> Collection[str]:
    """Return of what is to be forgotten in a conversation, and of the answers to it, what tells whose it is."""
    return said.with_answers(connection, context_id, ()).answer_texts


def carried(texts: Collection[str]) -> Said:
    """Return words as what is to be forgotten wherever it is not said whose they are."""
    return Said(texts=texts, answer_texts=texts, shortest=SHORTEST_QUOTE)


def find_contexts_carrying(connection: Connection, said: Said, *, after: int = 0) -> list[int]:
    """Return the conversations into which some words were carried.

    Args:
        after: Behind which row of what is held of others.
    """
    if not said.texts:
        return []
    unnamed = _UNNAMED.where(message_references.c.id > after) if after else _UNNAMED
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
