"""The rights of every person, even if blocked or never admitted: to an export, and to be forgotten.

Each of these is answered once a day, in private, and nothing besides.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy import Connection, delete, select

from botservice.core.messages import InboundMessage
from botservice.people.names import person_name
from botservice.storage.statements import upserting
from botservice.storage.tables.access import access_refusals

_EVERY: Final = timedelta(days=1)
# What is asked, as it is kept; /forget me asks whether that is meant, and counts for itself.
_RIGHTS: Final = {("export", ""): "export", ("forget", "me"): "forget", ("forget", "me yes"): "forget yes"}

_note = upserting(access_refusals, "kind", "subject")

FORGOTTEN: Final = "forgotten"
"""The kind of the row of a forgotten person of whom something is still to be read: see `returning`."""


@dataclass(frozen=True, slots=True)
class Right:
    """A right that is refused to nobody."""

    kind: str
    person: str


def right_of(message: InboundMessage) -> Right | None:
    """Return the right that a message makes use of; None for any other."""
    person, call = person_name(message.author), message.command
    if call is None or not person or not message.is_private or not message.is_addressed:
        return None
    kind = _RIGHTS.get((call.name, " ".join(call.arguments.lower().split())))
    return None if kind is None else Right(kind, person)


def may_use(connection: Connection, right: Right, now: datetime) -> bool:
    """Return whether a right was not used within a day."""
    used = select(access_refusals.c.told_at).where(
        access_refusals.c.kind == right.kind,
        access_refusals.c.subject == right.person,
        access_refusals.c.told_at > now - _EVERY,
    )
    return connection.execute(used).first() is None


def use_right(connection: Connection, right: Right, now: datetime) -> None:
    """Note that a person has used a right; that is known for a day."""
    take_note(connection, right.kind, right.person, now)


def take_note(connection: Connection, kind: str, subject: str, now: datetime) -> None:
    """Record when something happened last."""
    connection.execute(_note(connection), {"kind": kind, "subject": subject, "told_at": now})


def forget_rights(connection: Connection, now: datetime) -> int:
    """Delete the records of rights used more than a day ago, and return how many."""
    is_over = access_refusals.c.told_at <= now - _EVERY
    return connection.execute(delete(access_refusals).where(IS_RIGHT, is_over)).rowcount


IS_RIGHT: Final = access_refusals.c.kind.in_(sorted(_RIGHTS.values()))
IS_NEEDED: Final = IS_RIGHT | (access_refusals.c.kind == FORGOTTEN)
"""The rows that are kept of a forgotten person for a while, or they could ask without end, or come back."""
