"""Storing the facts that the observer finds: typed, dated, and for their person to correct or delete."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from botservice.core.messages import Author
from botservice.people.facts import (
    BY_OBSERVER,
    BY_PERSON,
    MAX_FACTS,
    Fact,
    drop_facts,
    end_facts,
    facts_of,
    insert_fact,
    is_private,
    is_refused,
    lock_person,
)
from botservice.people.identities import ensure_identity, find_identity
from botservice.people.own_words import is_said_in
from botservice.storage.database import Connection

# Of these a person has one at a time: the newer takes the place of the older.
SINGLE_TOPICS: Final = ("name", "age", "birthday", "home", "origin", "job", "employer", "school", "family_status")
# Of these a person has many, one for each subject: a bad knee does not end an allergy.
TOPICS_BY_SUBJECT: Final = (
    *("language", "diet", "health", "goal", "style", "taste", "hobby", "pet", "relative", "friend", "possession"),
    *("project", "plan", "habit", "event", "skill", "other"),
)
TOPICS: Final = (*SINGLE_TOPICS, *TOPICS_BY_SUBJECT)
_MOST_ENDED: Final = 400  # of one person: what does not hold any more is bounded, too


class Unkept(StrEnum):
    """Why a found statement is not stored."""

    NOBODY = "nobody"
    REFUSED = "refused"
    CORRECTED = "corrected"
    KNOWN = "known"
    TOO_MANY = "too_many"


@dataclass(frozen=True, slots=True)
class Found:
    """A statement of a person about themselves.

    Attributes:
        topic: One of TOPICS.
        subject: A word of theirs, where a person has many of a topic.
        text: Their sentence, as they said it.
        replaces: What is known of them and does not hold any more, by its key, or none if that is empty.
    """

    author: Author
    message_id: int
    said_at: datetime
    topic: str
    subject: str
    text: str
    replaces: str = ""

    @property
    def key(self) -> str:
        """What one fact at a time is about."""
        return self.topic if self.topic in SINGLE_TOPICS else f"{self.topic}: {self.subject.casefold()}"


def keep_found(connection: Connection, context_id: int, found: Found, now: datetime) -> Fact | Unkept:
    """Store a statement as a fact, or return why not.

    What is newer takes the place of what was said before of the same; where the newer one is known already, this one
    is kept as what was so until then. Where others listen, only what was said there gives way.
    """
    identity = find_identity(connection, found.author) or ensure_identity(connection, found.author, now)
    if identity is None:
        return Unkept.NOBODY
    lock_person(connection, identity.person_id)
    if is_refused(
        connection,
        identity.person_id,
        topic=found.key,
        text=found.text,
        message_id=found.message_id,
        said_at=found.said_at,
    ):
        return Unkept.REFUSED
    every = facts_of(connection, identity.person_id, with_ended=True)
    if (reason := _why_not(found, every)) is not None:
        return reason
    ended = sorted((each for each in every if each.until is not None), key=lambda each: (each.until, each.id))
    drop_facts(connection, [each.id for each in ended[: max(0, len(ended) - _MOST_ENDED)]])
    is_alone = is_private(connection, context_id, found.author)
    same = [
        each
        for each in every
        if each.is_current and each.topic in (found.key, found.replaces) and (is_alone or each.context_id == context_id)
    ]
    if not same and sum(each.is_current for each in every) >= MAX_FACTS:
        return Unkept.TOO_MANY
    newer = min((each for each in same if each.since > found.said_at), key=lambda each: each.since, default=None)
    return _insert(connection, context_id, identity.id, found, same, newer, now)


def _why_not(found: Found, every: list[Fact]) -> Unkept | None:
    """Return why a statement is not stored beside the known facts.

    A sentence may say several things: where the observer finds another one in it, that is kept, too.
    """
    about = (found.key, found.replaces)
    if any(each.set_by == BY_PERSON and each.is_current and each.topic in about for each in every):
        return Unkept.CORRECTED
    for each in every:
        is_same = each.topic == found.key and each.text.casefold() == found.text.casefold()
        is_other = each.set_by == BY_OBSERVER and each.topic.partition(":")[0] != found.topic
        is_of_message = each.source_message_id == found.message_id and (
            each.topic == found.key or (not is_other and is_said_in(each.text, found.text))
        )
        if (is_same and each.is_current) or is_of_message:
            return Unkept.KNOWN
    return None


def _insert(
    connection: Connection,
    context_id: int,
    identity_id: int,
    found: Found,
    same: list[Fact],
    newer: Fact | None,
    now: datetime,
) -> Fact:
    values = {
        "identity_id": identity_id,
        "context_id": context_id,
        "source_message_id": found.message_id,
        "topic": found.key,
        "text": found.text,
        "created_at": now,
        "updated_at": found.said_at,
        "set_by": BY_OBSERVER,
        "valid_from": found.said_at,
    }
    if newer is not None:
        return insert_fact(connection, {**values, "superseded_at": now, "valid_to": newer.since, "ended_by": newer.id})
    kept = insert_fact(connection, values)
    end_facts(connection, [each.id for each in same], by=kept.id, valid_to=found.said_at, now=now)
    return kept
