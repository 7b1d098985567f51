"""What was deleted, in numbers: counted where it is deleted, before and after, in the same transaction."""

from dataclasses import astuple, dataclass

from sqlalchemy import Connection, func, select

from botservice.messages import Role
from botservice.storage.tables.conversations import messages, reminders
from botservice.storage.tables.people import facts

_BY_ROLE = select(messages.c.role, func.count().label("number")).group_by(messages.c.role)


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
        """Return what was deleted in all."""
        return Forgotten(*map(sum, zip(astuple(self), astuple(other), strict=True)))

    def __sub__(self, other: "Forgotten") -> "Forgotten":
        """Return what was there before and is no more."""
        return Forgotten(*(max(0, before - after) for before, after in zip(astuple(self), astuple(other), strict=True)))


def take_stock(connection: Connection, context_id: int) -> Forgotten:
    """Return what a conversation holds."""
    here = messages.c.context_id == context_id
    said = {row.role: row.number for row in connection.execute(_BY_ROLE.where(here))}
    attached = select(messages.c.attachments).where(here, messages.c.attachments.is_not(None))
    known = select(func.count()).where(facts.c.context_id == context_id, facts.c.superseded_at.is_(None))
    asked = select(func.count()).where(reminders.c.context_id == context_id)
    return Forgotten(
        messages=said.get(Role.USER.value, 0),
        answers=said.get(Role.ASSISTANT.value, 0),
        files=sum(len(each) for each in connection.execute(attached).scalars()),
        facts=connection.execute(known).scalar_one(),
        reminders=connection.execute(asked).scalar_one(),
    )
