"""Facts that people deleted or corrected: remembered as digests, so that they do not come back."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Connection, insert, select

from botservice.history.notes import digest_of_words
from botservice.storage.tables.people import identities, refused_facts

BY_PERSON: Final = "person"
BY_OBSERVER: Final = "observer"


def refuse(connection: Connection, rows: Iterable[Any], now: datetime) -> None:
    """Store the digests of facts that their person does not want, given as rows."""
    values = [
        {
            "identity_id": row.identity_id,
            "digest": digest_of_words(row.text, row.identity_id),
            "topic_digest": digest_of_words(row.topic, row.identity_id),
            "message_id": row.source_message_id,
            "refused_at": now,
        }
        for row in rows
    ]
    if values:
        connection.execute(insert(refused_facts), values)


def is_refused(
    connection: Connection, person_id: int, *, topic: str, text: str, message_id: int, said_at: datetime
) -> bool:
    """Return whether a person has refused a fact, by its words, its message, or its topic since then."""
    query = (
        select(refused_facts)
        .join(identities, identities.c.id == refused_facts.c.identity_id)
        .where(identities.c.person_id == person_id)
    )
    return any(
        row.message_id == message_id
        or row.digest == digest_of_words(text, row.identity_id)
        or (said_at <= row.refused_at and row.topic_digest == digest_of_words(topic, row.identity_id))
        for row in connection.execute(query).all()
    )
