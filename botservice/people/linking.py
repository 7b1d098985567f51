"""Joining two accounts of one person: a code from one, given by the other, and agreed to by both.

A display name proves nothing. The code is shown in the other account alone, and that account then sees who
gave it before anything is joined.
"""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from sqlalchemy import and_, delete, insert, or_, select, update

from botservice.people.identities import IDENTITIES, Identity, join_identities
from botservice.storage.database import Connection, Row
from botservice.storage.tables.people import identities, link_codes, persons

CODE_LIFETIME: Final = timedelta(minutes=10)
MAX_GUESSES: Final = 5  # wrong codes of one person in GUESSING
GUESSING: Final = timedelta(hours=1)

LETTERS: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # pragma: allowlist secret - none looks like another
LENGTH: Final = 8  # 40 bits, for ten minutes


class LinkProblem(StrEnum):
    """Why a code was not taken."""

    UNKNOWN = "unknown"  # wrong, used, or too old: which of them is nobody's business
    GUESSING = "guessing"  # too many wrong ones
    SAME = "same"  # both accounts are one person already


@dataclass(frozen=True, slots=True)
class Offer:
    """A code that waits.

    Attributes:
        asker: Whose code it is.
        giver: Who gave it; None until a person does.
    """

    id: int
    asker: Identity
    giver: Identity | None
    is_accepted: bool


def new_code() -> str:
    """Return a code to be shown once that nobody can guess, such as "ABCD-EFGH"."""
    return spell("".join(secrets.choice(LETTERS) for _ in range(LENGTH)))


def spell(letters: str) -> str:
    """Return the letters of a code in a form that can be read out."""
    return f"{letters[:4]}-{letters[4:]}"


def offer_link(connection: Connection, asker: Identity, code: str, now: datetime) -> None:
    """Store the digest of a linking code of the asker, which voids their older ones."""
    connection.execute(delete(link_codes).where(link_codes.c.identity_id == asker.id))
    connection.execute(delete(link_codes).where(link_codes.c.expires_at <= now))
    values = {"identity_id": asker.id, "code_hash": _digest(code), "expires_at": now + CODE_LIFETIME}
    connection.execute(insert(link_codes).values(values))


def take_code(connection: Connection, giver: Identity, code: str, now: datetime) -> Offer | LinkProblem:
    """Record that a person entered a code; nothing is joined yet. A code works only for the first who enters it."""
    failed, since = connection.execute(
        select(persons.c.failed_guesses, persons.c.guessing_since)
        .where(persons.c.id == giver.person_id)
        .with_for_update()  # their guesses in other chats are counted before this one
    ).one()
    is_fresh = since is None or since <= now - GUESSING
    if failed >= MAX_GUESSES and not is_fresh:
        return LinkProblem.GUESSING
    is_good = and_(
        link_codes.c.code_hash == _digest(code),
        link_codes.c.expires_at > now,
        link_codes.c.identity_id != giver.id,
        or_(link_codes.c.other_identity_id.is_(None), link_codes.c.other_identity_id == giver.id),
    )
    asker_id = connection.execute(select(link_codes.c.identity_id).where(is_good)).scalar_one_or_none()
    if asker_id is not None and _find(connection, asker_id).person_id == giver.person_id:
        return LinkProblem.SAME
    taking = update(link_codes).where(is_good).values(other_identity_id=giver.id).returning(link_codes)
    taken = connection.execute(taking).one_or_none()  # another process may have been faster since
    if taken is None:
        change = update(persons).where(persons.c.id == giver.person_id)
        guesses = {"failed_guesses": 1, "guessing_since": now} if is_fresh else {"failed_guesses": failed + 1}
        connection.execute(change.values(guesses))
        return LinkProblem.UNKNOWN
    return _offer(connection, taken)


def accept_offer(connection: Connection, giver: Identity, offer_id: int, now: datetime) -> Offer | None:
    """Record that the person who entered a code agrees; return None if the offer is not theirs or expired."""
    change = update(link_codes).where(
        link_codes.c.id == offer_id, link_codes.c.other_identity_id == giver.id, link_codes.c.expires_at > now
    )
    row = connection.execute(change.values(is_accepted=True).returning(link_codes)).one_or_none()
    return None if row is None else _offer(connection, row)


def offer_of(connection: Connection, asker: Identity, now: datetime) -> Offer | None:
    """Return the open offer of the asker."""
    query = select(link_codes).where(link_codes.c.identity_id == asker.id, link_codes.c.expires_at > now)
    row = connection.execute(query).one_or_none()
    return None if row is None else _offer(connection, row)


def confirm_offer(connection: Connection, asker: Identity, offer_id: int, now: datetime) -> Identity | None:
    """Join two accounts whose persons both agreed; return the other one, or None if there was no such offer."""
    offer = offer_of(connection, asker, now)
    if offer is None or offer.id != offer_id or offer.giver is None or not offer.is_accepted:
        return None
    connection.execute(delete(link_codes).where(link_codes.c.id == offer.id))
    join_identities(connection, offer.asker, offer.giver)
    return offer.giver


def _offer(connection: Connection, row: Row[*tuple[object, ...]]) -> Offer:
    giver = None if row.other_identity_id is None else _find(connection, row.other_identity_id)
    return Offer(row.id, _find(connection, row.identity_id), giver, row.is_accepted)


def _find(connection: Connection, identity_id: int) -> Identity:
    return Identity(*connection.execute(IDENTITIES.where(identities.c.id == identity_id)).one())


def _digest(code: str) -> str:
    letters = "".join(letter for letter in code.upper() if letter.isalnum())
    return hashlib.sha256(b"botservice link code\0" + letters.encode()).hexdigest()
