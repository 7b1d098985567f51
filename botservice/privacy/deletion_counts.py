"""Counting what is deleted, right before it is, in the same transaction."""

from collections.abc import Collection
from dataclasses import astuple, dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, func, select

from botservice.core.messages import Role
from botservice.storage.chunks import chunks
from botservice.storage.tables.conversations import messages, reminders
from botservice.storage.tables.people import facts

_SAID: Final = select(messages.c.role, messages.c.attachments)
_KNOWN: Final = select(func.count()).where(facts.c.superseded_at.is_(None))


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was deleted.

    Attributes:
        contexts: Conversations that went whole, because nobody else wrote in them.
        messages: What people wrote, in these and in others.
        answers: What the assistant wrote.
        files: What came with these messages.
    """

    contexts: int = 0
    messages: int = 0
    answers: int = 0
    files: int = 0
    facts: int = 0
    reminders: int = 0

    def __add__(self, other: "Forgotten") -> "Forgotten":
        """Return the sum of both."""
        return Forgotten(*map(sum, zip(astuple(self), astuple(other), strict=True)))


def take_stock(connection: Connection, context_id: int) -> Forgotten:
    """Count what a conversation holds, before all of it is deleted."""
    known = _KNOWN.where(facts.c.context_id == context_id)
    asked = select(func.count()).where(reminders.c.context_id == context_id)
    return _count_said(connection, messages.c.context_id == context_id) + Forgotten(
        facts=connection.execute(known).scalar_one(), reminders=connection.execute(asked).scalar_one()
    )


def count_messages(connection: Connection, context_id: int, message_ids: Collection[int]) -> Forgotten:
    """Count what is deleted with some messages of a conversation."""
    found = Forgotten()
    for chunk in chunks(sorted(set(message_ids))):
        # A sum, so that no index is chosen by it: for a few ids SQLite would rather look through the whole context.
        found += _count_said(connection, messages.c.id.in_(chunk) & (messages.c.context_id + 0 == context_id))
    return found + Forgotten(facts=count_facts(connection, message_ids))


def count_facts(connection: Connection, message_ids: Collection[int]) -> int:
    """Count the facts that come from some messages."""
    return sum(
        connection.execute(_KNOWN.where(facts.c.source_message_id.in_(chunk))).scalar_one()
        for chunk in chunks(sorted(set(message_ids)))
    )


def _count_said(connection: Connection, which: ColumnElement[Any]) -> Forgotten:
    rows = connection.execute(_SAID.where(which)).all()
    return Forgotten(
        messages=sum(row.role == Role.USER.value for row in rows),
        answers=sum(row.role == Role.ASSISTANT.value for row in rows),
        files=sum(len(row.attachments or ()) for row in rows),
    )
